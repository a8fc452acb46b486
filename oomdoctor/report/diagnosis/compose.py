"""Diagnosis -> Document: what is said, and in which order.

The verdict and its place, the cause, three things to do, how the run was read, where the memory went; what few people need is folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.case import SEVERAL_RUNS, Case
from oomdoctor.case.diagnosis import Cite, Diagnosis, Finding
from oomdoctor.case.expected import Expected
from oomdoctor.case.incident import Incident
from oomdoctor.report.diagnosis.also_in_log import also_in_log
from oomdoctor.report.diagnosis.certainty import is_told_by_message
from oomdoctor.report.diagnosis.config_issues import config_error, more_on_config
from oomdoctor.report.diagnosis.do_this import do_this, more_on_steps
from oomdoctor.report.diagnosis.expected import beside_seen, measured_parts
from oomdoctor.report.diagnosis.figures import figure_rows, ledger_bars
from oomdoctor.report.diagnosis.headline import incident_sentence
from oomdoctor.report.diagnosis.needs import needs, taken_as_given
from oomdoctor.report.diagnosis.opening import opening, says_less
from oomdoctor.report.diagnosis.over_time import over_time
from oomdoctor.report.diagnosis.places import event_place, event_row, event_text
from oomdoctor.report.diagnosis.printed_memory import printed_memory_chart
from oomdoctor.report.diagnosis.read_as import read_as, run_head
from oomdoctor.report.diagnosis.runs import runs_blocks
from oomdoctor.report.diagnosis.server_memory import server_memory
from oomdoctor.report.diagnosis.steps import not_this
from oomdoctor.report.diagnosis.why import more_findings, why
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.texts import gap_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.series.printed import printed_memory

_FOLLOWED = 8
_OTHERS = 8
_GAPS = 5
_CITES = 20
_SHOWN = 200
"""So much of a message stands in the headline or below it."""
_OF_A_MACHINE = re.compile(r"\benvironment\.|\blog\.(?:\w+_version|gpu_name)\b")
"""Facts that a machine could settle, as the engine names what it misses."""
_NOT_RIGHT = ("wrong", "partly")


def compose(diagnosis: Diagnosis, wording: Wording, version: str) -> Document:
    """Compose the whole report: verdict, place, cause, what to do, how the run was read, the bar; all else folded."""
    case = diagnosis.case
    several = case.verdict.reason == SEVERAL_RUNS
    first = case.incidents[0] if case.incidents and not several else None
    is_memory = case.verdict.memory_failure != "no"
    blocks: list[Block] = [*opening(diagnosis, wording)]
    if case.runs:
        blocks += runs_blocks(case, wording)
    blocks += why(diagnosis, wording)
    blocks += needs(diagnosis, wording)
    blocks += _budget(case, wording)
    blocks += config_error(case.training, wording)
    blocks += do_this(diagnosis, wording)
    if is_memory:
        blocks += read_as(case, wording)
        blocks += _bar(first, case.estimate, wording)
    blocks += measured_parts(case.measured, wording)
    blocks += server_memory(case, wording)
    blocks += _over_time(case, wording)
    if first is not None:
        blocks += _message(diagnosis, first, wording)
        blocks += _figures(first, case.estimate, wording)
    blocks += more_on_config(case.training, wording)
    blocks += more_findings(diagnosis, wording)
    blocks += more_on_steps(diagnosis, wording)
    blocks += not_this(diagnosis.findings, wording)
    blocks += _citations(diagnosis.findings, wording)
    if first is not None:
        blocks += _followed(first, wording)
    blocks += _others(() if several else case.incidents[1:], wording)
    blocks += _unknown(diagnosis, wording)
    if is_memory and not several:
        blocks += also_in_log(case, blocks, wording)
    # What is folded comes last, together: a screen is read from the top, and these are its index.
    blocks.sort(key=lambda block: isinstance(block, Folded))
    title = f"oomdoctor {version} · {_inputs(case, wording)}"
    return Document(title=title, blocks=tuple(blocks), lang=wording.lang, head=run_head(case, wording))


def _over_time(case: Case, wording: Wording) -> Iterator[Block]:
    """Show what monitors recorded beside the logs; without them, what the log prints of its memory."""
    if case.series:
        yield from over_time(case.series, wording, failed=bool(case.incidents))
    else:
        yield from printed_memory_chart(printed_memory(case), wording)


def _budget(case: Case, wording: Wording) -> Iterator[Block]:
    """Yield what the arithmetic says of a run without a log; what a server did with its share of the card, folded."""
    if case.told is not None or case.served is not None:
        from oomdoctor.report.diagnosis.told import budget_blocks  # noqa: PLC0415 - few logs are of servers, and most inputs are logs

        yield from budget_blocks(case, wording)


def _bar(incident: Incident | None, expected: Expected | None, wording: Wording) -> Iterator[Block]:
    yield from ledger_bars(incident.ledger, wording, expected)[:1] if incident is not None else ()


def _message(diagnosis: Diagnosis, incident: Incident, wording: Wording) -> Iterator[Block]:
    """Yield the message in full, folded, where the screen has less of it."""
    text = event_text(incident.root, wording)
    is_shown = is_told_by_message(diagnosis) or says_less(diagnosis, incident)
    if not is_shown or len(text) > _SHOWN:
        yield Folded(wording.say(labels.MESSAGE), (Quote(where=event_place(incident.root, wording), text=text),))


def _figures(incident: Incident, expected: Expected | None, wording: Wording) -> Iterator[Block]:
    """Yield the figures that no bar draws, what the settings should take beside what was seen, and the other bars, folded."""
    rows, bars = figure_rows(incident.root, incident.ledger, wording), ledger_bars(incident.ledger, wording, expected)[1:]
    blocks: tuple[Block, ...] = (
        *((Facts(rows),) if rows else ()),
        *beside_seen(expected, wording),
        *bars,
        *taken_as_given(expected, wording),
    )
    if blocks:
        yield Folded(wording.say(labels.FIGURES), blocks)


def _citations(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    cites = list(dict.fromkeys(cite for finding in findings for cite in finding.cites))
    order = list(dict.fromkeys((cite.title, cite.url) for cite in cites))
    cites.sort(key=lambda cite: order.index((cite.title, cite.url)))
    if not cites:
        return
    blocks = [block for at, cite in enumerate(cites[:_CITES]) for block in _cite(cite, wording, is_named=_is_same(cites, at))]
    yield Folded(
        wording.say(labels.SOURCES, n=len(cites)),
        (*blocks, *_rest(len(cites) - _CITES, wording)),
    )


def _correction(cite: Cite, wording: Wording) -> tuple[Span, ...]:
    correction = wording.say(labels.CORRECTION, correction=wording.say(cite.correction)) if cite.correction is not None else ""
    return (*spans(wording.say(labels.CORRECTED_SAYS, source=cite.title, says=bare(wording.say(cite.says)))), *spans(correction))


def _is_same(cites: Sequence[Cite], at: int) -> bool:
    """Return whether a statement is of the same source as the one before it."""
    return at > 0 and (cites[at].title, cites[at].url) == (cites[at - 1].title, cites[at - 1].url)


def _cite(cite: Cite, wording: Wording, *, is_named: bool) -> Iterator[Block]:
    """Yield a source, unless it is named already, and what it says."""
    link = (Span(" "), Span(cite.url, Style.LINK)) if cite.url else ()
    if not is_named:
        yield Paragraph((Span(cite.title, Style.STRONG), *link))
    if cite.correction is not None and cite.verdict in _NOT_RIGHT:
        yield Paragraph(_correction(cite, wording))
    else:
        yield Paragraph(spans(wording.say(cite.says)))


def _followed(incident: Incident, wording: Wording) -> Iterator[Block]:
    """Yield what followed from a failure, folded; of what stands in one line once."""
    events = list({event.place: event for event in incident.consequences}.values())
    if events:
        rows = tuple(event_row(event, wording) for event in events[:_FOLLOWED])
        yield Folded(wording.say(labels.FOLLOWED, n=len(events)), (Facts(rows), *_rest(len(events) - _FOLLOWED, wording)))


def _others(incidents: Sequence[Incident], wording: Wording) -> Iterator[Block]:
    if not incidents:
        return
    shown: list[Block] = []
    for incident in incidents[:_OTHERS]:
        shown.append(Paragraph((Span(incident_sentence(incident, wording)),)))
        shown.append(Quote(where=event_place(incident.root, wording), text=event_text(incident.root, wording)))
    gist = incident_sentence(incidents[0], wording)
    yield Folded(wording.say(labels.OTHERS, n=len(incidents)), (*shown, *_rest(len(incidents) - _OTHERS, wording)), gist)


def _unknown(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield what is not known and whether a machine's facts were used, folded; inputs that were not read are told on the screen."""
    case = diagnosis.case
    gaps = [
        Row(gap.what, gap_text(gap.why, wording), wording.say(labels.GAP_LEARN, how=gap_text(gap.how, wording)) if gap.how else "")
        for gap in case.gaps
    ]
    named = {gap.what for gap in case.gaps}
    cut = [source.name for source in case.sources if not source.complete and source.name not in named]
    gaps += [Row("", wording.say(labels.INCOMPLETE, name=name)) for name in cut]
    if case.unread:
        gaps.append(Row("", wording.count(labels.UNREAD, case.unread)))
    waits = any(_OF_A_MACHINE.search(unknown.en) for finding in diagnosis.findings for unknown in finding.unknowns)
    note: tuple[Block, ...] = ()
    if case.environment_note is not None and (case.environment is not None or waits):
        note = (Paragraph((Span(wording.say(case.environment_note), Style.DIM),)),)
    if case.environment_note is not None and note and not gaps:
        yield Folded(wording.say(labels.MACHINE), note, wording.say(case.environment_note))
    elif case.not_read or cut:
        yield Heading(wording.say(labels.UNKNOWN))
        yield from (Facts(tuple(gaps[:_GAPS])), *note, *_rest(len(gaps) - _GAPS, wording))
    elif gaps:
        gist = clean_line(wording.semicolon.join(" ".join(filter(None, (row.label, row.value))) for row in gaps[:_GAPS]), 160)
        yield Folded(wording.say(labels.UNKNOWN), (Facts(tuple(gaps[:_GAPS])), *note, *_rest(len(gaps) - _GAPS, wording)), gist)


def _inputs(case: Case, wording: Wording) -> str:
    if not case.sources:
        return wording.say(labels.INPUT)
    name = case.sources[0].name if case.sources[0].name not in ("", "-") else wording.say(labels.INPUT)
    return name if len(case.sources) == 1 else wording.count(labels.AND_FILES, len(case.sources) - 1, name=name)


def _rest(more: int, wording: Wording) -> tuple[Paragraph, ...]:
    """Return a line that counts what a capped list leaves out."""
    return (Paragraph((Span(wording.say(labels.AND_MORE, n=more), Style.DIM),)),) if more > 0 else ()
