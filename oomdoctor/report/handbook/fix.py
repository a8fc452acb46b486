"""The page of a fix: how, what it frees and costs, its keys in every framework, and where it helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.fix import FixRecord, SettingRecord
from oomdoctor.knowledge.records.problem import CiteRecord
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.parts import cited, text_of, titled, versions, what_does_not_help
from oomdoctor.report.wording.handbook import word
from oomdoctor.report.wording.phrases import comma, spans, written

_HELPED = 8
_ABREAST = 2


def fix(book: Book, record: FixRecord, lang: str) -> Iterator[Block]:
    """What to change, where, and what it frees and costs."""
    yield from titled(text_of(record.title, lang), [word("fix", lang), record.id])
    yield Heading(word("how", lang))
    yield Paragraph(spans(text_of(record.how, lang)))
    yield Facts((*balance(record, lang), *([Row(word("run", lang), record.command, style=Style.CODE)] if record.command else [])))
    if record.settings:
        yield Heading(word("keys", lang))
        yield Facts(tuple(settings(record.settings, lang)))
        read = list(dict.fromkeys(one.source for one in record.settings))
        yield Paragraph((Span(word("keys-from", lang, list=("；" if lang == "zh" else "; ").join(read)), Style.DIM),))
    helped = sorted(book.with_fix(record.id), key=lambda one: one.fixes.index(record.id))
    if helped:
        yield Heading(word("for", lang))
        yield Facts(tuple(Row(one.id, text_of(one.title, lang)) for one in helped[:_HELPED]))
    if helped[_HELPED:]:
        yield Paragraph((Span(word("for-more", lang, list=", ".join(one.id for one in helped[_HELPED:])), Style.DIM),))
    yield from what_does_not_help(book, record.not_this, (), lang)
    yield from cited(book, [CiteRecord(source=name) for name in record.cites], lang)


def settings(found: Sequence[SettingRecord], lang: str) -> Iterator[Row]:
    """The keys of a fix; up to two frameworks that share key and value share a line."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in found:
        value = one.key if one.change == "keep-batch" else written(one.key, one.to)
        grouped.setdefault((value, _aside(one, lang)), []).append(_framework(one, lang))
    for (value, aside), named in grouped.items():
        frameworks = list(dict.fromkeys(named))
        for at in range(0, len(frameworks), _ABREAST):
            label = ("、" if lang == "zh" else ", ").join(frameworks[at : at + _ABREAST])
            yield Row(label, value, aside, Style.CODE)


def _framework(one: SettingRecord, lang: str) -> str:
    return word("environment", lang) if one.framework == "environment" else framework_title(one.framework)


def _aside(one: SettingRecord, lang: str) -> str:
    """How the value follows from the one in force, and the versions in which the key counts."""
    change = word(f"change-{one.change}", lang, by=f"{one.by:g}") if one.change is not None and one.change != "option" else ""
    return comma(lang).join(part for part in (change, versions(one.since, one.until, lang)) if part)


def balance(record: FixRecord, lang: str) -> Iterator[Row]:
    """What a fix frees, what it needs and costs, and who decides."""
    if record.frees is not None:
        yield Row(word("frees", lang), text_of(record.frees.says, lang))
    for need in record.needs:
        yield Row(word("needs", lang), text_of(need.says, lang))
    if record.costs is not None:
        yield Row(word("costs", lang), text_of(record.costs, lang))
    yield Row(word("safety", lang), word(f"safety-{record.safety}", lang))
