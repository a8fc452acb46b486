"""Plans for a server in words: whether it starts, what would make it start, what each way leaves and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Measure, Obstacle, Plan, Plans
from oomdoctor.case.serving import Served
from oomdoctor.case.text import Text
from oomdoctor.memory.servers.releases import turned_text
from oomdoctor.report.diagnosis.steps import settings
from oomdoctor.report.document import Bar, Bars, Block, Document, Folded, Heading, Paragraph, Span, Step, Steps
from oomdoctor.report.memory.assumed import assumed
from oomdoctor.report.memory.plan import BY_HAND, broken_plans
from oomdoctor.report.memory.serving import end_of, obstacle, served_bar, verdict, whole_of
from oomdoctor.report.memory.start_refusals import refusal_blocks
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB, format_size

_SETTINGS = 10
_TITLES = {
    "memory_share": Text("Different share of the card", "换一个显存份额"),
    "max_model_len": Text("Shorter maximum request length", "缩短单个请求的最大长度"),
    "max_num_seqs": Text("Fewer concurrent requests", "减少并发请求数"),
    "max_batched_tokens": Text("Fewer tokens per step", "减少单步的 token 数"),
    "kv_cache_dtype": Text("8-bit KV cache", "KV 缓存用 8 位"),
    "enforce_eager": Text("No CUDA graphs", "不用 CUDA 图"),
    "tensor_parallel": Text("Tensor parallelism across the available cards", "在现有的卡上做张量并行"),
    "quantization": Text("A quantized checkpoint of the model", "换用该模型的量化版本"),
    "cpu_offload_gb": Text("Some of the weights in host memory", "部分权重放到内存"),
}
_COSTS = {
    "max_model_len": Text("longer requests are rejected", "更长的请求会被拒绝"),
    "max_num_seqs": Text("less throughput under load; more requests wait", "高负载时吞吐下降，更多请求排队"),
    "max_batched_tokens": Text("long prompts are read in more steps", "长提示词要分更多步预填充"),
    "kv_cache_dtype": Text("slightly lower quality on long texts", "长文本上质量略降"),
    "enforce_eager": Text("slower generation, especially for small models", "生成变慢，小模型尤其明显"),
    "tensor_parallel": Text("the cards communicate in every layer", "每层都要在卡间通信"),
    "quantization": Text("a different checkpoint of the same model, and slightly lower quality", "需要同一模型的另一份权重，质量略降"),
    "cpu_offload_gb": Text(
        "much slower, because these weights cross the bus in every step; the host must have the memory",
        "明显变慢，这部分权重每步都要经过总线；内存也要够",
    ),
}
_BARS = Text("How the card is used", "显存去向")
_MORE = Text("less of the card for everything outside the plan", "计划外的部分可用显存变少")
_LESS = Text("a smaller cache", "缓存变小")
_JUDGED = Text(
    "A plan counts if every stage of startup succeeds even with the least memory that may be left, from the first check of "
    "free memory to the CUDA graphs. If the release is not given, the newest is assumed; a plan that an older release does "
    "not start may start, and ranks below one that is certain to.",
    "只有从空闲显存检查到捕获 CUDA 图，启动的每一步按最坏情况也有余量，方案才算可行。未说明版本时按最新版本判断；"
    "在较旧版本上无法启动的方案标为“不一定能启动”，排在一定能启动的方案之后。",
)


def compose(plans: Plans[Served], assumptions: Sequence[Assumption], wording: Wording, version: str) -> Document:
    """Compose the document."""
    title = wording.say(Text("oomdoctor {} plan", "oomdoctor {} 显存规划")).format(version)
    return Document(title=title, blocks=tuple(_blocks(plans, assumptions, wording)), lang=wording.lang)


def _blocks(plans: Plans[Served], assumptions: Sequence[Assumption], wording: Wording) -> Iterator[Block]:
    yield from refusal_blocks(plans.refusals, wording)
    yield Paragraph(tuple(_verdict(plans, wording)))
    rows = [(wording.say(Text("as is", "现在")), plans.now)]
    rows += [(wording.say(Text("plan {}", "方案 {}")).format(n), plan.outcome) for n, plan in enumerate(plans.plans, 1)]
    if plans.obstacle is not None and plans.obstacle.closest.measures:
        rows.append((wording.say(Text("closest", "最接近的")), plans.obstacle.closest.outcome))
    whole = max(whole_of(served) for _, served in rows)
    bars = tuple(_row(label, served, wording, whole) for label, served in rows)
    yield Bars(wording.say(_BARS), bars, end_of(plans.now, wording, whole))
    if plans.plans:
        yield Heading(wording.say(Text("What to change", "怎么改")))
        yield Steps(tuple(_step(plan, plans.now, wording) for plan in plans.plans))
    if plans.by_hand:
        named = [_titles(plan, wording, " + ") for plan in plans.by_hand]
        yield Paragraph((Span(wording.say(BY_HAND) + wording.listed(named) + wording.stop),))
    yield from broken_plans(plans.broken, lambda plan: _titles(plan, wording, " + "), wording)
    if plans.obstacle is not None:
        yield from _obstacle(plans.obstacle, plans, wording)
    yield from assumed(tuple(assumptions), wording)
    weighed = wording.say(Text("{} combinations were compared.", "共比较了 {} 种组合。")).format(plans.combinations)
    texts = [wording.say(_JUDGED), *([weighed] if plans.combinations else [])]
    yield Folded(title=wording.say(Text("How this is decided", "判断依据")), blocks=tuple(Paragraph((Span(text),)) for text in texts))


def _verdict(plans: Plans[Served], wording: Wording) -> Iterator[Span]:
    now = plans.now
    yield verdict(now, wording)
    card = plans.budget.card or wording.say(Text("the card in the log", "日志中的显卡"))
    takes = wording.say(Text(" {} with {} uses {} of {} ({}).", "{} 运行 {}，占用 {}（{}，{}）。"))
    yield Span(takes.format(now.server.program.title, now.setup.shape.name, format_size(now.taken), card, format_size(now.total)))
    if now.failed_check is not None:
        yield Span(wording.blank + obstacle(now, wording))


def _row(label: str, served: Served, wording: Wording, whole: int) -> Bar:
    """Return where the card goes, and what the cache holds, where it starts; else what is missing."""
    value, note = _outcome(served, wording)
    return replace(served_bar(served, wording, whole), title=label, value=value, note=note)


def _outcome(served: Served, wording: Wording) -> tuple[str, str]:
    failed = served.failed_check
    if failed is not None:
        return wording.say(Text("short by up to {:.1f} GiB", "最多缺 {:.1f} GiB")).format(max(0, -failed.spare.low) / GIB), ""
    tokens, each = served.tokens, wording.say(Text("{:.1f} requests of {:,}", "{:.1f} 个长度 {:,} 的请求"))
    holds = wording.say(Text("{:,} tokens ({:,} to {:,})", "{:,} 个 token（{:,} 至 {:,}）")).format(
        tokens.expected, tokens.low, tokens.high
    )
    if served.releases_differ:
        holds = wording.say(Text("may start: {}", "不一定能启动：{}")).format(holds)
    requests = each.format(max(0, served.cache.expected) / served.request, served.server.length) if served.request else ""
    before = "" if served.turned is None else wording.say(turned_text(served.turned))
    return holds, wording.comma.join(filter(None, (requests, before)))


def _step(plan: Plan[Served], now: Served, wording: Wording) -> Step:
    costs = [wording.say(text) for measure in plan.measures if (text := _cost(measure, now)) is not None]
    changes = [setting for measure in plan.measures for setting in measure.settings]
    joined = wording.semicolon
    return Step(
        title=_titles(plan, wording, joined) + wording.stop,
        settings=tuple(settings(changes, wording, _SETTINGS)),
        note=(Span(wording.say(Text("Costs: ", "代价：")) + joined.join(costs) + wording.stop),) if costs else (),
    )


def _titles(plan: Plan[Served], wording: Wording, between: str) -> str:
    return between.join(wording.say(_TITLES[name]) for measure in plan.measures for name, _ in measure.sets)


def _cost(measure: Measure, now: Served) -> Text | None:
    name, value = measure.sets[0]
    if name == "memory_share":
        return _MORE if isinstance(value, float) and value > now.server.memory_fraction else _LESS
    return _COSTS.get(name)


def _obstacle(obstacle: Obstacle[Served], plans: Plans[Served], wording: Wording) -> Iterator[Block]:
    yield Heading(wording.say(Text("What would be enough", "要多少才够")))
    sentences = [wording.say(Text("No combination of settings lets it start on this card.", "在这张卡上，没有哪种设置组合能让它启动。"))]
    if obstacle.card:
        many = plans.now.setup.layout.cards
        single = wording.say(Text("A card like {} would be enough with the closest one.", "按最接近的组合，换成 {} 这样的卡就够用。"))
        several = wording.say(
            Text("{} cards like {} would be enough with the closest one.", "按最接近的组合，换成 {} 张 {} 这样的卡就够用。")
        )
        sentences.append(single.format(obstacle.card) if many == 1 else several.format(many, obstacle.card))
    if obstacle.cards:
        sentences.append(wording.say(Text("Or {} of the current cards.", "或者用 {} 张现在的卡。")).format(obstacle.cards))
    yield Paragraph((Span(wording.blank.join(sentences)),))
    if obstacle.closest.measures:
        yield Steps((_step(obstacle.closest, plans.now, wording),))
