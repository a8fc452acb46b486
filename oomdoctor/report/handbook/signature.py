"""The page of a message: what it means, an example read word by word, and what looks like it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Quote, Row, Span
from oomdoctor.report.handbook.parts import diagnosed, example, shortened, titled, versions
from oomdoctor.report.wording.handbook import KINDS, word
from oomdoctor.report.wording.phrases import bare, blank
from oomdoctor.report.wording.texts import fill

_NEAR_MISSES = 3


def signature(book: Book, record: SignatureRecord, lang: str) -> Iterator[Block]:
    """A message: what it means, an example read word by word, and what looks like it."""
    program = book.program(record.id)
    yield from titled(record.id, [word("signature", lang, program=program)])
    yield Heading(word("meaning", lang))
    yield Paragraph((Span(fill(KINDS[record.kind], lang) + (blank(lang) + _certainty(record, lang) if record.kind != "context" else "")),))
    yield Facts(tuple(_provenance(record, program, lang)))
    if record.examples:
        found = diagnosed(book, record.examples[0].text)
        yield from example(record.examples[0].text, found, lang, named=word("as-printed", lang, program=program), wanted=record.id)
        yield from _leads_to(found, lang)
    if record.near_misses:
        yield Heading(word("near", lang))
        for near in record.near_misses[:_NEAR_MISSES]:
            yield Quote(where=near.why, text=shortened(near.text))


def _certainty(record: SignatureRecord, lang: str) -> str:
    said = word(f"message-{record.certainty or 'possible'}", lang)
    return said + blank(lang) + word("pressure", lang) if record.outcome == "pressure" else said


def _provenance(record: SignatureRecord, program: str, lang: str) -> Iterator[Row]:
    yield Row(word("printed", lang), program, versions(record.since, record.until, lang))
    yield Row(word("seen-in", lang), record.source)
    if record.note:
        yield Row(word("note", lang), record.note)


def _leads_to(found: Diagnosis, lang: str) -> Iterator[Block]:
    if not found.findings:
        return
    yield Heading(word("leads", lang))
    yield Facts(tuple(Row(one.id, bare(one.title.get(lang))) for one in found.findings))
    first = found.findings[0].fixes
    if first:
        yield Heading(word("do", lang))
        yield Facts(tuple(Row(one.id, bare(one.title.get(lang))) for one in first))
