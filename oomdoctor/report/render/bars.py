"""How a bar is drawn where there are only characters."""

from __future__ import annotations

from oomdoctor.report.document import Bar, Mark, Slice, Style

_FILLS = "█▓▒░▞▚▤▥▦▧▨▩"


def bar_fill(part: Slice, at: int) -> str:
    """Return the character of the part that is the `at`-th of its bar; what is free has its own."""
    return "·" if part.style is Style.GOOD else _FILLS[at % len(_FILLS)]


def cells(bar: Bar, room: int) -> list[int]:
    """Whole cells for each part, together exactly the room; what is not nothing is seen."""
    shares = [entry.share for entry in bar.slices]
    found = [max(1, int(share * room)) for share in shares]
    while sum(found) > room and max(found) > 1:
        found[found.index(max(found))] -= 1
    by_loss = sorted(range(len(found)), key=lambda at: shares[at] * room - found[at], reverse=True)
    for at in by_loss[: max(0, room - sum(found))]:
        found[at] += 1
    return found


def pointer_line(mark: Mark, room: int, label: int) -> str:
    """Return the line under a bar of `room` cells that points at the mark; its name, of `label` cells, is on the side that has room."""
    at = min(room - 1, max(0, round(mark.share * room)))
    if at + 2 + label <= room:
        return f"{' ' * at}▲ {mark.label}"
    return f"{' ' * (at - 1 - label)}{mark.label} ▲"
