"""A Comparison -> Document: what changed that matters for memory, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.comparison import Comparison, Effect, OneSided, RunChange, Series, Side
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.memory.estimate import part_name
from oomdoctor.report.wording.phrases import bare, blank, comma, spans
from oomdoctor.report.wording.texts import FIGURES, fill
from oomdoctor.units import format_size

_SHOWN = 12
"""Changes that are told whole; the others are one line each."""
_ONE_SIDED = 8
_TAGS: Mapping[Effect, tuple[Text, Style]] = {
    "tighter": (Text("less room", "余量变小"), Style.BAD),
    "looser": (Text("more room", "余量变大"), Style.GOOD),
    "differs": (Text("may matter", "可能有影响"), Style.WARN),
}
_FIGURES: Mapping[str, Text] = {
    "allocated_bytes": Text("allocated", "已分配"),
    "peak_allocated_bytes": Text("peak allocated", "已分配峰值"),
    "reserved_bytes": Text("reserved", "已预留"),
    "peak_reserved_bytes": Text("peak reserved", "已预留峰值"),
    "active_bytes": Text("active", "活跃"),
    "peak_active_bytes": Text("peak active", "活跃峰值"),
    "used_bytes": Text("used on the card", "显卡已用"),
    "peak_used_bytes": Text("peak used on the card", "显卡已用峰值"),
    "host_used_bytes": Text("used of the host's memory", "主机内存已用"),
}
_WORDS: Mapping[str, Text] = {
    "title": Text("oomdoctor {version} · what changed", "oomdoctor {version} · 变化对比"),
    "card.name": Text("card", "显卡"),
    "before": Text("before", "之前"),
    "after": Text("after", "之后"),
    "one": Text("{n} change leaves less room: {first}.", "有 {n} 处变化会减少余量：{first}。"),
    "many": Text("{n} changes leave less room; the most suspicious is {first}.", "有 {n} 处变化会减少余量，最可疑的是：{first}。"),
    "may": Text("Nothing clearly leaves less room; what changed may matter.", "没有明显减少余量的变化；以下变化可能有影响。"),
    "looser": Text("What changed leaves more room, not less.", "已知的变化只会增加余量。"),
    "series": Text("No setting that matters is known to have changed, but memory did.", "没有发现有影响的设置变化，但显存确实不同了。"),
    "nothing": Text(
        "Nothing changed of which it is known that it matters for memory; {n} facts were compared.",
        "没有发现会影响显存或内存的变化；共比较了 {n} 项。",
    ),
    "estimated": Text(
        "By the memory model a card needs {before} before and {after} after.",
        "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。",
    ),
    "estimated-mostly": Text(
        "By the memory model a card needs {before} before and {after} after. What moves most: {part}, {was} → {now}.",
        "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。变化最大的是{part}：{was} → {now}。",
    ),
    "changes": Text("What changed, the most suspicious first", "变化（最可疑的在前）"),
    "also": Text("Further changes ({n})", "其他变化（{n}）"),
    "moments": Text("Memory at the same moments", "同一时刻的显存"),
    "step": Text("step {at}", "第 {at} 步"),
    "line": Text("line {at} of its kind", "第 {at} 次打印"),
    "differences": Text("Other differences, with no known effect on memory ({n})", "其他差异，未知对显存有影响（{n}）"),
    "one-sided": Text("Known of one of them only", "只有一方有的信息"),
    "only-before": Text("before: {value}; after: not said", "之前为 {value}，之后未说明"),
    "only-after": Text("before: not said; after: {value}", "之前未说明，之后为 {value}"),
    "wrong-now": Text("wrong now; whether it was before is not known", "现在有此问题，之前是否存在未知"),
    "more": Text("{n} more", "另有 {n} 项"),
    "sources": Text("Where this is known from", "依据"),
    "nothing-said": Text("no log, a machine or settings only", "没有日志，只有机器信息或配置"),
}


def compose(found: Comparison, lang: str, version: str) -> Document:
    """The answer in `lang`."""
    blocks = (
        *_verdict(found, lang),
        *_sides(found, lang),
        *_changes(found, lang),
        *_moments(found.series, lang),
        *_one_sided(found.one_sided, lang),
        *_folded(found, lang),
    )
    return Document(_say("title", lang, version=version), tuple(blocks), lang="zh" if lang == "zh" else "en")


def _verdict(found: Comparison, lang: str) -> Iterator[Block]:
    tighter = [one for one in found.changes if one.effect == "tighter"]
    if tighter:
        first = _titled(tighter[0], lang)
        yield Paragraph((Span(_say("one" if len(tighter) == 1 else "many", lang, n=len(tighter), first=first), Style.BAD),))
    elif any(one.effect == "differs" for one in found.changes):
        yield Paragraph((Span(_say("may", lang), Style.WARN),))
    elif found.changes:
        yield Paragraph((Span(_say("looser", lang), Style.GOOD),))
    elif found.matters:
        yield Paragraph((Span(_say("series", lang), Style.WARN),))
    else:
        yield Paragraph((Span(_say("nothing", lang, n=found.compared), Style.GOOD),))


def _sides(found: Comparison, lang: str) -> Iterator[Block]:
    rows = ((found.before, "before"), (found.after, "after"))
    yield Facts(tuple(Row(_say(key, lang), side.name, _came_to(side, lang)) for side, key in rows))
    if found.estimates is not None:
        yield Paragraph((Span(_estimated(*found.estimates, lang)),))


def _estimated(before: Estimate, after: Estimate, lang: str) -> str:
    """What the memory model says of both, and the part that changed most."""
    sizes = {
        "before": range_of(before.expected, before.low, before.high, lang),
        "after": range_of(after.expected, after.low, after.high, lang),
    }
    one, other = _terms(before), _terms(after)
    moved = max((*one, *other), key=lambda name: abs(other.get(name, 0) - one.get(name, 0)))
    if one.get(moved, 0) == other.get(moved, 0):
        return _say("estimated", lang, **sizes)
    was, now = (format_size(terms.get(moved, 0)) for terms in (one, other))
    return _say("estimated-mostly", lang, **sizes, part=part_name(moved, lang), was=was, now=now)


def _terms(estimate: Estimate) -> Mapping[str, int]:
    """The parts of the peak."""
    peak = max(estimate.phases, key=lambda phase: phase.bytes)
    return {term.name: term.bytes for term in peak.terms}


def _came_to(side: Side, lang: str) -> str:
    if side.diagnosis is None or not side.diagnosis.case.sources:
        return _say("nothing-said", lang)
    return summary(side.diagnosis, lang)


def _changes(found: Comparison, lang: str) -> Iterator[Block]:
    if found.changes:
        yield Heading(_say("changes", lang))
    titled: dict[str, list[RunChange]] = {}
    for one in found.changes[:_SHOWN]:
        titled.setdefault(_titled(one, lang), []).append(one)
    for title, together in titled.items():
        yield Paragraph((Span(title, Style.STRONG), *_meanings(together, lang)))


def _meanings(together: list[RunChange], lang: str) -> Iterator[Span]:
    """` (less room). What it means. More room: what else it means.`"""
    opened, closed, colon = (" (", "). ", ": ") if lang != "zh" else ("（", "）：", "：")
    told: Effect | None = None
    for one in together:
        tag, style = _TAGS[one.effect]
        if told is None:
            yield from (Span(opened), Span(tag.get(lang), style), Span(closed))
        elif one.effect != told:
            yield from (Span(blank(lang)), Span(tag.get(lang).capitalize(), style), Span(colon))
        else:
            yield Span(blank(lang))
        yield from spans(one.why.get(lang))
        told = one.effect


def _titled(one: RunChange, lang: str) -> str:
    """`batch size per card 2 → 4`; a finding has no values."""
    about = bare(one.about.get(lang))
    return about if one.before is None else f"{about} {one.before} → {one.after}"


def _moments(series: tuple[Series, ...], lang: str) -> Iterator[Block]:
    for one in series:
        figure = _figure(one.figure, lang)
        rows = []
        for point in one.points:
            at = _say("line" if point.at.startswith("#") else "step", lang, at=point.at.lstrip("#"))
            rows.append(Row(at, f"{format_size(point.before)} → {format_size(point.after)}", _by(point.before, point.after)))
        yield Heading(_say("moments", lang) + ("：" if lang == "zh" else ": ") + figure)
        yield Facts(tuple(rows))


def _figure(name: str, lang: str) -> str:
    if name in _FIGURES:
        return _FIGURES[name].get(lang)
    return fill(FIGURES[name], lang) if name in FIGURES else name.removesuffix("_bytes").replace("_", " ")


def _by(before: int, after: int) -> str:
    """`+12 %`; nothing where there is nothing to divide by or nothing to tell."""
    percent = round(100 * (after - before) / before) if before else 0
    return f"{percent:+d} %" if percent else ""


def _one_sided(found: tuple[OneSided, ...], lang: str) -> Iterator[Block]:
    if not found:
        return
    yield Heading(_say("one-sided", lang))
    rows = [Row(bare(one.about.get(lang)), _one(one, lang)) for one in found[:_ONE_SIDED]]
    if len(found) > _ONE_SIDED:
        rows.append(Row("", _say("more", lang, n=len(found) - _ONE_SIDED)))
    yield Facts(tuple(rows))


def _one(one: OneSided, lang: str) -> str:
    if one.wrong_now:
        return _say("wrong-now", lang)
    return _say("only-before", lang, value=one.before) if one.after is None else _say("only-after", lang, value=one.after)


def _folded(found: Comparison, lang: str) -> Iterator[Block]:
    rest = found.changes[_SHOWN:]
    if rest:
        rows = [Row(bare(one.about.get(lang)), f"{one.before} → {one.after}", _TAGS[one.effect][0].get(lang)) for one in rest]
        yield Folded(_say("also", lang, n=len(rest)), (Facts(tuple(rows)),), comma(lang).join(row.label for row in rows[:4]))
    if found.differences:
        rows = [Row(_plain_name(one.name, lang), f"{one.before} → {one.after}") for one in found.differences]
        gist = comma(lang).join(row.label for row in rows[:6])
        yield Folded(_say("differences", lang, n=len(rows)), (Facts(tuple(rows)),), gist)
    if found.changes:
        rows = [Row(bare(one.about.get(lang)), one.source) for one in found.changes if one.source]
        yield Folded(_say("sources", lang), (Facts(tuple(dict.fromkeys(rows))),))


def _plain_name(name: str, lang: str) -> str:
    return _say(name, lang) if name in _WORDS else name.partition(".")[2] or name


def _say(key: str, lang: str, **values: object) -> str:
    return _WORDS[key].get(lang).format(**values)
