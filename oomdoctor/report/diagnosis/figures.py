"""The numbers of an incident as a table and as bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.event import Event, Kind
from oomdoctor.case.expected import Expected
from oomdoctor.case.incident import LedgerEntry
from oomdoctor.report.document import Bar, Row, Slice, Style
from oomdoctor.report.memory.estimate_bars import estimate_bar
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.texts import FIGURES, PARTS
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share, format_size

_MOST_ROWS = 12
_MOST_SLICES = 8
_ACCENT = {"requested_bytes": Style.STRONG, "free_bytes": Style.GOOD, "other_process_bytes": Style.WARN}
_WHOLE = {Kind.HOST_OOM: "host_total_bytes", Kind.SHM_OOM: "shm_total_bytes"}
"""What is whole, where it is no card."""
_SMALLEST_CARD = 256 << 20
"""No accelerator has less: a total below it is that of a pool which a runtime manages."""
_PART_STYLE = {"free": Style.GOOD, "other processes": Style.WARN, "unaccounted": Style.DIM}


def figure_rows(root: Event, drawn: tuple[LedgerEntry, ...], wording: Wording) -> tuple[Row, ...]:
    """Return the byte figures of a message, the known ones in a fixed order, each with its share of the card.

    What the ledger draws is left to its bar: nobody reads the same number twice.
    """
    sizes = _sizes(root)
    total = sizes.get("total_bytes")
    in_bar = {part.bytes for part in drawn}
    names = [name for name in sizes if name == "requested_bytes" or sizes[name] not in in_bar]
    named = [name for name in FIGURES if name in names]
    others = sorted(name for name in names if name not in FIGURES)
    return tuple(_row(name, sizes[name], total, root.kind, wording) for name in [*named, *others][:_MOST_ROWS])


def ledger_bars(ledger: tuple[LedgerEntry, ...], wording: Wording, expected: Expected | None = None) -> list[Bar]:
    """One bar for each memory that the ledger speaks of; beside a card's, what the settings are expected to need of it."""
    shown = [part for part in ledger if part.bytes > 0]
    return [_bar(of, [part for part in shown if part.of == of], expected, wording) for of in dict.fromkeys(part.of for part in shown)]


def _sizes(root: Event) -> Mapping[str, int]:
    sizes = {name: size for name in root.fields if name.endswith("_bytes") and (size := root.size(name)) is not None and size >= 0}
    others = root.fields.get("other_processes")
    if "other_process_bytes" not in sizes and isinstance(others, tuple):
        used = [process.get("used_bytes") for process in others if isinstance(process, Mapping)]
        known = [size for size in used if isinstance(size, int)]
        if known:
            sizes["other_process_bytes"] = sum(known)
    return sizes


def _row(name: str, size: int, total: int | None, kind: Kind, wording: Wording) -> Row:
    known = FIGURES.get(_whole(kind, size) if name == "total_bytes" else name)
    label = wording.say(known) if known else clean_line(name.removesuffix("_bytes").replace("_", " "), 40)
    share = format_share(size / total) if total else ""
    return Row(label, format_size(size), share, _ACCENT.get(name, Style.PLAIN))


def _whole(kind: Kind, size: int) -> str:
    """Return the name of the figure that says how large the memory is which ran out."""
    return _WHOLE.get(kind, "pool_total_bytes" if size < _SMALLEST_CARD else "total_bytes")


def _bar(of: str, parts: list[LedgerEntry], expected: Expected | None, wording: Wording) -> Bar:
    total = sum(part.bytes for part in parts)
    slices = tuple(_slices(parts, total, wording))
    title = _memory(of) + wording.colon + format_size(total)
    if expected is None or not expected.is_told or not of.startswith("gpu"):
        return Bar(title, slices)
    need = estimate_bar(expected.estimate, total, wording, title=wording.say(labels.EXPECTED_BESIDE))
    return Bar(title, slices, value=wording.say(labels.SEEN_BESIDE), beside=(need,))


def _slices(parts: list[LedgerEntry], total: int, wording: Wording) -> Iterator[Slice]:
    kept, rest = parts, 0
    if len(parts) > _MOST_SLICES:
        kept, rest = parts[: _MOST_SLICES - 1], sum(part.bytes for part in parts[_MOST_SLICES - 1 :])
    for part in kept:
        known = PARTS.get(part.what)
        note = wording.say(labels.ESTIMATED) if part.source == "estimated" else ""
        about = "≈" if part.source == "derived" else ""
        label = wording.say(known) if known else clean_line(part.what, 60)
        yield Slice(label, about + format_size(part.bytes), part.bytes / total, _PART_STYLE.get(part.what, Style.PLAIN), note)
    if rest:
        yield Slice(wording.say(labels.MORE_LABEL), format_size(rest), rest / total, Style.DIM)


def _memory(of: str) -> str:
    return of.replace("gpu ", "GPU ").replace("host", "RAM") if of.startswith(("gpu ", "host")) else of
