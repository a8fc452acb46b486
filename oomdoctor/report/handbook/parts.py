"""What pages of the handbook have in common: titles, examples, wrong advice, sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from oomdoctor.api.examples import diagnose_example as diagnose_run
from oomdoctor.api.examples import explained
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Event
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.template import fill_template
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.fix import NotThisRecord
from oomdoctor.knowledge.records.problem import CaseExample, CiteRecord
from oomdoctor.knowledge.records.source import Claim, SourceRecord
from oomdoctor.report.diagnosis.figures import figure_rows, ledger_bars
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Wording

_EXAMPLE_LINES = 12
_NOT_RIGHT = ("wrong", "partly")


def what_does_not_help(book: Book, advice: Iterable[NotThisRecord], cites: Sequence[CiteRecord], wording: Wording) -> Iterator[Block]:
    """Advice that people meet and that is wrong here, then claims of cited articles that do not hold, with what is so instead."""
    corrections = [_corrected(None, wording.say(record.advice), why_not(book, record, wording), wording) for record in advice]
    wrong = [(source, claim) for cite in cites for source, claim in _claims(book, cite) if claim.verdict in _NOT_RIGHT]
    for source, claim in sorted(wrong, key=lambda pair: pair[1].verdict != "wrong"):
        if claim.correction is not None:
            verdict = wording.say(handbook.VERDICT[claim.verdict])
            corrections.append(_corrected(source.title, wording.say(claim.says), wording.say(claim.correction), wording, verdict))
    if corrections:
        yield Heading(wording.say(handbook.NOT))
        yield from corrections


def citation_blocks(book: Book, cites: Sequence[CiteRecord], wording: Wording) -> Iterator[Block]:
    """Yield the documents that a page cites, each once, with what they are cited for."""
    if not cites:
        return
    yield Heading(wording.say(handbook.SOURCES))
    for name in dict.fromkeys(cite.source for cite in cites):
        source = book.source(name)
        claims = [wording.say(cite.says) for cite in cites if cite.source == name and cite.says is not None]
        claims += [
            wording.say(claim.says)
            for cite in cites
            if cite.source == name
            for _, claim in _claims(book, cite)
            if claim.verdict not in _NOT_RIGHT
        ]
        link = (Span(" "), Span(source.url, Style.LINK)) if source.url else ()
        says = " ".join(wording.sentence(claim) for claim in claims)
        yield Paragraph((Span(source.title, Style.STRONG), *link, *spans((" " if says else "") + says)))


def example_blocks(text: str, diagnosis: Diagnosis, wording: Wording, *, named: str, signature: str | None = None) -> Iterator[Block]:
    """Yield the example and every figure that was read in it."""
    yield Heading(wording.say(handbook.EXAMPLE))
    yield Quote(where=named, text=last_lines(text))
    incident = diagnosis.case.incidents[0] if diagnosis.case.incidents else None
    event = incident.root if incident is not None else None
    if signature is not None:
        event = next((event for event in diagnosis.case.events if event.signature == signature), None)
    if event is None:
        return
    ledger = incident.ledger if incident is not None and incident.root is event else ()
    read = [*figure_rows(event, ledger, wording), *_other_fields(event)]
    if read:
        yield Heading(wording.say(handbook.FIGURES))
        yield Facts(tuple(read))
    yield from ledger_bars(ledger, wording)


def diagnose_example(book: Book, case: CaseExample) -> Diagnosis:
    """Diagnose the example of a problem: a log and what was observed beside it, an environment, or what a snapshot tells."""
    diagnosis = diagnose_run(case, book.pack)
    plain = case.environment is None and case.snapshot is None
    return diagnosis if plain else replace(diagnosis, findings=explained(case, book.pack))


def example_text(case: CaseExample, diagnosis: Diagnosis, wording: Wording) -> str:
    """Return the example as a person reads it: a log, and what was observed, as they stand; else a line for each fact."""
    facts = case.environment if case.environment is not None else case.snapshot
    if facts is not None:
        return "\n".join(_facts(facts, ()))
    observed = [wording.say(event.says) for event in diagnosis.case.events if event.says is not None]
    return "\n".join([*([case.log.rstrip()] if case.log else []), *observed])


def why_not(book: Book, advice: NotThisRecord, wording: Wording) -> str:
    """Why advice is wrong, with the figures of an example of the first problem for which it is."""
    if "{" not in advice.why.en or advice.problems[0] not in book.problems:
        return wording.say(advice.why)
    diagnosis = diagnose_example(book, book.problems[advice.problems[0]].examples[0])
    return wording.say(fill_template(advice.why, _figures(diagnosis)))


def versions(since: str | None, until: str | None, wording: Wording) -> str:
    """`2.1 to 2.13`, as far as known."""
    if since and until:
        return since if since == until else wording.say(handbook.BETWEEN, since=since, until=until)
    return wording.say(handbook.SINCE, version=since) if since else wording.say(handbook.UNTIL, version=until) if until else ""


def _facts(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield `gpus.0.name: Tesla T4`."""
    if isinstance(value, (dict, list)):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _facts(inner, (*path, str(name)))
    else:
        yield f"{'.'.join(path)}: {str(value).lower() if isinstance(value, bool) else value}"


def _figures(diagnosis: Diagnosis) -> Mapping[str, Fact]:
    """Return the figures of the first failure, under the names that rules use."""
    incident = diagnosis.case.incidents[0] if diagnosis.case.incidents else None
    if incident is None:
        return {}
    event = {f"event.{name}": value for name, value in incident.root.fields.items()}
    return event | {f"derived.{name}": value for name, value in incident.derived.items()}


def _corrected(title: str | None, says: str, correction: str, wording: Wording, verdict: str = "") -> Paragraph:
    """Return `wrong: "Article" says: advice. In fact: ...`, or where nobody is quoted `Advice. Why it is wrong`."""
    if title is None:
        return Paragraph((Span(wording.sentence(says) + wording.blank, Style.STRONG), *spans(correction)))
    lead = (Span(verdict, Style.STRONG), Span(wording.colon))
    quoted = wording.say(handbook.SAYS, source=title, says=bare(says))
    return Paragraph((*lead, *spans(quoted + wording.say(handbook.IN_FACT, correction=correction))))


def _other_fields(event: Event) -> Iterator[Row]:
    for name, value in event.fields.items():
        if not name.endswith("_bytes") and not isinstance(value, tuple):
            yield Row(name.replace("_", " "), clean_line(str(value), 120))


def _claims(book: Book, cite: CiteRecord) -> Iterator[tuple[SourceRecord, Claim]]:
    """Yield the claim that a citation names; none where it cites a document as a whole."""
    source = book.source(cite.source)
    yield from ((source, claim) for claim in source.claims if claim.id == cite.claim)


def last_lines(text: str) -> str:
    """Return the last lines of a long example: there the failure stands."""
    lines = text.strip("\n").split("\n")
    return "\n".join(lines if len(lines) <= _EXAMPLE_LINES else ["…", *lines[-_EXAMPLE_LINES:]])
