"""What the arithmetic says of a run that somebody describes without a log: does it fit, what fills it, what to change."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.case import Case
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.expected import Told
from oomdoctor.case.plan import Fit, Plans
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.diagnosis.serving_expected import beside_printed
from oomdoctor.report.diagnosis.steps import settings
from oomdoctor.report.document import Block, Heading, Paragraph, Span, Step, Steps, Style
from oomdoctor.report.issue.missing_info import wanted_list
from oomdoctor.report.memory.fits import fits_line
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_PARTS = 4
_SETTINGS = 4
_LEAD = Text("Calculated from the description: ", "按文中所说的配置推算：")
_FILLS = Text("Expected use of the card: {parts}.", "占用显存的是：{parts}。")
_PART = Text("{name} {size}", "{name} {size}")
_FITS_SO = Text(
    "So something not described is using the card: another process, longer samples, a larger batch, or an evaluation. The log shows which.",
    "所以另有文中没提到的东西占满了显存：别的进程、更长的样本、更大的批，或者评测阶段。日志可以说明是哪一种。",
)
_WITH = Text("All of them together: {sizes}.", "全部改完后需要 {sizes}。")
_CLOSEST = Text(
    "No settings are certain to be enough; these come closest, with {sizes}.", "没有一定够用的设置组合；以上最接近，需要 {sizes}。"
)
_FOUR_BITS = 0.28
"""4 bits and their scales (AWQ, GPTQ, Q4_K_M: 4.25 to 4.85 bits a weight), of 16."""
_PACKED = Text(
    "The weights alone do not fit; in 4-bit (AWQ, GPTQ, GGUF) they need about {size}. Otherwise use a smaller model.",
    "光是权重就放不下；用 4 位量化版本（AWQ、GPTQ、GGUF）约需 {size}。否则换小一些的模型。",
)
_CARDS = Text("With {n} of these cards, a plan fits.", "用 {n} 张这样的卡就有放得下的方案。")
_BIGGER = Text("Without any changes, it fits on a card like {card}.", "什么都不改，换成 {card} 这样的卡也放得下。")
_ASSUMED = Text("Not stated, so assumed: {list}.", "文中没有说明，按此假设：{list}。")


def budget_blocks(case: Case, wording: Wording) -> Iterator[Block]:
    """Yield what the arithmetic says beside a log of a server, folded, or in place of a log, with what would help to say more."""
    if case.served is not None and case.incidents:
        yield beside_printed(case.served, wording)
    if case.told is not None:
        yield from told_blocks(case.told, wording)
        listed = "" if case.incidents else wanted_list(case, wording)
        if listed:
            yield Paragraph(spans(wording.say(labels.WANTED, list=listed)))


def told_blocks(told: Told, wording: Wording, *, heading: bool = True) -> Iterator[Block]:
    """Yield the answer of the arithmetic; nothing where model, card or method are not told."""
    plans = told.plans
    if plans is None:
        return
    fit = Fit(budget=plans.budget, needed=plans.now, fits=plans.fits)
    yield Paragraph((Span(wording.say(_LEAD)), *fits_line(fit, wording)))
    yield Paragraph((Span(wording.say(_FILLS, parts=_parts(plans.now, wording))), *_fits_so(plans, wording)))
    assumed = [wording.say(assumption.text) for assumption in plans.now.assumptions if assumption.is_question]
    if assumed:
        yield Paragraph((Span(wording.say(_ASSUMED, list=wording.listed(assumed)), Style.DIM),))
    obstacle = plans.obstacle
    if obstacle is not None and not told.changes:
        yield Paragraph((Span(wording.blank.join(_enough(plans, wording))),))
    if told.changes:
        if heading:
            yield Heading(wording.say(labels.NEXT))
        yield Steps(
            tuple(
                Step(title=wording.sentence(wording.say(change.title)), settings=tuple(settings(change.settings, wording, _SETTINGS)))
                for change in told.changes
            )
        )
        yield Paragraph((Span(wording.blank.join(_outcome(plans, wording))),))


def _fits_so(plans: Plans[Estimate], wording: Wording) -> Iterator[Span]:
    if plans.fits == "yes":
        yield Span(wording.blank + wording.say(_FITS_SO))


def _parts(estimate: Estimate, wording: Wording) -> str:
    largest = sorted(estimate.peak.terms, key=lambda term: -term.bytes)[:_PARTS]
    return wording.item_comma.join(
        wording.say(_PART, name=part_name(term.name, wording), size=format_size(term.bytes)) for term in largest if term.bytes
    )


def _outcome(plans: Plans[Estimate], wording: Wording) -> Iterator[str]:
    """Yield what the changes come to, and what else would be enough."""
    obstacle = plans.obstacle
    outcome = plans.plans[0].outcome if plans.plans else obstacle.closest.outcome if obstacle is not None else plans.now
    sizes = range_of(outcome.expected, outcome.low, outcome.high, wording)
    yield wording.say(_WITH if plans.plans else _CLOSEST, sizes=sizes)
    yield from _enough(plans, wording)


def _enough(plans: Plans[Estimate], wording: Wording) -> Iterator[str]:
    """Yield what would be enough where no settings are: fewer bits, more cards, another card."""
    obstacle, now = plans.obstacle, plans.now
    if obstacle is None:
        return
    if now.setup.task == "infer" and now.terms.get("weights", 0) > plans.budget.usable and not now.setup.weights.packed:
        yield wording.say(_PACKED, size=format_size(int(now.terms["weights"] * _FOUR_BITS)))
    if obstacle.cards is not None:
        yield wording.say(_CARDS, n=obstacle.cards)
    if obstacle.card_now is not None:
        yield wording.say(_BIGGER, card=obstacle.card_now)
