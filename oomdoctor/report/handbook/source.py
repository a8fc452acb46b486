"""The page of a source: what it says, claim by claim, whether that holds, and what cites it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.source import Claim, SourceRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.parts import text_of, titled
from oomdoctor.report.wording.handbook import word
from oomdoctor.report.wording.phrases import blank, spans, stopped


def source(book: Book, record: SourceRecord, lang: str) -> Iterator[Block]:
    """A document, claim by claim, and what cites it."""
    yield from titled(record.title, [word("source", lang), record.id], record.url)
    if record.claims:
        yield Heading(word("claims", lang))
        yield from (Paragraph(_claim(one, lang)) for one in record.claims)
    citing = [
        Row(name, text_of((book.problems[name] if part == "problems" else book.fix(name)).title, lang))
        for part, name in book.citing(record.id)
    ]
    if citing:
        yield Heading(word("cited-by", lang))
        yield Facts(tuple(citing))


def _claim(one: Claim, lang: str) -> tuple[Span, ...]:
    """`3.7 wrong. What it says. In fact: ...`"""
    style = {"right": Style.GOOD, "wrong": Style.BAD}.get(one.verdict, Style.WARN)
    colon = "：" if lang == "zh" else ": "
    said = (
        Span(f"{one.id} ", Style.DIM),
        Span(word(f"verdict-{one.verdict}", lang), style),
        Span(colon),
        *spans(stopped(text_of(one.says, lang), lang)),
    )
    if one.correction is None:
        return said
    return (*said, *spans(blank(lang) + word("in-fact", lang, correction=text_of(one.correction, lang))))
