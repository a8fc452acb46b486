"""How a bar is drawn where there are only characters."""

from __future__ import annotations

from oomdoctor.report.document import Bar, Mark, Slice, Style

_FILLS = "█▓▒░▞▚▤▥▦▧▨▩"


def bar_fill(part: Slice, at: int) -> str:
    """Return the character of the part that is the `at`-th of its bar; what is free has its own."""
    return "·" if part.style is Style.GOOD else _FILLS[at % len(_FILLS)]


def cells(bar: Bar, width: int) -> list[int]:
    """Return the whole cells of each part, `width` together; a part that is not nothing has at least one."""
    shares = [entry.share for entry in bar.slices]
    counts = [max(1, int(share * width)) for share in shares]
    while sum(counts) > width and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    by_loss = sorted(range(len(counts)), key=lambda at: shares[at] * width - counts[at], reverse=True)
    for at in by_loss[: max(0, width - sum(counts))]:
        counts[at] += 1
    return counts


def pointer_line(mark: Mark, width: int, label: int) -> str:
    """Return the line under a bar of `width` cells that points at the mark; its name, of `label` cells, is on the side where it fits."""
    at = min(width - 1, max(0, round(mark.share * width)))
    if at + 2 + label <= width:
        return f"{' ' * at}▲ {mark.label}"
    return f"{' ' * (at - 1 - label)}{mark.label} ▲"
