"""A failed server's budget: each part as the arithmetic expects it, beside what the log shows."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.serving import ServedRun
from oomdoctor.case.text import Text
from oomdoctor.report.document import Facts, Folded, Paragraph, Row, Span
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.memory.serving import shortage
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share, format_size

_GRAPHS = "cuda graphs"


def beside_printed(served_run: ServedRun, wording: Wording) -> Folded:
    """Return the share, its parts and the cache, folded."""
    told = _judged(served_run, wording)
    blocks = (Facts(tuple(_rows(served_run, wording))), Paragraph((Span(told),)))
    return Folded(wording.say(Text("The server's budget", "服务的显存预算")), blocks, told)


def _judged(served_run: ServedRun, wording: Wording) -> str:
    """Say which check it fails by these figures; where it should have started, that something is not counted."""
    check = served_run.served.failed_check
    if check is not None:
        failure = shortage(check, wording)
        return f"按这些数字，{failure}" if wording.is_chinese else f"By these figures {failure[0].lower()}{failure[1:]}"
    if served_run.has_served:
        return wording.say(
            Text(
                "By these figures it starts, and it had been answering: the failed request came on top of them.",
                "按这些数字能够启动，而且服务已经应答过：失败的是此外又申请的部分。",
            )
        )
    missing = wording.say(
        Text(
            "By these figures {} should have started: something else was using the card, or it used more than is counted here.",
            "按这些数字，{} 本应能启动：卡上可能有其他占用，或者某处用掉了这里没有计入的显存。",
        )
    )
    return missing.format(served_run.expected.server.program.title)


def _rows(served_run: ServedRun, wording: Wording) -> Iterator[Row]:
    served = served_run.expected
    share = format_share(served.server.memory_fraction)
    of = (
        wording.say(Text("{} of {}", "{}，显卡共 {}"))
        if served_run.total_is_known
        else wording.say(Text("{} of {}, calculated from the log", "{}，显卡由日志推算为 {}"))
    )
    yield Row(wording.say(Text("used on the card", "占用显存")), format_size(served.taken), of.format(share, format_size(served.total)))
    worked_out = not served_run.total_is_known and "kv cache" in served_run.seen
    for name, size in (
        *((term.name, term.bytes) for term in served.terms),
        *(() if worked_out else (("kv cache", served.cache.expected),)),
    ):
        yield Row(part_name(name, wording), format_size(size), _seen(served_run, name, wording))
    if worked_out:
        yield Row(part_name("kv cache", wording), format_size(served_run.seen["kv cache"]), wording.say(Text("seen", "日志所示")))
    beside = next((term.bytes for term in served.beside if term.name == _GRAPHS), None)
    if beside is not None and _GRAPHS in served_run.seen:
        yield Row(part_name(_GRAPHS, wording), format_size(beside), _seen(served_run, _GRAPHS, wording))
    if served_run.seen_tokens is not None and served.full_tokens and not worked_out:
        tokens = wording.say(Text("{:,} tokens", "{:,} 个 token"))
        shows = wording.say(Text("the log shows {}", "日志显示 {}")).format(tokens.format(served_run.seen_tokens))
        yield Row(wording.say(Text("tokens in the cache", "缓存可容纳")), tokens.format(served.full_tokens), shows)
    if served.request is not None:
        tokens = wording.say(Text("{:,} tokens", "{:,} 个 token")).format(served.server.length)
        yield Row(wording.say(Text("one full-length request", "一个最大长度的请求")), format_size(served.request), tokens)


def _seen(served_run: ServedRun, name: str, wording: Wording) -> str:
    seen = served_run.seen.get("working set" if name in ("sampler", "encoder") else name)
    return "" if seen is None else wording.say(Text("the log shows {}", "日志显示 {}")).format(format_size(seen))
