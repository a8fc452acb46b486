"""What a run needs by the memory model where that is more than the card has: a sentence below the cause, with what had to be assumed."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.case import Case
from oomdoctor.case.estimate import Assumption
from oomdoctor.case.expected import Expected
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Facts, Paragraph, Row, Span, Style
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

_PARTS = 3
_A_PART = 0.1
"""Of the need: what is less is not told."""
_DECIDES = ("shape", "finetuning", "weights", "optimizer")
"""Assumptions on which weights, gradients and states rest."""
_NEEDS = Text(
    "By the memory model {model} needs about {need} GiB of each card and the card has {card}: {parts}.",
    "按显存模型估算，{model} 每张卡约需 {need} GiB，而显卡只有 {card} GiB：{parts}。",
)
_SPREAD = Text("{model} on {n} cards", "{model}（{n} 张卡）")
_PART = Text("{name} {size}", "{name} {size}")
_ASSUMED = Text(" Assumed: {}.", "假设：{}。")
_STATED = Text(" This rests on what the report says.", "依据为报告中的说明。")


def needs(case: Case, wording: Wording) -> Iterator[Block]:
    """Yield the sentence; nothing where the run should have fitted, or too little is known to say."""
    expected = case.estimate
    if expected is None or expected.budget is None or expected.fits != "no" or not (expected.is_told or expected.stands_too_large):
        return
    need, card = expected.estimate.expected / GIB, expected.budget.total / GIB
    text = wording.say(_NEEDS).format(
        model=_model(expected, wording), need=f"{need:.0f}" if need >= 10 else f"{need:.1f}", card=f"{card:.1f}", parts=_parts(expected, wording)
    )
    told = [assumption for assumption in expected.assumptions if assumption.id in _DECIDES]
    aside = wording.say(_ASSUMED).format(wording.semicolon.join(wording.say(each.text) for each in told)) if told else ""
    stated = wording.say(_STATED) if case.training is not None and case.training.stated else ""
    yield Paragraph((Span(text), Span(aside + stated, Style.DIM)))


def taken_as_given(expected: Expected | None, wording: Wording) -> Iterator[Block]:
    """Yield all that had to be assumed of a run whose need is told."""
    if expected is not None and expected.stands_too_large and expected.assumptions:
        yield Facts(tuple(_row(assumption, wording) for assumption in expected.assumptions))


def _row(assumption: Assumption, wording: Wording) -> Row:
    return Row(wording.say(Text("assumed", "假设")), wording.say(assumption.text))


def _model(expected: Expected, wording: Wording) -> str:
    setup = expected.estimate.setup
    name = setup.shape.name.rpartition("/")[2]
    return name if setup.layout.cards == 1 else wording.say(_SPREAD).format(model=name, n=setup.layout.cards)


def _parts(expected: Expected, wording: Wording) -> str:
    """Return the largest parts of the peak."""
    estimate = expected.estimate
    terms = sorted(estimate.peak.terms, key=lambda term: -term.bytes)
    large = [term for term in terms if term.bytes >= _A_PART * estimate.expected][:_PARTS]
    named = (wording.say(_PART).format(name=part_name(term.name, wording), size=f"{term.bytes / GIB:.1f}") for term in large)
    return wording.item_comma.join(named)
