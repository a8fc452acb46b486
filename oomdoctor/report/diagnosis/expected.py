"""What a failed run should have taken, beside what was seen: a line or two below the figures."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.expected import AtFailure, Expected
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Paragraph, Span
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB


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
