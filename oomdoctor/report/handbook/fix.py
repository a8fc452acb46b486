"""The page of a fix: how, what it frees and costs, its keys in every framework, and where it helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.fix import FixRecord, SettingRecord, TypedRecord
from oomdoctor.knowledge.records.problem import CiteRecord
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.head import page_head
from oomdoctor.report.handbook.parts import citation_blocks, versions, what_does_not_help
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.phrases import setting_line, spans
from oomdoctor.report.wording.wording import Wording

_HELPED = 8
_ABREAST = 2


def fix_blocks(book: Book, record: FixRecord, wording: Wording) -> Iterator[Block]:
    """Yield what to change, where, and what it frees and costs."""
    yield from page_head(wording.say(record.title), [wording.say(handbook.FIX), record.id])
    yield Heading(wording.say(handbook.HOW))
    yield Paragraph(spans(wording.say(record.how)))
    yield Facts(
        (*balance(record, wording), *([Row(wording.say(handbook.RUN), record.command, style=Style.CODE)] if record.command else []))
    )
    if record.settings:
        yield Heading(wording.say(handbook.KEYS))
        yield Facts(tuple(settings(record.settings, wording)))
        read = list(dict.fromkeys(setting.source for setting in record.settings))
        yield Paragraph((Span(wording.say(handbook.KEYS_FROM, list=wording.semicolon.join(read)), Style.DIM),))
    if record.typed:
        yield Heading(wording.say(handbook.TYPED))
        yield Facts(tuple(typed(record.typed, wording)))
        read = list(dict.fromkeys(line.source for line in record.typed))
        yield Paragraph((Span(wording.say(handbook.KEYS_FROM, list=wording.semicolon.join(read)), Style.DIM),))
    helped = sorted(book.with_fix(record.id), key=lambda problem: problem.fixes.index(record.id))
    if helped:
        yield Heading(wording.say(handbook.FOR))
        yield Facts(tuple(Row(record.id, wording.say(record.title)) for record in helped[:_HELPED]))
    if helped[_HELPED:]:
        yield Paragraph((Span(wording.say(handbook.FOR_MORE, list=", ".join(record.id for record in helped[_HELPED:])), Style.DIM),))
    yield from what_does_not_help(book, record.not_this, (), wording)
    yield from citation_blocks(book, [CiteRecord(source=name) for name in record.cites], wording)


def settings(records: Sequence[SettingRecord], wording: Wording) -> Iterator[Row]:
    """Yield the keys of a fix; up to two frameworks that share key and value share a line."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for record in records:
        value = record.key if record.change == "keep-batch" else setting_line(record.key, record.to)
        grouped.setdefault((value, _aside(record, wording)), []).append(_framework(record, wording))
    for (value, aside), named in grouped.items():
        frameworks = list(dict.fromkeys(named))
        for at in range(0, len(frameworks), _ABREAST):
            label = wording.item_comma.join(frameworks[at : at + _ABREAST])
            yield Row(label, value, aside, Style.CODE)


def typed(records: Sequence[TypedRecord], wording: Wording) -> Iterator[Row]:
    """Yield what is typed where no program is known, each with who understands it."""
    for record in records:
        named = record.by or wording.item_comma.join(map(framework_title, record.of[:1]))
        yield Row(named, record.line, "" if record.value is None else wording.say(record.value), Style.CODE)


def _framework(setting: SettingRecord, wording: Wording) -> str:
    return wording.say(handbook.ENVIRONMENT) if setting.framework == "environment" else framework_title(setting.framework)


def _aside(setting: SettingRecord, wording: Wording) -> str:
    """How the value follows from the one in force, and the versions in which the key counts."""
    change = (
        wording.say(handbook.CHANGE[setting.change], by=f"{setting.by:g}")
        if setting.change is not None and setting.change != "option"
        else ""
    )
    return wording.comma.join(part for part in (change, versions(setting.since, setting.until, wording)) if part)


def balance(record: FixRecord, wording: Wording) -> Iterator[Row]:
    """Yield what a fix frees, what it needs and costs, and who decides."""
    if record.frees is not None:
        yield Row(wording.say(handbook.FREES), wording.say(record.frees.says))
    for need in record.needs:
        yield Row(wording.say(handbook.NEEDS), wording.say(need.says))
    if record.costs is not None:
        yield Row(wording.say(handbook.COSTS), wording.say(record.costs))
    yield Row(wording.say(handbook.WHO_DECIDES), wording.say(handbook.SAFETY[record.safety]))
