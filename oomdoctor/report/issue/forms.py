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
from oomdoctor.report.issue.issue import figures, message, points, said, settings_in_force
from oomdoctor.report.issue.known_values import known_values
from oomdoctor.report.issue.missing_info import missing_info
from oomdoctor.report.wording.phrases import bare, comma, spans, written
from oomdoctor.report.wording.texts import fill

_SETTINGS = 12
_FIXES = 3
_LABELS = 3

WORDS = {
    "ask": Text("(please fill in: {what})", "（请补充：{what}）"),
    "rest": Text("the other lines of `{command}`, such as {labels}", "`{command}` 输出的其余各项，例如 {labels}"),
    "settings": Text("Settings in force", "生效的设置"),
    "try": Text("What may help", "可能有用的措施"),
}


def form(diagnosis: Diagnosis, own: ProjectForm, lang: str, version: str) -> Document:
    """The form, filled in. Its blocks are one `Folded` for each field, in order, whose title is the heading."""
    values = known_values(diagnosis.case)
    blocks = [Folded(one.heading, tuple(_field(one, diagnosis, values, own.sheets, lang))) for one in own.form.fields]
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def ticked(option: OptionRecord, values: Mapping[str, str]) -> bool:
    """Whether what is known says that an option holds. One without a fact is for the person."""
    return option.fact is not None and values.get(option.fact) == option.value


def _field(
    field: FieldRecord, diagnosis: Diagnosis, values: Mapping[str, str], sheets: Mapping[str, SheetRecord], lang: str
) -> Iterator[Block]:
    for name in field.parts:
        yield from _PARTS[name](diagnosis, lang)
    if field.sheet is not None:
        yield from _sheet(field, sheets[field.sheet], values, lang)
    known = values.get(field.fact) if field.fact is not None else None
    if known is not None:
        yield Paragraph((Span(known, Style.CODE),))
    if field.options:
        yield from _options(field, values, lang)
    if field.ask is not None and known is None:
        yield _ask(field.ask.zh if lang == "zh" else field.ask.en, lang)


def _ask(what: str, lang: str) -> Paragraph:
    return Paragraph(spans(fill(WORDS["ask"], lang, what=what)))


def _sheet(field: FieldRecord, sheet: SheetRecord, values: Mapping[str, str], lang: str) -> Iterator[Block]:
    """The lines whose facts are known, as the tool prints them, and what the tool would have said besides."""
    lines = [f"{label}: {values[fact]}" for label, fact in sheet.lines if fact in values]
    if lines:
        quote = Quote("", "\n".join(lines))
        yield Folded(field.details, (quote,)) if field.details else quote
    unknown = [label.lstrip("- ") for label, fact in sheet.lines if fact not in values]
    if not unknown:
        return
    labels = comma(lang).join(label.replace("`", "") for label in unknown[: _LABELS if sheet.command else None])
    if sheet.command:
        yield _ask(fill(WORDS["rest"], lang, command=sheet.command, labels=labels), lang)
    else:
        yield _ask(labels, lang)


def _options(field: FieldRecord, values: Mapping[str, str], lang: str) -> Iterator[Block]:
    """Boxes as a list of tasks; of a list to choose from only what holds, or what there is to choose from."""
    if not field.choice:
        yield Facts(tuple(Row("x" if ticked(one, values) else "", one.label) for one in field.options))
        return
    chosen = [one.label for one in field.options if ticked(one, values)]
    if chosen:
        yield Paragraph((Span(", ".join(chosen)),))
    else:
        yield _ask(", ".join(one.label for one in field.options), lang)


def _summary(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    yield from said(diagnosis, lang)


def _message(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    for incident in diagnosis.case.incidents[:1]:
        yield from message(incident, lang)


def _figures(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    for incident in diagnosis.case.incidents[:1]:
        yield from figures(incident, lang)


def _findings(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    yield from points(diagnosis.findings, lang)


def _fixes(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    fixes = [fix for finding in diagnosis.findings[:1] for fix in finding.fixes[:_FIXES]]
    rows = [
        Row(bare(fix.title.get(lang)), comma(lang).join(written(one.key, one.to) for one in fix.settings[:_FIXES]) or fix.command or "")
        for fix in fixes
    ]
    yield from _table("try", rows, lang)


def _settings(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    yield from _table("settings", settings_in_force(diagnosis.case, lang)[:_SETTINGS], lang)


def _missing(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    for one in missing_info(diagnosis.case):
        yield _ask(one.what.get(lang) + ("：" if lang == "zh" else ": ") + one.how.get(lang), lang)


def _table(title: str, rows: Sequence[Row], lang: str) -> Iterator[Block]:
    if rows:
        yield Heading(fill(WORDS[title], lang))
        yield Facts(tuple(rows))


_PARTS: Mapping[str, Callable[[Diagnosis, str], Iterator[Block]]] = {
    "summary": _summary,
    "message": _message,
    "figures": _figures,
    "findings": _findings,
    "fixes": _fixes,
    "settings": _settings,
    "missing": _missing,
}
