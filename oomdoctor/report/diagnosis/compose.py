"""Diagnosis -> Document: what is said, in which order and in which words.

The verdict first, then what was seen, the figures, what it means, what to do; what few people need is folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.case import SEVERAL_RUNS, Case, Verdict
from oomdoctor.case.diagnosis import Cite, Diagnosis, Finding, OpenCause, Sign
from oomdoctor.case.event import Certainty, Place
from oomdoctor.case.expected import Expected
from oomdoctor.case.incident import Incident
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.config_issues import config_issue_blocks
from oomdoctor.report.diagnosis.expected import beside_seen, measured_parts
from oomdoctor.report.diagnosis.figures import figure_rows, ledger_bars
from oomdoctor.report.diagnosis.headline import incident_sentence, settle_text, summary
from oomdoctor.report.diagnosis.places import event_place, event_row, event_text, place_text, repetition_text
from oomdoctor.report.diagnosis.printed_memory import printed_memory_chart
from oomdoctor.report.diagnosis.runs import runs_blocks
from oomdoctor.report.diagnosis.server_memory import server_memory
from oomdoctor.report.diagnosis.steps import TIGHTEST, not_this, steps
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.texts import gap_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.series.printed import printed_memory

_FINDINGS = 3
_TOLD = 2
_SENTENCES = ((None, 2), (3, 1), (3, 1), (2, 1), (1, 1))
"""Of the first finding and of those after it, for each tightness; the whole of them is folded."""
_TELLS_ONE = 3
"""From this tightness on only the first finding is told, and no advice is corrected."""
_CORRECTIONS = 1
_FOLLOWED = 8
_LONG_PATH = 60
_OTHERS = 8
_GAPS = 5
_CITES = 20
_OF_A_MACHINE = re.compile(r"\benvironment\.|\blog\.(?:\w+_version|gpu_name)\b")
"""Facts that a machine could settle, as the engine names what it misses."""
_NOT_RIGHT = ("wrong", "partly")
_VERDICT = {"yes": Style.BAD, "possible": Style.WARN, "no": Style.GOOD}


def compose(diagnosis: Diagnosis, wording: Wording, version: str, tightness: int = 0) -> Document:
    """Compose the whole report, the verdict first; `tightness` (0 to `TIGHTEST`) says how much of it is folded to fit a screen."""
    case = diagnosis.case
    several = case.verdict.reason == SEVERAL_RUNS
    first = case.incidents[0] if case.incidents and not several else None
    blocks: list[Block] = [*_verdict(diagnosis, wording)]
    if case.runs:
        blocks += runs_blocks(case, wording)
    if first is not None:
        blocks += _seen(first, wording)
        blocks += _figures(first, case.estimate, wording)
        blocks += beside_seen(case.estimate, wording)
    blocks += measured_parts(case.measured, wording, folds=tightness >= _TELLS_ONE)
    blocks += _over_time(case, wording)
    blocks += _budget(case, wording)
    blocks += server_memory(case, wording)
    blocks += _meaning(diagnosis.findings, first, wording, tightness)
    blocks += _open_cause(diagnosis.open_cause, wording)
    blocks += config_issue_blocks(case.training, wording)
    blocks += steps(diagnosis.findings, wording, tightness)
    blocks += not_this(diagnosis.findings, wording, tightness)
    warned = any(finding.not_this for finding in diagnosis.findings) or bool(case.training and case.training.issues)
    # Of the tightest form --full shows the sources, too.
    if tightness < TIGHTEST:
        blocks += _citations(diagnosis.findings, wording, corrects=not warned and tightness < _TELLS_ONE)
    if first is not None:
        blocks += _followed(first, wording)
    blocks += _others(() if several else case.incidents[1:], wording)
    blocks += _machine(diagnosis, wording)
    blocks += _unknown(case, wording)
    # What is folded comes last, together: a screen is read from the top, and these are its index.
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(title=f"oomdoctor {version} · {_inputs(case, wording)}", blocks=tuple(blocks), lang=wording.lang)


def _over_time(case: Case, wording: Wording) -> Iterator[Block]:
    """Show what monitors recorded beside the logs; without them, what the log prints of its memory."""
    if case.series:
        from oomdoctor.report.diagnosis.over_time import over_time  # noqa: PLC0415 - most logs come without a series

        yield from over_time(case.series, wording, failed=bool(case.incidents))
    else:
        yield from printed_memory_chart(printed_memory(case), wording)


def _budget(case: Case, wording: Wording) -> Iterator[Block]:
    """Show what a server did with its share of the card, or what the arithmetic says of a run without a log."""
    if case.served is not None or case.told is not None:
        from oomdoctor.report.diagnosis.told import budget_blocks  # noqa: PLC0415 - few logs are of servers, and most inputs are logs

        yield from budget_blocks(case, wording)


def _verdict(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    verdict = diagnosis.case.verdict
    sentence = Span(summary(diagnosis, wording), _VERDICT.get(verdict.memory_failure, Style.WARN))
    check = settle_text(diagnosis.case, wording)
    if check is not None:
        yield Paragraph((sentence,))
        yield Paragraph((Span(wording.say(labels.SETTLE), Style.STRONG), *spans(check), Span(wording.stop)))
    elif _has_certainty(verdict):
        yield Paragraph((sentence, Span(wording.blank + wording.say(labels.CERTAINTY[verdict.certainty.value]), Style.DIM)))
    else:
        yield Paragraph((sentence,))


def _has_certainty(verdict: Verdict) -> bool:
    return verdict.reason not in ("none", "nothing-read", "told", SEVERAL_RUNS) and verdict.kind.value != "none"


def _seen(incident: Incident, wording: Wording) -> Iterator[Block]:
    root = incident.root
    yield Heading(wording.say(labels.SEEN))
    yield Quote(where=event_place(root, wording), text=event_text(root, wording))
    frame = wording.say(labels.FRAME, frame=_short_frame(clean_line(root.frame, 300))) if root.frame else ""
    passed = wording.count(labels.STEPS_PASSED, incident.steps_passed) if incident.steps_passed else ""
    after = wording.blank.join(part for part in (passed, repetition_text(incident, wording)) if part)
    if frame or after:
        yield Paragraph((Span(frame, Style.DIM), Span(wording.blank if frame and after else ""), Span(after)))


def _short_frame(frame: str) -> str:
    """Return a frame with no more of a long path than tells which file it is.

    What shows itself as a secret only by the whole path is left whole, or nothing would take it out later.
    """
    path, _, rest = frame.partition(" in ")
    end = "/" + "/".join(path.split("/")[-3:])
    is_long = len(path) > _LONG_PATH and path.count("/") > 3
    return f"…{end} in {rest}" if is_long and redact_text(path).endswith(end) else frame


def _figures(incident: Incident, expected: Expected | None, wording: Wording) -> Iterator[Block]:
    figures, drawn = figure_rows(incident.root, incident.ledger, wording), ledger_bars(incident.ledger, wording, expected)
    if not figures and not drawn:
        return
    yield Heading(wording.say(labels.FIGURES))
    if figures:
        yield Facts(figures)
    yield from drawn[:1]
    if drawn[1:]:
        yield Folded(wording.say(labels.OTHER_LEDGERS), tuple(drawn[1:]), gist=_listed([bar.title for bar in drawn[1:]], wording))


def _meaning(findings: Sequence[Finding], first: Incident | None, wording: Wording, tightness: int) -> Iterator[Block]:
    if not findings:
        return
    seen = first.root.place if first else None
    yield Heading(wording.say(labels.MEANS))
    shown: list[Finding] = []
    rest: list[Finding] = []
    for number, finding in enumerate(findings[:_FINDINGS]):
        # Of several possible readings only the first is told; the others are named.
        tells = number == 0 or (number < _TOLD and finding.confidence is not Certainty.POSSIBLE and tightness < _TELLS_ONE)
        (shown if tells else rest).append(finding)
    told = [tuple(_finding(finding, seen, wording, sentences)) for finding, sentences in zip(shown, _SENTENCES[tightness])]
    yield from (block for blocks in told for block in blocks)
    if rest:
        lead = labels.ALSO_POSSIBLE if all(finding.confidence is Certainty.POSSIBLE for finding in rest) else labels.ALSO
        yield Paragraph(
            (Span(wording.say(lead), Style.DIM), *spans(_alternatives([wording.say(finding.title) for finding in rest], wording)))
        )
    whole = tuple(_finding(findings[0], seen, wording))
    cut = whole if whole != told[0] else ()
    others = findings[1:]
    if cut or others:
        blocks = tuple(block for finding in others[:_OTHERS] for block in _finding(finding, seen, wording))
        yield Folded(
            wording.say(labels.MORE_FINDINGS, n=len(others)) if others else wording.say(labels.MORE_MEANING),
            (*cut, *blocks, *_rest(len(others) - _OTHERS, wording)),
            _listed([wording.say(f.title) for f in others], wording),
        )


def _open_cause(open_cause: OpenCause | None, wording: Wording) -> Iterator[Block]:
    """Say in one line that the log cannot tell the cause, and what settles it."""
    if open_cause is not None:
        command = f"`{open_cause.command}`" if open_cause.command else ""
        yield Paragraph(
            (
                Span(wording.say(labels.OPEN_CAUSE), Style.STRONG),
                *spans(bare(wording.say(open_cause.settled_by)) + (wording.colon + command if command else wording.stop)),
            )
        )


def _signs(signs: Sequence[Sign], wording: Wording) -> str:
    """Return what speaks for a finding and against it, in a sentence each."""
    told = [
        wording.say(label) + wording.listed([bare(wording.say(sign.says)) for sign in listed]) + wording.stop
        for label, listed in (
            (labels.SIGNS_FOR, [sign for sign in signs if sign.weight > 0]),
            (labels.SIGNS_AGAINST, [sign for sign in signs if sign.weight < 0]),
        )
        if listed
    ]
    return "".join(wording.blank + text for text in told)


def _alternatives(titles: Sequence[str], wording: Wording) -> str:
    """Titles as parts of one sentence."""
    if wording.is_chinese:
        return wording.listed(titles) + wording.stop
    # "All activations" goes on in small letters, "JAX holds" does not.
    return "; ".join(bare(title[:1].lower() + title[1:] if title[1:2].islower() or title[1:2] == " " else title) for title in titles) + "."


def _finding(finding: Finding, seen: Place | None, wording: Wording, sentences: int | None = None) -> Iterator[Block]:
    why = wording.say(finding.why)
    sure = wording.say(labels.CONFIDENCE[finding.confidence.value])
    if finding.evidence and all(evidence.place != seen for evidence in finding.evidence):
        sure += (wording.comma) + place_text(finding.evidence[0].place, wording)
    aside = wording.aside(sure)
    pieces = [
        Span(bare(wording.say(finding.title)), Style.STRONG),
        Span(aside + (wording.say(Text(". ", "："))), Style.DIM),
        *spans(wording.first_sentences(why, sentences) if sentences else why),
    ]
    if sentences is None and finding.signs:
        pieces.append(Span(_signs(finding.signs, wording), Style.DIM))
    if finding.unknowns:
        unknown = wording.semicolon.join(bare(wording.say(text)) for text in finding.unknowns[:_GAPS])
        pieces.append(Span(wording.blank + wording.say(labels.UNKNOWNS) + unknown + wording.stop, Style.DIM))
    yield Paragraph(tuple(pieces))


def _citations(findings: Sequence[Finding], wording: Wording, *, corrects: bool) -> Iterator[Block]:
    cites = list(dict.fromkeys(cite for finding in findings for cite in finding.cites))
    if not cites:
        return
    corrected = sorted(
        (cite for cite in cites if cite.correction is not None and cite.verdict in _NOT_RIGHT), key=lambda cite: cite.verdict != "wrong"
    )
    # One warning a screen: what is wrong in this run goes before what an article got wrong.
    for cite in corrected[:_CORRECTIONS] if corrects else ():
        yield Heading(wording.say(labels.CORRECTED if cite.verdict == "wrong" else labels.PARTLY))
        yield Paragraph(_correction(cite, wording))
    blocks = [block for cite in cites[:_CITES] for block in _cite(cite, wording)]
    yield Folded(
        wording.say(labels.SOURCES, n=len(cites)),
        (*blocks, *_rest(len(cites) - _CITES, wording)),
        _listed(dict.fromkeys(cite.title for cite in cites), wording),
    )


def _correction(cite: Cite, wording: Wording) -> tuple[Span, ...]:
    correction = wording.say(labels.CORRECTION, correction=wording.say(cite.correction)) if cite.correction is not None else ""
    return (*spans(wording.say(labels.CORRECTED_SAYS, source=cite.title, says=bare(wording.say(cite.says)))), *spans(correction))


def _cite(cite: Cite, wording: Wording) -> Iterator[Block]:
    link = (Span(" "), Span(cite.url, Style.LINK)) if cite.url else ()
    yield Paragraph((Span(cite.title, Style.STRONG), *link))
    if cite.correction is not None and cite.verdict in _NOT_RIGHT:
        yield Paragraph(_correction(cite, wording))
    else:
        yield Paragraph(spans(wording.say(cite.says)))


def _followed(incident: Incident, wording: Wording) -> Iterator[Block]:
    events = incident.consequences
    if not events:
        return
    shown = tuple(event_row(event, wording) for event in events[:_FOLLOWED])
    blocks: tuple[Block, ...] = (Facts(shown), *_rest(len(events) - _FOLLOWED, wording))
    yield Folded(wording.say(labels.FOLLOWED, n=len(events)), blocks, clean_line(event_text(events[0], wording), 100))


def _others(incidents: Sequence[Incident], wording: Wording) -> Iterator[Block]:
    if not incidents:
        return
    shown: list[Block] = []
    for incident in incidents[:_OTHERS]:
        shown.append(Paragraph((Span(incident_sentence(incident, wording)),)))
        shown.append(Quote(where=event_place(incident.root, wording), text=event_text(incident.root, wording)))
    gist = incident_sentence(incidents[0], wording)
    yield Folded(wording.say(labels.OTHERS, n=len(incidents)), (*shown, *_rest(len(incidents) - _OTHERS, wording)), gist)


def _machine(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Which machine's facts are used; that none are is worth a line only where a finding waits for one."""
    case = diagnosis.case
    waits = any(_OF_A_MACHINE.search(unknown.en) for finding in diagnosis.findings for unknown in finding.unknowns)
    if case.environment_note is not None and (case.environment is not None or waits):
        yield Paragraph((Span(wording.say(case.environment_note), Style.DIM),))


def _unknown(case: Case, wording: Wording) -> Iterator[Block]:
    gaps = [
        Row(gap.what, gap_text(gap.why, wording), wording.say(labels.GAP_LEARN, how=gap_text(gap.how, wording)) if gap.how else "")
        for gap in case.gaps
    ]
    named = {gap.what for gap in case.gaps}
    cut = [source.name for source in case.sources if not source.complete and source.name not in named]
    gaps += [Row("", wording.say(labels.INCOMPLETE, name=name)) for name in cut]
    if case.unread:
        gaps.append(Row("", wording.count(labels.UNREAD, case.unread)))
    if gaps:
        yield Heading(wording.say(labels.UNKNOWN))
        yield Facts(tuple(gaps[:_GAPS]))
        yield from _rest(len(gaps) - _GAPS, wording)


def _inputs(case: Case, wording: Wording) -> str:
    if not case.sources:
        return wording.say(labels.INPUT)
    name = case.sources[0].name if case.sources[0].name not in ("", "-") else wording.say(labels.INPUT)
    return name if len(case.sources) == 1 else wording.count(labels.AND_FILES, len(case.sources) - 1, name=name)


def _rest(more: int, wording: Wording) -> tuple[Paragraph, ...]:
    """Return a line that counts what a capped list leaves out."""
    return (Paragraph((Span(wording.say(labels.AND_MORE, n=more), Style.DIM),)),) if more > 0 else ()


def _listed(texts: Iterable[str], wording: Wording) -> str:
    return clean_line(wording.listed(texts), 160)
