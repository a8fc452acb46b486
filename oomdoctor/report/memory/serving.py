"""What a server makes of a card, in words: whether it starts, at which message it would end, where its share goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.estimate import Term
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.serving import ByteRange, Served, StartupCheck
from oomdoctor.case.text import Text
from oomdoctor.report.document import Bar, Bars, Block, Document, Facts, Folded, Heading, Mark, Paragraph, Row, Slice, Span, Style
from oomdoctor.report.memory.assumed import assumed, taken
from oomdoctor.report.memory.estimate_bars import BY_PHASE, CARD, phase_slices
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.memory.start_refusals import MEMORY_ALONE, refusal_blocks
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB, format_share, format_size

_STARTS = {
    "yes": (Text("It starts.", "可以启动。"), Style.GOOD),
    "close": (Text("Whether it starts is too close to call.", "余量太小，难以断定能否启动。"), Style.WARN),
    "differs": (Text("Whether it starts depends on the release.", "能否启动取决于版本。"), Style.WARN),
    "no": (Text("It does not start.", "无法启动。"), Style.BAD),
}
_OBSTACLES = {
    "start": Text("the card has less free memory than the share requires", "启动时空闲显存少于要求的份额"),
    "load": Text("the weights do not fit on the card", "权重放不进这张卡"),
    "profile": Text("the profiling run does not fit alongside the weights", "权重之外放不下试运行的那一步"),
    "sampler": Text("the sampler warm-up with all requests at once does not fit", "所有请求同时采样的试运行放不下"),
    "blocks": Text("nothing in the share is left for the KV cache", "份额里没有剩余显存留给 KV 缓存"),
    "request": Text("the KV cache cannot hold one full-length request", "KV 缓存放不下一个最大长度的请求"),
    "states": Text("the KV cache has too few blocks for the states of all concurrent requests", "KV 缓存的块数少于并发请求所需的状态数"),
    "graphs": Text("CUDA graphs do not fit outside the share", "份额之外放不下 CUDA 图"),
    "rest": Text("one step does not fit outside the share", "份额之外放不下单步计算"),
}
_DECIDING = frozenset({"gpu", "shape", "weights", "memory_share", "max_model_len", "server_version", "framework_version"})
"""Assumptions that decide what a server can hold, whatever runs on it."""
_OPEN_REQUEST = Text(
    "The cache holds {} tokens. The longest request for this model is not known here, and the server does not start if the "
    "cache holds less: set --max-model-len.",
    "缓存可容纳 {} 个 token。这里不知道该模型单个请求最长多少 token，而缓存放不下最长请求时无法启动：请给出 --max-model-len。",
)
_FEWER = 1.1
"""How much larger a token of the log must be than one of a request for the two to be counted in different ways: blocks are rounded up."""
_OUT_OF_MEMORY = "CUDA out of memory"
_PHASES = {
    "load": Text("loading the model", "加载模型"),
    "profile": Text("profiling run", "试运行一步"),
    "serving": Text("serving", "提供服务"),
}


def compose(served: Served, wording: Wording, version: str, refusals: Sequence[StartupRefusal] = ()) -> Document:
    """Compose the document; `refusals` are the checks of settings that come before any memory is taken."""
    title = wording.say(Text("oomdoctor {} · estimate", "oomdoctor {} · 显存估计")).format(version)
    return Document(title=title, blocks=tuple(_blocks(served, wording, refusals)), lang=wording.lang)


def _blocks(served: Served, wording: Wording, refusals: Sequence[StartupRefusal]) -> Iterator[Block]:
    yield from refusal_blocks(refusals, wording)
    first, *rest = _headline(served, wording)
    yield Paragraph((Span(wording.say(MEMORY_ALONE) + wording.blank) if refusals else Span(""), first, *rest))
    if named := [assumption for assumption in served.assumptions if assumption.id in _DECIDING]:
        yield Paragraph((Span(taken(named, wording)),))
    yield served_bar(served, wording)
    yield Facts(tuple(_share(served, wording)))
    yield Heading(wording.say(Text("Outside the share", "份额之外")))
    yield Facts(tuple(_beside(served, wording)))
    yield Heading(wording.say(Text("Phases", "各阶段")))
    yield _phases(served, wording)
    yield from assumed(served.assumptions, wording)
    yield Folded(
        title=wording.say(Text("Sources of the formulas", "公式来源")),
        blocks=(Facts(tuple(Row(part_name(term.name, wording), term.basis) for term in (*served.terms, *served.beside))),),
    )


def verdict(served: Served, wording: Wording) -> Span:
    """Say whether it starts."""
    text, style = _STARTS["differs" if served.releases_differ else served.starts]
    return Span(wording.say(text), style)


def obstacle(served: Served, wording: Wording) -> str:
    """Say which check it fails or may fail, and how the log ends then; empty where it starts."""
    check = served.failed_check
    if check is None:
        return ""
    message = served.server.program.messages.get(check.name, _OUT_OF_MEMORY)
    message = message.format(requests=served.server.requests, length=served.server.length, batched=served.server.batched)
    ends = wording.say(Text(" The log then ends with “{}”.", "日志会以“{}”结束。")).format(message)
    return shortage(check, wording) + ends


def shortage(check: StartupCheck, wording: Wording) -> str:
    """Say which check it fails or may fail, and how much is missing."""
    surely = check.passes == "no"
    what, lacking = wording.say(_OBSTACLES[check.name]), _lacking(check, wording)
    if wording.is_chinese:
        return f"{'会卡在' if surely else '可能卡在'}这里：{what}（{lacking}）。"
    return f"It {'fails' if surely else 'may fail'} because {what} ({lacking})."


def served_bar(served: Served, wording: Wording, whole: int | None = None) -> Bar:
    """Return where the card goes: the parts of the share, what is beside it, what is free, or where it ends.

    They are shares of `whole` bytes; where it is not given, of what `whole_of` says.
    """
    whole = whole or whole_of(served)
    parts = [(part_name(name, wording), size) for name, size in _parts(served)]
    shown = [Slice(name, format_size(size), size / whole) for name, size in sorted(parts, key=lambda part: -part[1]) if size]
    free = served.total - sum(size for _, size in parts)
    if free > 0:
        shown.append(Slice(wording.say(Text("free", "空闲")), format_size(free), free / whole, Style.GOOD))
    return Bar(title=served.card, slices=tuple(shown), mark=end_of(served, wording, whole))


def end_of(served: Served, wording: Wording, whole: int) -> Mark | None:
    """Return where the card ends, if more than it is drawn."""
    return Mark(served.total / whole, wording.say(CARD, size=format_size(served.total))) if whole > served.total else None


def whole_of(served: Served) -> int:
    """Return the bytes of the card, or of all parts where they are more."""
    return max(served.total, sum(size for _, size in _parts(served)))


def _parts(served: Served) -> list[tuple[str, int]]:
    """Return the parts by the names of their terms."""
    return [*((term.name, term.bytes) for term in (*served.terms, *served.beside)), ("kv cache", max(0, served.cache.expected))]


def _lacking(check: StartupCheck, wording: Wording) -> str:
    """Say what is missing, from the least to the most."""
    least, most = (f"{max(0, -size) / GIB:.1f}" for size in (check.spare.high, check.spare.low))
    if least == most:
        return wording.say(Text("short by {} GiB", "缺 {} GiB")).format(most)
    return wording.say(Text("short by {} to {} GiB", "缺 {} 至 {} GiB")).format(least, most)


def _headline(served: Served, wording: Wording) -> Iterator[Span]:
    yield verdict(served, wording)
    yield Span(wording.say(Text(" {} serving {} uses {} of {}. ", "{} 运行 {}，占用 {}（{}）。")).format(*_named(served)))
    failure = obstacle(served, wording)
    if failure:
        yield Span(failure + wording.blank)
    if served.cache.expected > 0:
        yield Span(_holds(served, wording))


def _named(served: Served) -> tuple[str, ...]:
    return served.server.program.title, served.setup.shape.name, format_size(served.taken), served.card


def _holds(served: Served, wording: Wording) -> str:
    """Say how many tokens the cache holds, and how many requests that are."""
    tokens = _counted(served.tokens, wording)
    if served.request_is_open:
        return wording.say(_OPEN_REQUEST).format(tokens)
    if served.request is None or served.server.length is None:
        return wording.say(
            Text(
                "The cache holds {} tokens, which is also the maximum request length.", "缓存可容纳 {} 个 token，这也是单个请求的长度上限。"
            )
        ).format(tokens)
    number = f"{max(0, served.cache.expected) / served.request:.1f}"
    holds = wording.say(
        Text(
            "The cache holds {0} tokens, as the log counts them by the blocks of one group of layers: {1} requests of {2:,} tokens.",
            "缓存可容纳 {0} 个 token（日志按其中一组层的块数统计），相当于 {1} 个长度为 {2:,} 的请求。",
        )
        if served.token > _FEWER * served.full_token
        else Text("The cache holds {} tokens: {} requests of {:,} tokens.", "缓存可容纳 {} 个 token，相当于 {} 个长度为 {:,} 的请求。")
    )
    short = (
        wording.say(Text(" Requests longer than the cache are rejected.", "放不进缓存的请求会被拒绝。"))
        if served.cache.expected < served.request
        else ""
    )
    return holds.format(tokens, number, served.server.length) + (short if served.starts == "yes" else "")


def _counted(size: ByteRange, wording: Wording) -> str:
    return wording.say(Text("{:,} ({:,} to {:,})", "{:,}（{:,} 至 {:,}）")).format(size.expected, size.low, size.high)


def _phases(served: Served, wording: Wording) -> Bars:
    """Return a bar for each phase, all in the scale of the largest."""
    whole = max(1, *(phase.bytes for phase in served.phases))
    bars = tuple(
        Bar(wording.say(_PHASES[phase.name]), phase_slices(phase, whole, wording), value=format_size(phase.bytes))
        for phase in served.phases
    )
    return Bars(wording.say(BY_PHASE), bars, parts=tuple(part.label for part in served_bar(served, wording).slices))


def _share(served: Served, wording: Wording) -> Iterator[Row]:
    """Yield where the share goes."""
    key = served.server.program.fraction_option
    yield Row(wording.say(Text("used on the card", "占用显存")), format_size(served.taken), f"{key} {served.server.memory_fraction:g}")
    yield from (_term(term, wording) for term in served.terms)
    cache = served.cache
    yield Row(
        wording.say(Text("left for the KV cache", "留给 KV 缓存")),
        format_size(cache.expected),
        _range(cache.low, cache.high, wording),
        Style.PLAIN if cache.low > 0 else Style.BAD,
    )
    yield Row(wording.say(Text("tokens in the cache", "缓存可容纳的 token")), f"{served.tokens.expected:,}", _each(served, wording))
    if served.request is not None:
        requests = f"{max(0, served.cache.expected) / served.request:.1f}"
        note = wording.say(Text("{} each, of {:,} tokens", "每个 {}，长度 {:,}")).format(format_size(served.request), served.server.length)
        yield Row(wording.say(Text("full-length requests", "最大长度的请求数")), requests, note)


def _each(served: Served, wording: Wording) -> str:
    return wording.say(Text("{} each", "每个 {}")).format(format_size(round(served.token)))


def _beside(served: Served, wording: Wording) -> Iterator[Row]:
    yield from (_term(term, wording) for term in served.beside)
    left = served.total - served.taken - sum(term.bytes for term in served.beside)
    share = format_share(left / served.total) if served.total else ""
    yield Row(wording.say(Text("left on the card", "显卡剩余")), format_size(left), share, Style.PLAIN if left >= 0 else Style.BAD)


def _term(term: Term, wording: Wording) -> Row:
    return Row(part_name(term.name, wording), format_size(term.bytes), _range(term.low, term.high, wording))


def _range(low: int, high: int, wording: Wording) -> str:
    return wording.say(Text("{} to {}", "{} 至 {}")).format(format_size(low), format_size(high))
