"""A diagnosis as the bug form of a project: its fields in its order and words, with what is known, and marks where a person must write.

A form is data (rules/forms). What only a person can say stays marked; a box that vouches for something is never ticked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.text import Text
from oomdoctor.knowledge.project_forms import ProjectForm
from oomdoctor.knowledge.records.form import FieldRecord, OptionRecord, SheetRecord
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.issue.issue import finding_blocks, ledger_blocks, message_blocks, settings_in_force, verdict_blocks
from oomdoctor.report.issue.known_values import known_values
from oomdoctor.report.issue.missing_info import missing_info
from oomdoctor.report.wording import forms as texts
from oomdoctor.report.wording.phrases import bare, setting_line, spans
from oomdoctor.report.wording.wording import Wording

_SETTINGS = 12
_FIXES = 3
_LABELS = 3
_FRAMES = 60
_OUTER = 10
"""Lines of a traceback in a form, and how many of them are its first."""


def compose_form(diagnosis: Diagnosis, project: ProjectForm, wording: Wording, version: str) -> Document:
    """Fill in the form. Its blocks are one `Folded` for each field, in order, whose title is the heading."""
    values = known_values(diagnosis.case)
    blocks = [Folded(field.heading, tuple(_field(field, diagnosis, values, project.sheets, wording))) for field in project.form.fields]
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang=wording.lang)


def is_ticked(option: OptionRecord, values: Mapping[str, str]) -> bool:
    """Whether what is known says that an option holds. One without a fact is for the person."""
    return option.fact is not None and values.get(option.fact) == option.value


def _field(
    field: FieldRecord, diagnosis: Diagnosis, values: Mapping[str, str], sheets: Mapping[str, SheetRecord], wording: Wording
) -> Iterator[Block]:
    for name in field.parts:
        yield from _PARTS[name](diagnosis, wording)
    if field.sheet is not None:
        yield from _sheet(field, sheets[field.sheet], values, wording)
    known = values.get(field.fact) if field.fact is not None else None
    if known is not None:
        yield Paragraph((Span(known, Style.CODE),))
    if field.options:
        yield from _options(field, values, wording)
    if field.ask is not None and known is None:
        yield _ask(wording.say(field.ask), wording)


def _ask(what: str, wording: Wording) -> Paragraph:
    return Paragraph(spans(wording.say(texts.ASK, what=what)))


def _sheet(field: FieldRecord, sheet: SheetRecord, values: Mapping[str, str], wording: Wording) -> Iterator[Block]:
    """Yield the lines whose facts are known, as the tool prints them, and ask for the others."""
    lines = [f"{label}: {values[fact]}" for label, fact in sheet.lines if fact in values]
    if lines:
        quote = Quote("", "\n".join(lines))
        yield Folded(field.details, (quote,)) if field.details else quote
    unknown = [label.lstrip("- ") for label, fact in sheet.lines if fact not in values]
    if not unknown:
        return
    labels = wording.comma.join(label.replace("`", "") for label in unknown[: _LABELS if sheet.command else None])
    if sheet.command:
        yield _ask(wording.say(texts.REST, command=sheet.command, labels=labels), wording)
    else:
        yield _ask(labels, wording)


def _options(field: FieldRecord, values: Mapping[str, str], wording: Wording) -> Iterator[Block]:
    """Boxes as a list of tasks; of a list to choose from only what holds, or what there is to choose from."""
    if not field.choice:
        yield Facts(tuple(Row("x" if is_ticked(option, values) else "", option.label) for option in field.options))
        return
    chosen = [option.label for option in field.options if is_ticked(option, values)]
    if chosen:
        yield Paragraph((Span(", ".join(chosen)),))
    else:
        yield _ask(", ".join(option.label for option in field.options), wording)


def _summary(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    yield from verdict_blocks(diagnosis, wording)


def _message(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    for incident in diagnosis.case.incidents[:1]:
        yield from message_blocks(incident, wording)


def _traceback(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the frames that lead to the first failure; of very many the outermost and the innermost."""
    lines = diagnosis.case.incidents[0].traceback.split("\n") if diagnosis.case.incidents else []
    left_out = len(lines) - _FRAMES
    if left_out > 0:
        lines = [*lines[:_OUTER], wording.say(texts.LINES_LEFT_OUT, n=left_out), *lines[_OUTER - _FRAMES :]]
    if any(lines):
        yield Quote("", "\n".join(lines))


def _model(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the model that the settings or the log name; ask for it where nothing does."""
    case = diagnosis.case
    told = case.told.model if case.told is not None else None
    named = (case.training.settings.model if case.training is not None else None) or told
    yield (
        Paragraph((Span(wording.say(texts.MODEL)), Span(str(named), Style.CODE)))
        if named
        else _ask(wording.say(texts.WHICH_MODEL), wording)
    )


def _figures(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    for incident in diagnosis.case.incidents[:1]:
        yield from ledger_blocks(incident, wording)


def _findings(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    yield from finding_blocks(diagnosis, wording)


def _fixes(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    fixes = [fix for finding in diagnosis.findings[:1] for fix in finding.fixes[:_FIXES]]
    rows = [
        Row(
            bare(wording.say(fix.title)),
            wording.comma.join(setting_line(setting.key, setting.to) for setting in fix.settings[:_FIXES]) or fix.command or "",
        )
        for fix in fixes
    ]
    yield from _table(texts.TRY, rows, wording)


def _settings(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    yield from _table(texts.SETTINGS, settings_in_force(diagnosis.case, wording)[:_SETTINGS], wording)


def _missing(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    for question in missing_info(diagnosis.case):
        yield _ask(wording.say(question.what) + wording.colon + wording.say(question.how), wording)


def _table(title: Text, rows: Sequence[Row], wording: Wording) -> Iterator[Block]:
    if rows:
        yield Heading(wording.say(title))
        yield Facts(tuple(rows))


_PARTS: Mapping[str, Callable[[Diagnosis, Wording], Iterator[Block]]] = {
    "summary": _summary,
    "message": _message,
    "traceback": _traceback,
    "model": _model,
    "figures": _figures,
    "findings": _findings,
    "fixes": _fixes,
    "settings": _settings,
    "missing": _missing,
}
