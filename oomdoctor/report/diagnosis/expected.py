"""What a failed run should have taken, beside what was seen: a line or two below the figures, and a row for each part that was measured."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.expected import AtFailure, Expected
from oomdoctor.case.recorded.parts import ExpectedPart, MeasuredPart, MeasuredParts
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB, format_size

_ROWS = 8
_LEAST = 0.005
"""Of all that lives: what is less is no row, unless more was expected."""


def beside_seen(expected: Expected | None, wording: Wording) -> Iterator[Block]:
    """Compare expected and observed memory at the failure, and the peak where that cannot fit; nothing where settings are unknown."""
    if expected is None or not expected.is_told:
        return
    sentences = list(_at(expected.at, wording)) if expected.at else []
    if expected.fits == "no" and expected.budget is not None:
        estimate = expected.estimate
        sizes = range_of(estimate.expected, estimate.low, estimate.high, wording)
        sentences.append(wording.say(labels.EXPECTED_PEAK, sizes=sizes, card=f"{expected.budget.total / GIB:.1f} GiB"))
    if sentences:
        yield Paragraph((Span(wording.blank.join(sentences)),))


def range_of(expected: int, low: int, high: int, wording: Wording) -> str:
    """Return a figure and its range in GiB, with no more digits than it is worth."""
    sizes = [f"{size / GIB:.1f}" for size in (expected, low, high)]
    return (wording.say(Text("{} GiB ({} to {})", "{} GiB（{} 至 {}）"))).format(*sizes)


def _at(at: AtFailure, wording: Wording) -> Iterator[str]:
    yield wording.say(labels.EXPECTED_HERE, sizes=range_of(at.expected, at.low, at.high, wording), seen=f"{at.seen / GIB:.1f} GiB")
    if at.seen > at.high:
        yield wording.say(labels.ABOVE_EXPECTED, size=f"{(at.seen - at.expected) / GIB:.1f} GiB")


def measured_parts(measured: MeasuredParts | None, wording: Wording) -> Iterator[Block]:
    """Yield the parts of the card where they were measured."""
    if measured is None:
        return
    live = sum(part.bytes for part in measured.parts)
    shown = [part for part in measured.parts if part.bytes >= _LEAST * live or part.meaning is not None][:_ROWS]
    rows = tuple(_row(part, wording) for part in shown)
    title = wording.say(labels.PARTS_AT[measured.at], gpu=measured.device)
    source = labels.PARTS_SOURCE if any(part.expected is not None for part in shown) else labels.PARTS_SOURCE_ALONE
    yield Heading(title)
    yield Facts(rows)
    yield Paragraph((Span(wording.say(source), Style.DIM),))


def _row(part: MeasuredPart, wording: Wording) -> Row:
    about = "≈" if part.source == "derived" and part.bytes else ""
    notes = [] if part.expected is None or not part.expected.bytes else [_expected(part.expected, wording)]
    notes += [wording.say(part.meaning)] if part.meaning is not None else []
    if part.expected is None and part.site is not None:
        notes.append(part.site)
    style = Style.PLAIN if part.meaning is None else Style.WARN
    return Row(wording.say(part.says), about + format_size(part.bytes), wording.semicolon.join(notes), style)


def _expected(expected: ExpectedPart, wording: Wording) -> str:
    return wording.say(labels.PART_EXPECTED, sizes=range_of(expected.bytes, expected.low, expected.high, wording))
