"""What a failed run should have taken, beside what was seen: a line or two below the figures."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.expected import AtFailure, Expected
from oomdoctor.report.document import Block, Paragraph, Span
from oomdoctor.report.wording.phrases import blank
from oomdoctor.report.wording.texts import say
from oomdoctor.units import GIB


def beside_seen(expected: Expected | None, lang: str) -> Iterator[Block]:
    """Compare expected and observed memory at the failure, and the peak where that cannot fit; nothing where settings are unknown."""
    if expected is None or not expected.is_told:
        return
    sentences = list(_at(expected.at, lang)) if expected.at else []
    if expected.fits == "no" and expected.budget is not None:
        estimate = expected.estimate
        sizes = range_of(estimate.expected, estimate.low, estimate.high, lang)
        sentences.append(say("expected-peak", lang, sizes=sizes, card=f"{expected.budget.total / GIB:.1f} GiB"))
    if sentences:
        yield Paragraph((Span(blank(lang).join(sentences)),))


def range_of(expected: int, low: int, high: int, lang: str) -> str:
    """Return a figure and its range in GiB, with no more digits than it is worth."""
    sizes = [f"{size / GIB:.1f}" for size in (expected, low, high)]
    return ("{} GiB（{} 至 {}）" if lang == "zh" else "{} GiB ({} to {})").format(*sizes)


def _at(at: AtFailure, lang: str) -> Iterator[str]:
    yield say("expected-here", lang, sizes=range_of(at.expected, at.low, at.high, lang), seen=f"{at.seen / GIB:.1f} GiB")
    if at.seen > at.high:
        yield say("above-expected", lang, size=f"{(at.seen - at.expected) / GIB:.1f} GiB")
