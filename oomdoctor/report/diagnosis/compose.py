"""Diagnosis -> Document: what is said, in which order and in which words.

The verdict first, then what was seen, the figures, what it means, what to do; what few people need is folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.case import Case, Verdict
from oomdoctor.case.diagnosis import Cite, Diagnosis, Finding
from oomdoctor.case.event import Certainty, Place
from oomdoctor.case.incident import Incident
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.config_issues import in_config
from oomdoctor.report.diagnosis.expected import beside_seen
from oomdoctor.report.diagnosis.figures import bars, rows
from oomdoctor.report.diagnosis.headline import incident_sentence, settle_text, summary
from oomdoctor.report.diagnosis.places import at, repeated, where
from oomdoctor.report.diagnosis.steps import not_this, steps
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.phrases import bare, blank, first_sentences, spans, stop
from oomdoctor.report.wording.texts import gap_words, say

_FINDINGS = 3
_TOLD = 2
_SENTENCES = 2
"""Of the findings after the first; the whole of them is folded."""
_CORRECTIONS = 1
_FOLLOWED = 8
_OTHERS = 8
_GAPS = 5
_CITES = 20
_OF_A_MACHINE = re.compile(r"\benvironment\.|\blog\.(?:\w+_version|gpu_name)\b")
"""Facts that a machine could settle, as the engine names what it misses."""
_NOT_RIGHT = ("wrong", "partly")
_VERDICT = {"yes": Style.BAD, "possible": Style.WARN, "no": Style.GOOD}


def compose(diagnosis: Diagnosis, lang: str, version: str) -> Document:
    """The whole report in `lang` (`en` or `zh`), the verdict first."""
    case = diagnosis.case
    first = case.incidents[0] if case.incidents else None
    blocks: list[Block] = [*_verdict(diagnosis, lang)]
    if first is not None:
        blocks += _seen(first, lang)
        blocks += _figures(first, lang)
        blocks += beside_seen(case.estimate, lang)
        blocks += _budget(case, lang)
    blocks += _meaning(diagnosis.findings, first, lang)
    blocks += in_config(case.training, lang)
    blocks += steps(diagnosis.findings, lang)
    blocks += not_this(diagnosis.findings, lang)
    warned = any(one.not_this for one in diagnosis.findings) or bool(case.training and case.training.issues)
    blocks += _citations(diagnosis.findings, lang, corrects=not warned)
    if first is not None:
        blocks += _followed(first, lang)
    blocks += _others(case.incidents[1:], lang)
    blocks += _machine(diagnosis, lang)
    blocks += _unknown(case, lang)
    # What is folded comes last, together: a screen is read from the top, and these are its index.
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(title=f"oomdoctor {version} · {_inputs(case, lang)}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def _budget(case: Case, lang: str) -> Iterator[Block]:
    """What a server did with its share of the card."""
    if case.served is not None:
        from oomdoctor.report.diagnosis.serving_expected import beside_printed  # noqa: PLC0415 - few logs are of servers

        yield from beside_printed(case.served, lang)


def _verdict(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    verdict = diagnosis.case.verdict
    sentence = Span(summary(diagnosis, lang), _VERDICT.get(verdict.memory_failure, Style.WARN))
    settle = settle_text(diagnosis.case, lang)
    if settle is not None:
        yield Paragraph((sentence,))
        yield Paragraph((Span(say("settle", lang), Style.STRONG), *spans(settle), Span(stop(lang))))
    elif _has_certainty(verdict):
        yield Paragraph((sentence, Span(blank(lang) + say(f"certainty-{verdict.certainty.value}", lang), Style.DIM)))
    else:
        yield Paragraph((sentence,))


def _has_certainty(verdict: Verdict) -> bool:
    return verdict.reason not in ("none", "nothing-read") and verdict.kind.value != "none"


def _seen(incident: Incident, lang: str) -> Iterator[Block]:
    root = incident.root
    yield Heading(say("seen", lang))
    yield Quote(where=where(root, lang), text=root.text)
    frame = say("frame", lang, frame=clean_line(root.frame, 300)) if root.frame else ""
    again = repeated(incident, lang)
    if frame or again:
        yield Paragraph((Span(frame, Style.DIM), Span(blank(lang) if frame and again else ""), Span(again)))


def _figures(incident: Incident, lang: str) -> Iterator[Block]:
    figures, drawn = rows(incident.root, incident.ledger, lang), bars(incident.ledger, lang)
    if not figures and not drawn:
        return
    yield Heading(say("figures", lang))
    if figures:
        yield Facts(figures)
    yield from drawn[:1]
    if drawn[1:]:
        yield Folded(say("other-ledgers", lang), tuple(drawn[1:]), gist=_listed([bar.title for bar in drawn[1:]], lang))


def _meaning(findings: Sequence[Finding], first: Incident | None, lang: str) -> Iterator[Block]:
    if not findings:
        return
    seen = first.root.place if first else None
    yield Heading(say("means", lang))
    shown: list[Finding] = []
    rest: list[Finding] = []
    for number, finding in enumerate(findings[:_FINDINGS]):
        # Of several possible readings only the first is told; the others are named.
        tells = number == 0 or (number < _TOLD and finding.confidence is not Certainty.POSSIBLE)
        (shown if tells else rest).append(finding)
    for number, finding in enumerate(shown):
        yield from _finding(finding, seen, lang, sentences=_SENTENCES if number else None)
    if rest:
        lead = "also-possible" if all(one.confidence is Certainty.POSSIBLE for one in rest) else "also"
        yield Paragraph((Span(say(lead, lang), Style.DIM), *spans(_alternatives([one.title.get(lang) for one in rest], lang))))
    others = findings[1:]
    if others:
        blocks = tuple(block for finding in others[:_OTHERS] for block in _finding(finding, seen, lang))
        yield Folded(
            say("more-findings", lang, n=len(others)),
            (*blocks, *_rest(len(others) - _OTHERS, lang)),
            _listed([f.title.get(lang) for f in others], lang),
        )


def _alternatives(titles: Sequence[str], lang: str) -> str:
    """Titles as parts of one sentence."""
    if lang == "zh":
        return "；".join(bare(title) for title in titles) + "。"
    # "All activations" goes on in small letters, "JAX holds" does not.
    return "; ".join(bare(title[:1].lower() + title[1:] if title[1:2].islower() or title[1:2] == " " else title) for title in titles) + "."


def _finding(finding: Finding, seen: Place | None, lang: str, sentences: int | None = None) -> Iterator[Block]:
    why = finding.why.get(lang)
    sure = say(f"confidence-{finding.confidence.value}", lang)
    if finding.evidence and all(one.place != seen for one in finding.evidence):
        sure += ("，" if lang == "zh" else ", ") + at(finding.evidence[0].place, lang)
    aside = f"（{sure}）" if lang == "zh" else f" ({sure})"
    pieces = [
        Span(_bare(finding.title, lang), Style.STRONG),
        Span(aside + ("：" if lang == "zh" else ". "), Style.DIM),
        *spans(first_sentences(why, lang, sentences) if sentences else why),
    ]
    if finding.unknowns:
        unknown = ("；" if lang == "zh" else "; ").join(_bare(text, lang) for text in finding.unknowns[:_GAPS])
        pieces.append(Span(blank(lang) + say("unknowns", lang) + unknown + stop(lang), Style.DIM))
    yield Paragraph(tuple(pieces))


def _citations(findings: Sequence[Finding], lang: str, *, corrects: bool) -> Iterator[Block]:
    cites = list(dict.fromkeys(cite for finding in findings for cite in finding.cites))
    if not cites:
        return
    corrected = sorted(
        (one for one in cites if one.correction is not None and one.verdict in _NOT_RIGHT), key=lambda one: one.verdict != "wrong"
    )
    # One warning a screen: what is wrong in this run goes before what an article got wrong.
    for cite in corrected[:_CORRECTIONS] if corrects else ():
        yield Heading(say("corrected" if cite.verdict == "wrong" else "partly", lang))
        yield Paragraph(_correction(cite, lang))
    blocks = [block for cite in cites[:_CITES] for block in _cite(cite, lang)]
    yield Folded(say("sources", lang, n=len(cites)), (*blocks, *_rest(len(cites) - _CITES, lang)), _listed([c.title for c in cites], lang))


def _correction(cite: Cite, lang: str) -> tuple[Span, ...]:
    correction = say("correction", lang, correction=cite.correction.get(lang)) if cite.correction is not None else ""
    return (*spans(say("corrected-says", lang, source=cite.title, says=_bare(cite.says, lang))), *spans(correction))


def _cite(cite: Cite, lang: str) -> Iterator[Block]:
    link = (Span(" "), Span(cite.url, Style.LINK)) if cite.url else ()
    yield Paragraph((Span(cite.title, Style.STRONG), *link))
    if cite.correction is not None and cite.verdict in _NOT_RIGHT:
        yield Paragraph(_correction(cite, lang))
    else:
        yield Paragraph(spans(cite.says.get(lang)))


def _followed(incident: Incident, lang: str) -> Iterator[Block]:
    events = incident.consequences
    if not events:
        return
    shown = tuple(Row(where(event, lang), clean_line(event.text, 160), style=Style.CODE) for event in events[:_FOLLOWED])
    blocks: tuple[Block, ...] = (Facts(shown), *_rest(len(events) - _FOLLOWED, lang))
    yield Folded(say("followed", lang, n=len(events)), blocks, clean_line(events[0].text, 100))


def _others(incidents: Sequence[Incident], lang: str) -> Iterator[Block]:
    if not incidents:
        return
    shown: list[Block] = []
    for incident in incidents[:_OTHERS]:
        shown.append(Paragraph((Span(incident_sentence(incident, lang)),)))
        shown.append(Quote(where=where(incident.root, lang), text=incident.root.text))
    gist = incident_sentence(incidents[0], lang)
    yield Folded(say("others", lang, n=len(incidents)), (*shown, *_rest(len(incidents) - _OTHERS, lang)), gist)


def _machine(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    """Which machine's facts are used; that none are is worth a line only where a finding waits for one."""
    case = diagnosis.case
    waits = any(_OF_A_MACHINE.search(unknown.en) for finding in diagnosis.findings for unknown in finding.unknowns)
    if case.environment_note is not None and (case.environment is not None or waits):
        yield Paragraph((Span(case.environment_note.get(lang), Style.DIM),))


def _unknown(case: Case, lang: str) -> Iterator[Block]:
    gaps = [
        Row(gap.what, gap_words(gap.why, lang), say("gap-learn", lang, how=gap_words(gap.how, lang)) if gap.how else "")
        for gap in case.gaps
    ]
    gaps += [Row("", say("incomplete", lang, name=one.name)) for one in case.sources if not one.complete]
    if case.unread:
        gaps.append(Row("", say("unread", lang, n=case.unread)))
    if gaps:
        yield Heading(say("unknown", lang))
        yield Facts(tuple(gaps[:_GAPS]))
        yield from _rest(len(gaps) - _GAPS, lang)


def _inputs(case: Case, lang: str) -> str:
    if not case.sources:
        return say("input", lang)
    name = case.sources[0].name if case.sources[0].name not in ("", "-") else say("input", lang)
    return name if len(case.sources) == 1 else say("and-files", lang, name=name, n=len(case.sources), more=len(case.sources) - 1)


def _rest(more: int, lang: str) -> tuple[Paragraph, ...]:
    """A line that counts what a capped list leaves out."""
    return (Paragraph((Span(say("and-more", lang, n=more), Style.DIM),)),) if more > 0 else ()


def _bare(text: Text, lang: str) -> str:
    """A text of a rule without its full stop, to go on after it."""
    return text.get(lang).rstrip(" .。")


def _listed(texts: Iterable[str], lang: str) -> str:
    return clean_line(("；" if lang == "zh" else "; ").join(text.rstrip(" .。") for text in texts), 160)
