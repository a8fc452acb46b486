"""A Comparison -> Document: what changed that matters for memory, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.comparison import Comparison, Effect, OneSided, RunChange, Series, Side
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.document import Block, Curve, Curves, Document, Facts, Folded, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.memory.estimate_bars import estimate_bars
from oomdoctor.report.memory.part_names import part_name
from oomdoctor.report.wording import comparison as texts
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.texts import FIGURES
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_SHOWN = 12
"""Changes that are told whole; the others are one line each."""
_ONE_SIDED = 8
_TAGS: Mapping[Effect, tuple[Text, Style]] = {
    "tighter": (Text("less headroom", "余量变小"), Style.BAD),
    "looser": (Text("more headroom", "余量变大"), Style.GOOD),
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
    "host_used_bytes": Text("used host memory", "主机内存已用"),
}


def compose(comparison: Comparison, wording: Wording, version: str) -> Document:
    """Compose the answer, the verdict first."""
    blocks = (
        *_verdict(comparison, wording),
        *_sides(comparison, wording),
        *_changes(comparison, wording),
        *_moments(comparison.series, wording),
        *_one_sided(comparison.one_sided, wording),
        *_folded(comparison, wording),
    )
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def _verdict(comparison: Comparison, wording: Wording) -> Iterator[Block]:
    tighter = [change for change in comparison.changes if change.effect == "tighter"]
    if tighter:
        first = _titled(tighter[0], wording)
        yield Paragraph((Span(wording.say(texts.ONE if len(tighter) == 1 else texts.MANY, n=len(tighter), first=first), Style.BAD),))
    elif any(change.effect == "differs" for change in comparison.changes):
        yield Paragraph((Span(wording.say(texts.MAY), Style.WARN),))
    elif comparison.changes:
        yield Paragraph((Span(wording.say(texts.LOOSER), Style.GOOD),))
    elif comparison.matters:
        yield Paragraph((Span(wording.say(texts.SERIES), Style.WARN),))
    else:
        yield Paragraph((Span(wording.count(texts.NOTHING, comparison.compared), Style.GOOD),))


def _sides(comparison: Comparison, wording: Wording) -> Iterator[Block]:
    rows = ((comparison.before, texts.BEFORE), (comparison.after, texts.AFTER))
    yield Facts(tuple(Row(wording.say(label), side.name, _came_to(side, wording)) for side, label in rows))
    if comparison.estimates is not None:
        yield Paragraph((Span(_estimated(*comparison.estimates, wording)),))
        named = ((wording.say(texts.BEFORE), comparison.estimates[0], ""), (wording.say(texts.AFTER), comparison.estimates[1], ""))
        yield estimate_bars(wording.say(texts.BOTH_EXPECTED), named, None, wording)


def _estimated(before: Estimate, after: Estimate, wording: Wording) -> str:
    """Say what the memory model expects of both, and which part changed most."""
    sizes = {
        "before": range_of(before.expected, before.low, before.high, wording),
        "after": range_of(after.expected, after.low, after.high, wording),
    }
    terms_before, terms_after = _terms(before), _terms(after)
    moved = max((*terms_before, *terms_after), key=lambda name: abs(terms_after.get(name, 0) - terms_before.get(name, 0)))
    if terms_before.get(moved, 0) == terms_after.get(moved, 0):
        return wording.say(texts.ESTIMATED, **sizes)
    was, now = (format_size(terms.get(moved, 0)) for terms in (terms_before, terms_after))
    return wording.say(texts.ESTIMATED_MOSTLY, **sizes, part=part_name(moved, wording), was=was, now=now)


def _terms(estimate: Estimate) -> Mapping[str, int]:
    """Return the parts of the peak."""
    peak = max(estimate.phases, key=lambda phase: phase.bytes)
    return {term.name: term.bytes for term in peak.terms}


def _came_to(side: Side, wording: Wording) -> str:
    if side.diagnosis is None or not side.diagnosis.case.sources:
        return wording.say(texts.NOTHING_SAID)
    return summary(side.diagnosis, wording)


def _changes(comparison: Comparison, wording: Wording) -> Iterator[Block]:
    if comparison.changes:
        yield Heading(wording.say(texts.CHANGES))
    titled: dict[str, list[RunChange]] = {}
    for change in comparison.changes[:_SHOWN]:
        titled.setdefault(_titled(change, wording), []).append(change)
    for title, together in titled.items():
        yield Paragraph((Span(title, Style.STRONG), *_meanings(together, wording)))


def _meanings(together: list[RunChange], wording: Wording) -> Iterator[Span]:
    """Yield the tag and the meaning of each change: ` (less room). Meaning. More room: another meaning.`."""
    opened, closed, colon = ("（", "）：", "：") if wording.is_chinese else (" (", "). ", ": ")
    shown: Effect | None = None
    for change in together:
        tag, style = _TAGS[change.effect]
        if shown is None:
            yield from (Span(opened), Span(wording.say(tag), style), Span(closed))
        elif change.effect != shown:
            yield from (Span(wording.blank), Span(wording.say(tag).capitalize(), style), Span(colon))
        else:
            yield Span(wording.blank)
        yield from spans(wording.say(change.why))
        shown = change.effect


def _titled(change: RunChange, wording: Wording) -> str:
    """`batch size per card 2 → 4`; a finding has no values."""
    about = bare(wording.say(change.about))
    return about if change.before is None else f"{about} {change.before} → {change.after}"


def _moments(series: tuple[Series, ...], wording: Wording) -> Iterator[Block]:
    for numbers in series:
        figure = _figure(numbers.figure, wording)
        rows = []
        for point in numbers.points:
            at = wording.say(texts.LINE if point.at.startswith("#") else texts.STEP, at=point.at.lstrip("#"))
            rows.append(Row(at, f"{format_size(point.before)} → {format_size(point.after)}", _by(point.before, point.after)))
        yield Heading(wording.say(texts.MOMENTS) + wording.colon + figure)
        yield Facts(tuple(rows))
        yield _chart(numbers, figure, wording)


def _chart(numbers: Series, figure: str, wording: Wording) -> Curves:
    """Return the same moments of both as two curves."""
    by_line = any(point.at.startswith("#") for point in numbers.points)
    axis = texts.AXIS_LINE if by_line else texts.AXIS_STEP
    places = [float(point.at.lstrip("#")) for point in numbers.points]
    before = Curve(wording.say(texts.BEFORE), tuple(zip(places, (point.before for point in numbers.points))))
    after = Curve(wording.say(texts.AFTER), tuple(zip(places, (point.after for point in numbers.points))))
    return Curves(figure, wording.say(axis), (before, after), is_told=True)


def _figure(name: str, wording: Wording) -> str:
    if name in _FIGURES:
        return wording.say(_FIGURES[name])
    return wording.say(FIGURES[name]) if name in FIGURES else name.removesuffix("_bytes").replace("_", " ")


def _by(before: int, after: int) -> str:
    """`+12 %`; nothing where there is nothing to divide by or nothing to tell."""
    percent = round(100 * (after - before) / before) if before else 0
    return f"{percent:+d} %" if percent else ""


def _one_sided(facts: tuple[OneSided, ...], wording: Wording) -> Iterator[Block]:
    if not facts:
        return
    yield Heading(wording.say(texts.ONE_SIDED))
    rows = [Row(bare(wording.say(fact.about)), _one_value(fact, wording)) for fact in facts[:_ONE_SIDED]]
    if len(facts) > _ONE_SIDED:
        rows.append(Row("", wording.say(texts.MORE, n=len(facts) - _ONE_SIDED)))
    yield Facts(tuple(rows))


def _one_value(fact: OneSided, wording: Wording) -> str:
    if fact.wrong_now:
        return wording.say(texts.WRONG_NOW)
    return wording.say(texts.ONLY_BEFORE, value=fact.before) if fact.after is None else wording.say(texts.ONLY_AFTER, value=fact.after)


def _folded(comparison: Comparison, wording: Wording) -> Iterator[Block]:
    rest = comparison.changes[_SHOWN:]
    if rest:
        rows = [
            Row(bare(wording.say(change.about)), f"{change.before} → {change.after}", wording.say(_TAGS[change.effect][0]))
            for change in rest
        ]
        yield Folded(wording.say(texts.ALSO, n=len(rest)), (Facts(tuple(rows)),), wording.comma.join(row.label for row in rows[:4]))
    if comparison.differences:
        rows = [
            Row(_plain_name(difference.name, wording), f"{difference.before} → {difference.after}") for difference in comparison.differences
        ]
        gist = wording.comma.join(row.label for row in rows[:6])
        yield Folded(wording.say(texts.DIFFERENCES, n=len(rows)), (Facts(tuple(rows)),), gist)
    if comparison.changes:
        rows = [Row(bare(wording.say(change.about)), change.source) for change in comparison.changes if change.source]
        yield Folded(wording.say(texts.SOURCES), (Facts(tuple(dict.fromkeys(rows))),))


def _plain_name(name: str, wording: Wording) -> str:
    return wording.say(texts.CARD_NAME) if name == "card.name" else name.partition(".")[2] or name
