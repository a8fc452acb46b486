"""Plans in words: whether the run fits, what would make it fit, what each way takes and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import Fit, Measure, MemoryBudget, Obstacle, Plan, Plans, Risk
from oomdoctor.case.text import Text
from oomdoctor.knowledge.pack import Pack
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.diagnosis.steps import settings
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Step, Steps
from oomdoctor.report.memory.estimate import part_name
from oomdoctor.report.memory.fits import fits_line, how_judged
from oomdoctor.report.wording.phrases import bare, blank, comma, stop, stopped
from oomdoctor.units import GIB, format_size

_CELLS = 20
_SPARE = 0.1
"""GiB between the upper end and the card from which on they are said."""
_SETTINGS = 10
_RISKS: Mapping[Risk, Text | None] = {
    "none": None,
    "slight": Text("a little quality", "质量略降"),
    "different": Text("trains fewer parameters", "可训练的参数变少"),
    "data": Text("cuts samples", "会截断样本"),
}
_TIMES = Text(
    "Times are rough: arithmetic at one rate, slower for small batches, plus every byte over the bus with nothing overlapping. "
    "Sharding and offloading look slower here than they often are.",
    "耗时只是粗略估算：计算按固定速率，批越小越慢，再加上总线传输，且不考虑重叠。分片和卸载的实际耗时往往比这里短。",
)


def compose(plans: Plans[Estimate], assumptions: Sequence[Assumption], pack: Pack, lang: str, version: str) -> Document:
    """Compose the document in `lang`."""
    blocks = tuple(_blocks(plans, assumptions, pack, lang))
    return Document(title=_say(lang, "oomdoctor {} · plan", "oomdoctor {} · 显存规划").format(version), blocks=blocks, lang=lang)


def _blocks(plans: Plans[Estimate], assumptions: Sequence[Assumption], pack: Pack, lang: str) -> Iterator[Block]:
    yield Paragraph(tuple(fits_line(Fit(budget=plans.budget, needed=plans.now, fits=plans.fits), lang)))
    rows = [_row(_say(lang, "as it is", "现在"), plans.now, None, plans.budget, lang)]
    rows += [
        _row(_say(lang, "plan {}", "方案 {}").format(n), plan.outcome, plan, plans.budget, lang) for n, plan in enumerate(plans.plans, 1)
    ]
    if plans.obstacle is not None and plans.obstacle.closest.measures:
        rows.append(_row(_say(lang, "closest", "最接近的"), plans.obstacle.closest.outcome, plans.obstacle.closest, plans.budget, lang))
    yield Facts(tuple(rows))
    if plans.plans:
        yield Heading(_say(lang, "What to change", "怎么改"))
        yield Steps(tuple(_step(plan, pack, lang) for plan in plans.plans))
    if plans.obstacle is not None:
        yield from _obstacle(plans.obstacle, plans, pack, lang)
    if assumptions:
        yield Heading(_say(lang, "Assumed, as nobody said it", "以下未说明，按此假设"))
        yield Facts(tuple(Row(label=assumption.id, value=assumption.text.get(lang)) for assumption in assumptions))
    yield _judged(plans, lang)


def _row(label: str, estimate: Estimate, plan: Plan[Estimate] | None, budget: MemoryBudget, lang: str) -> Row:
    notes = []
    if plan is not None:
        notes += [*([] if plan.time is None else [_time(plan.time, lang)]), *([risk.get(lang)] if (risk := _RISKS[plan.risk]) else [])]
        spare = (budget.usable - estimate.high) / GIB
        notes += [_say(lang, "{:.1f} GiB to spare", "余量 {:.1f} GiB").format(spare)] if spare >= _SPARE else []
        notes += [_say(lang, "{} of host memory", "占用内存 {}").format(format_size(estimate.host))] if estimate.host else []
    return Row(label=label, value=f"{_drawn(estimate, budget)}  {_range(estimate, lang)}", note=comma(lang).join(notes))


def _drawn(estimate: Estimate, budget: MemoryBudget) -> str:
    """Draw the card as a bar: what is expected, what it may be at most, what is free."""
    usable = budget.usable
    filled, most = (min(_CELLS, -(-size * _CELLS // usable)) for size in (estimate.expected, estimate.high))
    return "█" * filled + "▒" * (most - filled) + "·" * (_CELLS - most)


def _range(estimate: Estimate, lang: str) -> str:
    return range_of(estimate.expected, estimate.low, estimate.high, lang)


def _time(time: float, lang: str) -> str:
    if abs(time - 1) < 0.05:
        return _say(lang, "as fast as now", "速度基本不变")
    return _say(lang, "about {:.1f} times the time", "耗时约为现在的 {:.1f} 倍").format(time)


def _step(plan: Plan[Estimate], pack: Pack, lang: str) -> Step:
    fixes = [record for fix in _fixes(plan.measures) if (record := pack.fix(fix)) is not None]
    changes = [setting for measure in plan.measures for setting in measure.settings]
    costs = [stopped(fix.costs.get(lang), lang) for fix in fixes if fix.costs is not None]
    return Step(
        title=_titles(plan.measures, pack, lang) + stop(lang),
        settings=tuple(settings(changes, lang, _SETTINGS)),
        note=(Span(_say(lang, "Costs: ", "代价：") + blank(lang).join(costs)),) if costs else (),
    )


def _titles(measures: Sequence[Measure], pack: Pack, lang: str) -> str:
    """Join the titles of the fixes."""
    titles = [bare(record.title.get(lang)) for fix in _fixes(measures) if (record := pack.fix(fix)) is not None]
    return ("；" if lang == "zh" else "; ").join(titles)


def _fixes(measures: Sequence[Measure]) -> tuple[str, ...]:
    """Return the fixes of a plan, each once."""
    return tuple(dict.fromkeys(measure.fix for measure in measures))


def _obstacle(obstacle: Obstacle[Estimate], plans: Plans[Estimate], pack: Pack, lang: str) -> Iterator[Block]:
    yield Heading(_say(lang, "What would be enough", "要多少才够"))
    close = obstacle.fits == "close"
    least = (
        _say(
            lang,
            "No combination of settings is sure to fit. The one that needs the least may: {}; the largest part of it: {}.",
            "没有哪种设置组合一定放得下。需求最小的一种有可能放得下：{}，其中最大的一项：{}。",
        )
        if close
        else _say(
            lang,
            "No combination of settings fits. The one that needs the least takes {}; the largest part of it: {}.",
            "没有哪种设置组合放得下。需求最小的一种也要 {}，其中最大的一项：{}。",
        )
    )
    sentences = [least.format(_range(obstacle.closest.outcome, lang), part_name(obstacle.closest.outcome.largest_term.name, lang))]
    cards = plans.now.setup.layout.cards
    if obstacle.card and obstacle.card != obstacle.card_now:
        sentences.append(_say(lang, "It is sure to fit on {}.", "换成{}，这一种一定放得下。").format(_cards(cards, obstacle.card, lang)))
    if (now := obstacle.card_now) is not None:
        sentences.append(
            _say(lang, "Without any change the run fits on {}.", "换成{}，什么都不改也放得下。").format(_cards(cards, now, lang))
        )
    yield Paragraph((Span(blank(lang).join(sentences)),))
    steps = (
        [_titled(obstacle.closest, _say(lang, "The one that needs the least: {}", "需求最小的组合：{}"), pack, lang)]
        if obstacle.closest.measures
        else []
    )
    if obstacle.on_cards is not None:
        more = _say(lang, f"With {obstacle.cards} of these cards: {{}}", f"用 {obstacle.cards} 张这样的卡：{{}}")
        steps.append(_titled(obstacle.on_cards, more, pack, lang))
    if steps:
        yield Steps(tuple(steps))


def _cards(number: int, name: str, lang: str) -> str:
    if number == 1:
        return _say(lang, f"a card like {name}", f" {name} 这样的卡")
    return _say(lang, f"{number} cards like {name}", f" {number} 张 {name} 这样的卡")


def _titled(plan: Plan[Estimate], title: str, pack: Pack, lang: str) -> Step:
    """Return a plan with its purpose before its title."""
    step = _step(plan, pack, lang)
    return replace(step, title=title.format(step.title) if plan.measures else bare(title.format("")).rstrip(":：") + stop(lang))


def _judged(plans: Plans[Estimate], lang: str) -> Folded:
    weighed = _say(lang, "{} combinations were weighed.", "共比较了 {} 种组合。").format(plans.combinations)
    kept = _say(
        lang, "The log shows {} more than the settings explain; so much is kept free.", "日志显示的占用比设置能解释的多 {}，规划时已预留。"
    )
    more = [kept.format(f"{plans.budget.unexplained / GIB:.1f} GiB")] if plans.budget.unexplained else []
    texts = [_TIMES.get(lang), *([weighed] if plans.combinations else [])]
    before, after = (tuple(Paragraph((Span(text),)) for text in notes) for notes in (more, texts))
    return Folded(title=_say(lang, "How this is judged", "判断依据"), blocks=(*before, *how_judged(lang), *after))


def _say(lang: str, en: str, zh: str) -> str:
    return zh if lang == "zh" else en
