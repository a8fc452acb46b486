"""The page of a message: what it means, an example read word by word, and what looks like it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.problem import CaseExample
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Quote, Row, Span
from oomdoctor.report.handbook.head import page_head
from oomdoctor.report.handbook.parts import diagnose_example, example_blocks, example_text, last_lines, versions
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.handbook import KINDS
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording

_NEAR_MISSES = 3


def signature_blocks(book: Book, record: SignatureRecord, wording: Wording) -> Iterator[Block]:
    """Yield what a message means, an example read word by word, and what looks like it."""
    program = book.program(record.id)
    is_seen = record.says is not None
    yield from page_head(record.id, [wording.say(handbook.OBSERVATION if is_seen else handbook.SIGNATURE, program=program)])
    yield Heading(wording.say(handbook.MEANING))
    yield Paragraph(
        (Span(wording.say(KINDS[record.kind]) + (wording.blank + _certainty(record, wording) if record.kind != "context" else "")),)
    )
    yield Facts(tuple(_provenance(record, program, wording)))
    if record.examples:
        example = record.examples[0]
        case = CaseExample(name=record.id, observed={record.id: example.fields}) if is_seen else CaseExample(name="", log=example.text)
        diagnosis = diagnose_example(book, case)
        named = wording.say(handbook.AS_SEEN if is_seen else handbook.AS_PRINTED, program=program)
        yield from example_blocks(example_text(case, diagnosis, wording), diagnosis, wording, named=named, signature=record.id)
        yield from _leads_to(diagnosis, wording)
    if record.near_misses:
        yield Heading(wording.say(handbook.NEAR))
        for near in record.near_misses[:_NEAR_MISSES]:
            yield Quote(where=near.why, text=last_lines(near.text))


def _certainty(record: SignatureRecord, wording: Wording) -> str:
    certain = record.certainty or "possible"
    if record.says is not None:
        return wording.sentence(wording.say(handbook.CONFIDENCE[certain]).capitalize())
    certainty = wording.say(handbook.MESSAGE[certain])
    return certainty + wording.blank + wording.say(handbook.PRESSURE) if record.outcome == "pressure" else certainty


def _provenance(record: SignatureRecord, program: str, wording: Wording) -> Iterator[Row]:
    label = handbook.PRINTED if record.says is None else handbook.SEEN_BY
    yield Row(wording.say(label), program, versions(record.since, record.until, wording))
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
