"""The page of a message: what it means, an example read word by word, and what looks like it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Quote, Row, Span
from oomdoctor.report.handbook.parts import diagnose_text, example_blocks, last_lines, page_head, versions
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.handbook import KINDS
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording

_NEAR_MISSES = 3


def signature_blocks(book: Book, record: SignatureRecord, wording: Wording) -> Iterator[Block]:
    """Yield what a message means, an example read word by word, and what looks like it."""
    program = book.program(record.id)
    yield from page_head(record.id, [wording.say(handbook.SIGNATURE, program=program)])
    yield Heading(wording.say(handbook.MEANING))
    yield Paragraph(
        (Span(wording.say(KINDS[record.kind]) + (wording.blank + _certainty(record, wording) if record.kind != "context" else "")),)
    )
    yield Facts(tuple(_provenance(record, program, wording)))
    if record.examples:
        diagnosis = diagnose_text(book, record.examples[0].text)
        yield from example_blocks(
            record.examples[0].text, diagnosis, wording, named=wording.say(handbook.AS_PRINTED, program=program), signature=record.id
        )
        yield from _leads_to(diagnosis, wording)
    if record.near_misses:
        yield Heading(wording.say(handbook.NEAR))
        for near in record.near_misses[:_NEAR_MISSES]:
            yield Quote(where=near.why, text=last_lines(near.text))


def _certainty(record: SignatureRecord, wording: Wording) -> str:
    certainty = wording.say(handbook.MESSAGE[record.certainty or "possible"])
    return certainty + wording.blank + wording.say(handbook.PRESSURE) if record.outcome == "pressure" else certainty


def _provenance(record: SignatureRecord, program: str, wording: Wording) -> Iterator[Row]:
    yield Row(wording.say(handbook.PRINTED), program, versions(record.since, record.until, wording))
    yield Row(wording.say(handbook.SEEN_IN), record.source)
    if record.note:
        yield Row(wording.say(handbook.NOTE), record.note)


def _leads_to(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    if not diagnosis.findings:
        return
    yield Heading(wording.say(handbook.LEADS))
    yield Facts(tuple(Row(finding.id, bare(wording.say(finding.title))) for finding in diagnosis.findings))
    first = diagnosis.findings[0].fixes
    if first:
        yield Heading(wording.say(handbook.DO))
        yield Facts(tuple(Row(fix.id, bare(wording.say(fix.title))) for fix in first))
