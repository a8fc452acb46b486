"""The page of a source: what it says, claim by claim, whether that holds, and what cites it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.source import Claim, SourceRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.head import page_head
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording


def source_blocks(book: Book, record: SourceRecord, wording: Wording) -> Iterator[Block]:
    """Yield a document, claim by claim, and what cites it."""
    yield from page_head(record.title, [wording.say(handbook.SOURCE), record.id], record.url)
    if record.claims:
        yield Heading(wording.say(handbook.CLAIMS))
        yield from (Paragraph(_claim(claim, wording)) for claim in record.claims)
    citing = [
        Row(name, wording.say((book.problems[name] if part == "problems" else book.fix(name)).title))
        for part, name in book.citing(record.id)
    ]
    if citing:
        yield Heading(wording.say(handbook.CITED_BY))
        yield Facts(tuple(citing))


def _claim(claim: Claim, wording: Wording) -> tuple[Span, ...]:
    """Return a claim as `3.7 wrong. What it says. In fact: ...`."""
    style = {"right": Style.GOOD, "wrong": Style.BAD}.get(claim.verdict, Style.WARN)
    colon = wording.colon
    statement = (
        Span(f"{claim.id} ", Style.DIM),
        Span(wording.say(handbook.VERDICT[claim.verdict]), style),
        Span(colon),
        *spans(wording.sentence(wording.say(claim.says))),
    )
    if claim.correction is None:
        return statement
    return (*statement, *spans(wording.blank + wording.say(handbook.IN_FACT, correction=wording.say(claim.correction))))
