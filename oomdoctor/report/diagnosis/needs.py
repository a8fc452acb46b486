"""What a run needs by the memory model where that is more than the card has: a sentence below the cause, with what had to be assumed."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.estimate import STANDING, Assumption, Term
from oomdoctor.case.event import Certainty
from oomdoctor.case.expected import Expected
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.certainty import finding_certainty, is_other_failure
from oomdoctor.report.document import Block, Facts, Paragraph, Row, Span, Style
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

_PARTS = 3
_A_PART = 0.1
"""Of the need: what is less is not told."""
_DECIDES = ("shape", "finetuning", "weights", "optimizer")
"""Assumptions on which weights, gradients and states rest."""
_NEEDS = Text(
    "the memory model estimates that {model} needs about {need} GiB on each card; the card has {card}: {parts}.",
    "按显存模型估算，{model}每张卡约需 {need} GiB，而显卡只有 {card} GiB：{parts}。",
)
_STANDS = Text(
    "the memory model estimates that {model} needs about {need} GiB on each card before activations; the card has {card}: {parts}.",
    "按显存模型估算，{model}不算激活值每张卡就约需 {need} GiB，而显卡只有 {card} GiB：{parts}。",
)
_ALONE = Text("{model}", "{model} ")
_SPREAD = Text("{model} on {n} cards", "{model}（{n} 张卡）")
_ASSUMED = Text(" Assumed: {}.", "假设：{}。")
_STATED = Text(" This relies on statements in the report.", "依据为报告中的说明。")


def tells_need(case: Case) -> bool:
    """Return whether the run is known well enough to say that it needs more than the card has."""
    expected = case.estimate
    return (
        expected is not None and expected.budget is not None and expected.fits == "no" and (expected.is_told or expected.stands_too_large)
    )


def needs(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the sentence; nothing where the run should have fitted, or too little is known to say."""
    expected, case = diagnosis.case.estimate, diagnosis.case
    if expected is None or expected.budget is None or not tells_need(case) or is_other_failure(diagnosis):
        return
    parts, whole = (_largest(expected), expected.estimate.expected) if expected.is_told else _standing(expected)
    sentence = wording.say(_NEEDS if expected.is_told else _STANDS).format(
        model=_model(expected, wording),
        need=f"{whole / GIB:.1f}",
        card=f"{expected.budget.total / GIB:.1f}",
        parts=wording.item_comma.join(f"{part_name(term.name, wording)} {term.bytes / GIB:.1f}" for term in parts),
    )
    told = [assumption for assumption in expected.assumptions if assumption.id in _DECIDES]
    aside = wording.say(_ASSUMED).format(wording.semicolon.join(wording.say(each.text) for each in told)) if told else ""
    stated = wording.say(_STATED) if case.training is not None and case.training.stated else ""
    lead = _lead(diagnosis, wording)
    yield Paragraph((*lead, Span(sentence if lead else sentence[:1].upper() + sentence[1:]), Span(aside + stated, Style.DIM)))


def _lead(diagnosis: Diagnosis, wording: Wording) -> tuple[Span, ...]:
    """Return what stands before it where no finding tells the cause: arithmetic of what was said, and nothing that was seen."""
    if not diagnosis.findings or finding_certainty(diagnosis, diagnosis.findings[0]) is not Certainty.POSSIBLE:
        return ()
    return (Span(wording.say(labels.WHY, sure=wording.say(labels.CONFIDENCE[Certainty.LIKELY.value])), Style.STRONG),)


def taken_as_given(expected: Expected | None, wording: Wording) -> Iterator[Block]:
    """Yield all that had to be assumed of a run whose need is told."""
    if expected is not None and expected.stands_too_large and expected.assumptions:
        yield Facts(tuple(_row(assumption, wording) for assumption in expected.assumptions))


def _row(assumption: Assumption, wording: Wording) -> Row:
    return Row(wording.say(Text("assumed", "假设")), wording.say(assumption.text))


def _model(expected: Expected, wording: Wording) -> str:
    setup = expected.estimate.setup
    name = setup.shape.name.rpartition("/")[2]
    return wording.say(_ALONE if setup.layout.cards == 1 else _SPREAD).format(model=name, n=setup.layout.cards)


def _largest(expected: Expected) -> list[Term]:
    """Return the largest parts of the peak."""
    terms = sorted(expected.estimate.peak.terms, key=lambda term: -term.bytes)
    return [term for term in terms if term.bytes >= _A_PART * expected.estimate.expected][:_PARTS]


def _standing(expected: Expected) -> tuple[list[Term], int]:
    """Return what stands on the card throughout the fullest phase, whatever batch and length are, and its sum."""
    phases = [[term for term in phase.terms if term.name in STANDING] for phase in expected.estimate.phases]
    fullest = max(phases, key=lambda terms: sum(term.bytes for term in terms))
    whole = sum(term.bytes for term in fullest)
    return sorted((term for term in fullest if term.bytes >= _A_PART * whole), key=lambda term: -term.bytes), whole
