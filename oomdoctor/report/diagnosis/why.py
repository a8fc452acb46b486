"""Why it failed, in a line or two; where the log cannot tell, the readings that remain. The rest of what the findings say is folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.diagnosis import Diagnosis, Finding, Sign
from oomdoctor.case.event import Certainty, Place
from oomdoctor.case.request import FailingRequest
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.certainty import finding_certainty, is_other_failure
from oomdoctor.report.diagnosis.needs import tells_need
from oomdoctor.report.diagnosis.places import place_text
from oomdoctor.report.document import Block, Folded, Paragraph, Span, Style
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, lower_first, spans
from oomdoctor.report.wording.wording import Wording

_CELLS = 150
"""Two lines of a terminal."""
_READINGS = 2
_CONCLUSIONS = 2
_FIGURE = re.compile(r"\d[\d.,]*")
_OTHERS = 8
_GAPS = 5


def why(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the first finding; nothing where the headline tells it, as it does of what only resembles a lack of memory."""
    if not diagnosis.findings or is_other_failure(diagnosis):
        return
    first = diagnosis.findings[0]
    sure = finding_certainty(diagnosis, first)
    grows = _grows_with(diagnosis.request, wording)
    if sure is Certainty.POSSIBLE:
        if diagnosis.request is not None and diagnosis.request.title is not None:
            named = wording.say(labels.REQUEST, what=wording.say(diagnosis.request.title))
            yield Paragraph((Span(wording.blank.join(filter(None, (named, grows)))),))
        yield from _conclusions(diagnosis, "", wording)
        if not tells_need(diagnosis.case):  # else the arithmetic tells it, in a sentence of its own
            yield Paragraph((Span(wording.say(labels.CANNOT_TELL), Style.STRONG), *spans(_readings(diagnosis, wording))))
        return
    lead = wording.say(labels.WHY, sure=wording.say(labels.CONFIDENCE[sure.value]))
    title = lower_first(bare(wording.say(first.title))) + wording.stop
    reason = grows or wording.first_sentences(wording.say(first.why), 1)
    fits = _width(lead + title + wording.blank + reason) <= _CELLS
    yield Paragraph((Span(lead, Style.STRONG), *spans(title), *(spans(wording.blank + reason) if fits else ())))
    yield from _conclusions(diagnosis, title + reason if fits else title, wording)


def _conclusions(diagnosis: Diagnosis, told: str, wording: Wording) -> Iterator[Block]:
    """Yield what follows from the figures, but for what is told already: a conclusion of which every figure stands there."""
    texts = [wording.say(text) for text in diagnosis.conclusions]
    new = [text for text in texts if not set(_FIGURE.findall(text)) <= set(_FIGURE.findall(told))]
    if new:
        yield Paragraph(spans(wording.blank.join(new[:_CONCLUSIONS])))


def _grows_with(request: FailingRequest | None, wording: Wording) -> str:
    """Return what the request grows with, and the values in force; empty where nobody knows what it was."""
    if request is None:
        return ""
    values = {setting.setting: setting.value for setting in request.in_force}
    grows = [
        wording.say(growth.title) + (wording.aside(str(values[growth.quantity])) if growth.quantity in values else "")
        for growth in request.grows_with
        if growth.power > 0
    ]
    return wording.say(labels.GROWS_WITH, what=wording.item_comma.join(grows)) if grows else ""


def more_findings(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the findings in full, folded."""
    findings = diagnosis.findings[: 1 + _OTHERS]
    if findings:
        seen = diagnosis.case.incidents[0].root.place if diagnosis.case.incidents else None
        blocks = tuple(_finding(diagnosis, finding, seen, wording) for finding in findings)
        more = len(diagnosis.findings) - len(findings)
        rest = (Paragraph((Span(wording.say(labels.AND_MORE, n=more), Style.DIM),)),) if more else ()
        title = wording.say(labels.MORE_WHY) if len(findings) == 1 else wording.say(labels.READINGS, n=len(diagnosis.findings))
        yield Folded(title, (*blocks, *rest))


def _readings(diagnosis: Diagnosis, wording: Wording) -> str:
    """Return the readings that remain, the most probable first, as one sentence."""
    by_id = {finding.id: finding for finding in diagnosis.findings}
    names = diagnosis.open_cause.findings if diagnosis.open_cause is not None else ()
    readings = [by_id[name] for name in names if name in by_id] or [
        finding for finding in diagnosis.findings if finding.confidence is Certainty.POSSIBLE
    ]
    titles = [lower_first(bare(wording.say(finding.title))) for finding in (readings or diagnosis.findings[:1])[:_READINGS]]
    return wording.say(labels.POSSIBLY, readings=wording.say(labels.OR).join(titles))


def _finding(diagnosis: Diagnosis, finding: Finding, seen: Place | None, wording: Wording) -> Paragraph:
    sure = wording.say(labels.CONFIDENCE[finding_certainty(diagnosis, finding).value])
    if finding.evidence and all(evidence.place != seen for evidence in finding.evidence):
        sure += wording.comma + place_text(finding.evidence[0].place, wording)
    pieces = [
        Span(bare(wording.say(finding.title)), Style.STRONG),
        Span(wording.aside(sure) + wording.say(Text(". ", "：")), Style.DIM),
        *spans(wording.say(finding.why)),
    ]
    if finding.signs:
        pieces.append(Span(_signs(finding.signs, wording), Style.DIM))
    if finding.unknowns:
        unknown = wording.semicolon.join(bare(wording.say(text)) for text in finding.unknowns[:_GAPS])
        pieces.append(Span(wording.blank + wording.say(labels.UNKNOWNS) + unknown + wording.stop, Style.DIM))
    return Paragraph(tuple(pieces))


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


def _width(text: str) -> int:
    """Return the cells that a text takes; a Chinese character takes two."""
    return sum(2 if ord(char) > 0x2E7F else 1 for char in text)
