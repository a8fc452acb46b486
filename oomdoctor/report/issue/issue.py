"""A diagnosis as an issue to file: what a maintainer asks for, in the order in which it is read, and short.

What happened, the message itself, the figures, the versions, the settings, what is tried already, what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Kind, Place
from oomdoctor.case.incident import Incident, LedgerEntry
from oomdoctor.case.settings import WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.certainty import finding_certainty
from oomdoctor.report.diagnosis.config_issues import config_issue_blocks
from oomdoctor.report.diagnosis.figures import figure_rows
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.diagnosis.places import event_place, event_row, event_text, place_text, repetition_text
from oomdoctor.report.diagnosis.steps import already_set
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.issue.missing_info import MissingInfo, missing_info
from oomdoctor.report.safety.sanitize import clean_line, cut
from oomdoctor.report.wording import issue as texts
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.texts import PARTS
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_share, format_size

_FINDINGS = 2
_SETTINGS = 7
_MORE = 60
_TRIED = 4
_FOLLOWED = 6
_OTHERS = 4
_QUOTED_LINES = 8
_QUOTED = 1200
_SETTING_SIGNS = (
    "setting-",
    "hf-batch",
    "hf-gradient",
    "hf-total-batch",
    "llamafactory-method",
    "llamafactory-quantizing",
    "deepspeed-zero",
    "peft-trainable",
    "unsloth-batch",
    "gradient-checkpointing",
)
"""Beginnings of the ids of messages that print settings."""


def compose_issue(diagnosis: Diagnosis, wording: Wording, version: str) -> Document:
    """Compose the issue."""
    case = diagnosis.case
    first = case.incidents[0] if case.incidents else None
    blocks: list[Block] = list(verdict_blocks(diagnosis, wording))
    if first is not None:
        blocks += message_blocks(first, wording)
    blocks += finding_blocks(diagnosis, wording)
    if first is not None:
        blocks += ledger_blocks(first, wording)
    blocks += _versions(case, first, wording)
    settings = settings_in_force(case, wording)
    blocks += _section(texts.SETTINGS, settings[:_SETTINGS], wording)
    blocks += config_issue_blocks(case.training, wording)
    blocks += _tried(diagnosis.findings, wording)
    blocks += _section(texts.MISSING, [_missing(question, wording) for question in missing_info(case)], wording)
    blocks += _folded(case, first, settings[_SETTINGS:], wording)
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang=wording.lang)


def verdict_blocks(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield what happened in one sentence, and what would settle it."""
    yield Paragraph((Span(summary(diagnosis, wording), Style.STRONG),))
    check = settle_text(diagnosis.case, wording)
    if check is not None:
        yield Paragraph((Span(wording.say(labels.SETTLE)), *spans(wording.sentence(check))))


def message_blocks(incident: Incident, wording: Wording) -> Iterator[Block]:
    """Yield the message itself, where it stands, and how often."""
    root = incident.root
    text = "\n".join(cut(event_text(root, wording), _QUOTED).split("\n")[-_QUOTED_LINES:])
    yield Quote(where=event_place(root, wording), text=text)
    frame = wording.say(labels.FRAME, frame=clean_line(root.frame, 200)) if root.frame else ""
    again = repetition_text(incident, wording)
    if frame or again:
        yield Paragraph((Span(frame), Span(wording.blank if frame and again else ""), Span(again)))


def ledger_blocks(incident: Incident, wording: Wording) -> Iterator[Block]:
    """Yield the ledger as a table that adds up; where there is none, the figures of the message."""
    memory = next((part.of for part in incident.ledger), None)
    if memory is None:
        yield from _section(labels.FIGURES, figure_rows(incident.root, (), wording), wording)
        return
    parts = [part for part in incident.ledger if part.of == memory]
    total = sum(part.bytes for part in parts)
    whole = Row(wording.say(texts.TOTAL), format_size(total), "100 %")
    yield Heading(wording.say(texts.LEDGER, of=memory.replace("gpu", "GPU")))
    yield Facts((*(_part(part, total, wording) for part in parts), whole))


def _part(part: LedgerEntry, total: int, wording: Wording) -> Row:
    known = PARTS.get(part.what)
    aside = wording.say(texts.ORIGINS[part.source]) if part.source in texts.ORIGINS else part.source
    note = format_share(part.bytes / total) + wording.comma + aside
    return Row(wording.say(known) if known else part.what, format_size(part.bytes), note)


def finding_blocks(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield what the first findings say."""
    if not diagnosis.findings:
        return
    yield Heading(wording.say(texts.POINTS))
    for finding in diagnosis.findings[:_FINDINGS]:
        sure = wording.say(labels.CONFIDENCE[finding_certainty(diagnosis, finding).value])
        aside = f"（{sure}）：" if wording.is_chinese else f" ({sure}). "
        yield Paragraph((Span(bare(wording.say(finding.title)), Style.STRONG), Span(aside), *spans(wording.say(finding.why))))


def _versions(case: Case, first: Incident | None, wording: Wording) -> Iterator[Block]:
    """`torch 2.4.0 · CUDA 12.1 · NVIDIA L20, 44.5 GiB`, as far as the log tells."""
    versions = [
        (name.removeprefix("log.").removesuffix("_version"), value)
        for name, value in sorted(case.facts.items())
        if name.endswith("_version")
    ]
    known = [f"{name.replace('_', ' ')} {clean_line(str(value), 40)}" for name, value in versions]
    total = first.root.size("total_bytes") if first is not None else None
    card = [clean_line(str(case.facts["log.gpu_name"]), 80)] if "log.gpu_name" in case.facts else ["GPU"] if total else []
    known += [wording.comma.join([*card, *([format_size(total)] if total else [])])] if card else []
    if known:
        yield Heading(wording.say(texts.VERSIONS))
        yield Paragraph((Span(" · ".join(known)),))


def settings_in_force(case: Case, wording: Wording) -> list[Row]:
    """Return the settings of the run with their places: first those that decide about memory, then what else the log shows."""
    rows = {given.name: Row(given.key, _value(given.value), _written(given, case, wording)) for given in _placed(case)}
    if case.training is not None:
        worked_out = {name: value for name, value in case.training.known_settings().items() if name not in case.training.places}
        rows |= {
            name: Row(name.replace("_", " "), _value(value), wording.say(texts.ORIGINS["derived"])) for name, value in worked_out.items()
        }
    for event in case.events:
        if event.kind is Kind.CONTEXT and event.signature.startswith(_SETTING_SIGNS):
            shown = {name: value for name, value in event.fields.items() if not isinstance(value, tuple)}
            rows |= {
                name: Row(name, _value(value), _printed(event.place, case, wording)) for name, value in shown.items() if name not in rows
            }
    return list(rows.values())


def _placed(case: Case) -> list[WrittenSetting]:
    return list(case.training.places.values()) if case.training is not None else []


def _value(value: object) -> str:
    return clean_line(str(value), 80)


def _written(given: WrittenSetting, case: Case, wording: Wording) -> str:
    """Where a setting is written: a config file by its name, the one log by the line alone."""
    if [source.name for source in case.sources] == [given.file]:
        return wording.say(texts.LINE, n=given.line)
    return f"{given.file}:{given.line}"


def _printed(place: Place, case: Case, wording: Wording) -> str:
    """Where a setting is printed; of a single log the number of the line is enough."""
    if len(case.sources) == 1 and place.line is not None:
        return wording.say(texts.LINE, n=place.line)
    return place_text(place, wording)


def _tried(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    """Measures that are in force already, so that nobody proposes them again."""
    lines = already_set(findings)
    if lines:
        yield Heading(wording.say(texts.TRIED))
        yield Paragraph(spans(wording.comma.join(f"`{line}`" for line in lines[:_TRIED])))


def _missing(question: MissingInfo, wording: Wording) -> Row:
    return Row(wording.say(question.what), wording.say(question.how).replace("`", ""))


def _section(title: Text, rows: Sequence[Row] | Iterator[Row], wording: Wording) -> Iterator[Block]:
    shown = tuple(rows)
    if shown:
        yield Heading(wording.say(title))
        yield Facts(shown)


def _folded(case: Case, first: Incident | None, settings: Sequence[Row], wording: Wording) -> Iterator[Block]:
    """Further settings, what followed and what else failed, for whoever wants to see it."""
    if settings:
        yield Folded(wording.say(texts.MORE_SETTINGS, n=len(settings)), (Facts(tuple(settings[:_MORE])),))
    followed = first.consequences if first is not None else ()
    if followed:
        yield Folded(
            wording.say(labels.FOLLOWED, n=len(followed)), (Facts(tuple(event_row(event, wording) for event in followed[:_FOLLOWED])),)
        )
    others = [incident.root for incident in case.incidents[1:]]
    if others:
        yield Folded(wording.say(labels.OTHERS, n=len(others)), (Facts(tuple(event_row(event, wording) for event in others[:_OTHERS])),))
