"""Plans in words: whether the run fits, what would make it fit, what each way takes and costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import BrokenPlan, Fit, Measure, MemoryBudget, Obstacle, Outcome, Plan, Plans, Risk
from oomdoctor.case.text import Text
from oomdoctor.knowledge.pack import Pack
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.diagnosis.steps import settings
from oomdoctor.report.document import Block, Document, Folded, Heading, Paragraph, Span, Step, Steps, Style
from oomdoctor.report.memory.assumed import assumed
from oomdoctor.report.memory.estimate_bars import estimate_bars
from oomdoctor.report.memory.fits import fits_line, how_judged
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.memory.start_refusals import refusal_blocks
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB, format_size

_BARS = Text("Memory required on one card: expected parts, and the range", "单卡所需显存：各部分估计值及区间")
_SPARE = 0.1
"""GiB between the upper end and the card from which on they are said."""
_SETTINGS = 10
_RISKS: Mapping[Risk, Text | None] = {
    "none": None,
    "slight": Text("slightly lower quality", "质量略降"),
    "different": Text("trains fewer parameters", "可训练的参数变少"),
    "data": Text("truncates samples", "会截断样本"),
}
BY_HAND = Text("Also possible, but part of it you have to write yourself: ", "还有一些办法，但其中一部分要手动改：")
_BROKEN = Text(
    "These would be enough by themselves, but none can be written to the files as they are. Fix the problems named, then plan again.",
    "以下方案本身可行，但按现有文件都无法写入。先改掉所列之处，再重新规划。",
)
_NAMED = Text("{} ({})", "{}（{}）")
_PACES: Mapping[float, Text] = {
    0.33: Text("about a third of the time", "耗时约为现在的三分之一"),
    0.5: Text("about half the time", "耗时约为现在的一半"),
    0.67: Text("about a third less time", "耗时约少三成"),
    0.8: Text("about a fifth less time", "耗时约少两成"),
    0.9: Text("about a tenth less time", "耗时约少一成"),
    1.0: Text("as fast as now", "速度基本不变"),
    1.1: Text("about a tenth slower", "约慢一成"),
    1.2: Text("about a fifth slower", "约慢两成"),
    1.33: Text("about a third slower", "约慢三成"),
    1.5: Text("about half as long again", "约慢五成"),
    1.75: Text("nearly twice the time", "耗时接近现在的 2 倍"),
    2.0: Text("about twice the time", "耗时约为现在的 2 倍"),
    2.5: Text("about two and a half times the time", "耗时约为现在的 2.5 倍"),
}
"""Multiples of the time of an update, as people say them."""
_COARSE = 0.25
"""Beyond the largest of them multiples are whole."""
_TIMES = Text(
    "Times are rough: calculated at one rate, slower for small batches, plus every byte over the bus with no overlap. "
    "Sharding and offloading often look slower here than they are.",
    "耗时只是粗略估算：计算按固定速率，批越小越慢，再加上总线传输，且不考虑重叠。分片和卸载的实际耗时往往比这里短。",
)


def compose(plans: Plans[Estimate], assumptions: Sequence[Assumption], pack: Pack, wording: Wording, version: str) -> Document:
    """Compose the document."""
    blocks = tuple(_blocks(plans, assumptions, pack, wording))
    return Document(
        title=wording.say(Text("oomdoctor {} · plan", "oomdoctor {} · 显存规划")).format(version), blocks=blocks, lang=wording.lang
    )


def _blocks(plans: Plans[Estimate], assumptions: Sequence[Assumption], pack: Pack, wording: Wording) -> Iterator[Block]:
    yield from refusal_blocks(plans.refusals, wording)
    yield Paragraph(tuple(fits_line(Fit(budget=plans.budget, needed=plans.now, fits=plans.fits), wording)))
    rows = [(wording.say(Text("as is", "现在")), plans.now, "")]
    rows += [
        (wording.say(Text("plan {}", "方案 {}")).format(n), plan.outcome, _note(plan, plans.budget, wording))
        for n, plan in enumerate(plans.plans, 1)
    ]
    if plans.obstacle is not None and plans.obstacle.closest.measures:
        closest = plans.obstacle.closest
        rows.append((wording.say(Text("closest", "最接近的")), closest.outcome, _note(closest, plans.budget, wording)))
    yield estimate_bars(wording.say(_BARS), rows, plans.budget, wording)
    if plans.plans:
        yield Heading(wording.say(Text("What to change", "怎么改")))
        yield Steps(tuple(_step(plan, pack, wording) for plan in plans.plans))
    if plans.by_hand:
        named = [
            wording.say(_NAMED).format(_titles(plan.measures, pack, wording, " + "), format_size(plan.outcome.expected))
            for plan in plans.by_hand
        ]
        yield Paragraph((Span(wording.say(BY_HAND) + wording.listed(named) + wording.stop),))
    yield from broken_plans(plans.broken, lambda plan: _titles(plan.measures, pack, wording, " + "), wording)
    if plans.obstacle is not None:
        yield from _obstacle(plans.obstacle, plans, pack, wording)
    yield from assumed(assumptions, wording)
    yield _judged(plans, wording)


def broken_plans(broken: Sequence[BrokenPlan[Outcome]], titles: Callable[[Plan[Outcome]], str], wording: Wording) -> Iterator[Block]:
    """Yield the plans that the run's files break, each with the file, the setting and what conflicts."""
    if not broken:
        return
    yield Heading(wording.say(Text("What the files do not allow", "被配置文件挡住的方案")))
    yield Paragraph((Span(wording.say(_BROKEN), Style.WARN),))
    places = (wording.comma.join(filter(None, (os.path.basename(each.file), each.key))) for each in broken)
    yield Steps(
        tuple(
            Step(title=titles(each.plan) + wording.stop, note=(Span(f"{place}{wording.colon}{wording.say(each.why)}{wording.stop}"),))
            for each, place in zip(broken, places, strict=True)
        )
    )


def _note(plan: Plan[Estimate], budget: MemoryBudget, wording: Wording) -> str:
    """Say what a plan costs and leaves."""
    notes = [] if plan.time is None else [pace(plan.time, wording)]
    notes += [wording.say(risk)] if (risk := _RISKS[plan.risk]) else []
    spare = (budget.usable - plan.outcome.high) / GIB
    notes += [wording.say(Text("{:.1f} GiB to spare", "余量 {:.1f} GiB")).format(spare)] if spare >= _SPARE else []
    host = plan.outcome.host
    notes += [wording.say(Text("{} of host memory", "占用内存 {}")).format(format_size(host))] if host else []
    return wording.comma.join(notes)


def _range(estimate: Estimate, wording: Wording) -> str:
    return range_of(estimate.expected, estimate.low, estimate.high, wording)


def pace(time: float, wording: Wording) -> str:
    """Say in a word how much longer an update takes, no finer than the model of time is."""
    nearest = min(_PACES, key=lambda pace: abs(pace - time))
    if time <= max(_PACES) + _COARSE:
        return wording.say(_PACES[nearest])
    return wording.say(Text("about {:.0f} times the time", "耗时约为现在的 {:.0f} 倍")).format(time)


def _step(plan: Plan[Estimate], pack: Pack, wording: Wording) -> Step:
    fixes = [record for fix in _fixes(plan.measures) if (record := pack.fix(fix)) is not None]
    changes = [setting for measure in plan.measures for setting in measure.settings]
    costs = [wording.sentence(wording.say(fix.costs)) for fix in fixes if fix.costs is not None]
    return Step(
        title=_titles(plan.measures, pack, wording) + wording.stop,
        settings=tuple(settings(changes, wording, _SETTINGS)),
        note=(Span(wording.say(Text("Costs: ", "代价：")) + wording.blank.join(costs)),) if costs else (),
    )


def _titles(measures: Sequence[Measure], pack: Pack, wording: Wording, mark: str | None = None) -> str:
    """Join the titles of the fixes, by default by a semicolon."""
    titles = [bare(wording.say(record.title)) for fix in _fixes(measures) if (record := pack.fix(fix)) is not None]
    return (wording.semicolon if mark is None else mark).join(titles)


def _fixes(measures: Sequence[Measure]) -> tuple[str, ...]:
    """Return the fixes of a plan, each once."""
    return tuple(dict.fromkeys(measure.fix for measure in measures))


def _obstacle(obstacle: Obstacle[Estimate], plans: Plans[Estimate], pack: Pack, wording: Wording) -> Iterator[Block]:
    yield Heading(wording.say(Text("What would be enough", "要多少才够")))
    close = obstacle.fits == "close"
    least = (
        wording.say(
            Text(
                "No combination of settings is certain to fit. The smallest may fit: it needs {}; its largest part is {}.",
                "没有哪种设置组合一定放得下。需求最小的一种有可能放得下：{}，其中最大的一项：{}。",
            )
        )
        if close
        else wording.say(
            Text(
                "No combination of settings fits. The smallest needs {}; its largest part is {}.",
                "没有哪种设置组合放得下。需求最小的一种也要 {}，其中最大的一项：{}。",
            )
        )
    )
    sentences = [least.format(_range(obstacle.closest.outcome, wording), part_name(obstacle.closest.outcome.largest_term.name, wording))]
    cards = plans.now.setup.layout.cards
    if obstacle.card and obstacle.card != obstacle.card_now:
        sentences.append(
            wording.say(Text("It is certain to fit on {}.", "换成{}，这一种一定放得下。")).format(_cards(cards, obstacle.card, wording))
        )
    if (now := obstacle.card_now) is not None:
        sentences.append(
            wording.say(Text("Without any changes, the run fits on {}.", "换成{}，什么都不改也放得下。")).format(
                _cards(cards, now, wording)
            )
        )
    yield Paragraph((Span(wording.blank.join(sentences)),))
    steps = (
        [_titled(obstacle.closest, wording.say(Text("The combination that needs the least: {}", "需求最小的组合：{}")), pack, wording)]
        if obstacle.closest.measures
        else []
    )
    if obstacle.on_cards is not None:
        more = wording.say(Text(f"With {obstacle.cards} of these cards: {{}}", f"用 {obstacle.cards} 张这样的卡：{{}}"))
        steps.append(_titled(obstacle.on_cards, more, pack, wording))
    if steps:
        yield Steps(tuple(steps))


def _cards(number: int, name: str, wording: Wording) -> str:
    if number == 1:
        return wording.say(Text(f"a card like {name}", f" {name} 这样的卡"))
    return wording.say(Text(f"{number} cards like {name}", f" {number} 张 {name} 这样的卡"))


def _titled(plan: Plan[Estimate], title: str, pack: Pack, wording: Wording) -> Step:
    """Return a plan with its purpose before its title."""
    step = _step(plan, pack, wording)
    return replace(step, title=title.format(step.title) if plan.measures else bare(title.format("")).rstrip(":：") + wording.stop)


def _judged(plans: Plans[Estimate], wording: Wording) -> Folded:
    weighed = wording.say(Text("{} combinations were compared.", "共比较了 {} 种组合。")).format(plans.combinations)
    kept = wording.say(
        Text(
            "The log shows {} more than the settings explain; that amount is kept free.",
            "日志显示的占用比设置能解释的多 {}，规划时已预留。",
        )
    )
    more = [kept.format(f"{plans.budget.unexplained / GIB:.1f} GiB")] if plans.budget.unexplained else []
    texts = [wording.say(_TIMES), *([weighed] if plans.combinations else [])]
    before, after = (tuple(Paragraph((Span(text),)) for text in notes) for notes in (more, texts))
    return Folded(title=wording.say(Text("How this is decided", "判断依据")), blocks=(*before, *how_judged(wording), *after))
