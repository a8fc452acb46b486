"""A diagnosis as an issue to file: what a maintainer asks for, in the order in which it is read, and short.

What happened, the message itself, the figures, the versions, the settings, what is tried already, what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Event, Kind, Place
from oomdoctor.case.incident import Incident, LedgerEntry
from oomdoctor.case.settings import WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.config_issues import in_config
from oomdoctor.report.diagnosis.figures import rows
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.diagnosis.places import at, repeated, where
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.issue.missing_info import MissingInfo, missing_info
from oomdoctor.report.safety.sanitize import clean_line, cut
from oomdoctor.report.wording.phrases import bare, blank, comma, spans, stopped, written
from oomdoctor.report.wording.texts import PARTS, fill, say
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

WORDS = {
    "versions": Text("Versions and card", "版本与显卡"),
    "settings": Text("Settings in force", "生效的设置"),
    "more-settings": Text("More settings ({n})", "其他设置（{n} 项）"),
    "ledger": Text("Where the memory went ({of})", "内存去向（{of}）"),
    "points": Text("What it points to", "初步判断"),
    "tried": Text("In force already", "已经在用的措施"),
    "missing": Text("Still missing", "还缺的信息"),
    "measured": Text("printed", "日志写明"),
    "derived": Text("worked out", "推算"),
    "estimated": Text("estimated", "估计"),
    "total": Text("in all", "合计"),
    "line": Text("line {n}", "第 {n} 行"),
}


def issue(diagnosis: Diagnosis, lang: str, version: str) -> Document:
    """The issue in `lang` (`en` or `zh`)."""
    case = diagnosis.case
    first = case.incidents[0] if case.incidents else None
    blocks: list[Block] = list(said(diagnosis, lang))
    if first is not None:
        blocks += message(first, lang)
        blocks += figures(first, lang)
    blocks += points(diagnosis.findings, lang)
    blocks += _versions(case, first, lang)
    settings = settings_in_force(case, lang)
    blocks += _section("settings", settings[:_SETTINGS], lang)
    blocks += in_config(case.training, lang)
    blocks += _tried(diagnosis.findings, lang)
    blocks += _section("missing", [_missing(one, lang) for one in missing_info(case)], lang)
    blocks += _folded(case, first, settings[_SETTINGS:], lang)
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def said(diagnosis: Diagnosis, lang: str) -> Iterator[Block]:
    """What happened in one sentence, and what would settle it."""
    yield Paragraph((Span(summary(diagnosis, lang), Style.STRONG),))
    settle = settle_text(diagnosis.case, lang)
    if settle is not None:
        yield Paragraph((Span(say("settle", lang)), *spans(stopped(settle, lang))))


def message(incident: Incident, lang: str) -> Iterator[Block]:
    """The message itself, where it stands, and how often."""
    root = incident.root
    text = "\n".join(cut(root.text, _QUOTED).split("\n")[-_QUOTED_LINES:])
    yield Quote(where=where(root, lang), text=text)
    frame = say("frame", lang, frame=clean_line(root.frame, 200)) if root.frame else ""
    again = repeated(incident, lang)
    if frame or again:
        yield Paragraph((Span(frame), Span(blank(lang) if frame and again else ""), Span(again)))


def figures(incident: Incident, lang: str) -> Iterator[Block]:
    """The ledger as a table that adds up; where there is none, the figures of the message."""
    memory = next((part.of for part in incident.ledger), None)
    if memory is None:
        yield from _section("figures", rows(incident.root, (), lang), lang)
        return
    parts = [part for part in incident.ledger if part.of == memory]
    total = sum(part.bytes for part in parts)
    whole = Row(fill(WORDS["total"], lang), format_size(total), "100 %")
    yield Heading(fill(WORDS["ledger"], lang, of=memory.replace("gpu", "GPU")))
    yield Facts((*(_part(part, total, lang) for part in parts), whole))


def _part(part: LedgerEntry, total: int, lang: str) -> Row:
    known = PARTS.get(part.what)
    aside = fill(WORDS[part.source], lang) if part.source in WORDS else part.source
    note = format_share(part.bytes / total) + comma(lang) + aside
    return Row(fill(known, lang) if known else part.what, format_size(part.bytes), note)


def points(findings: Sequence[Finding], lang: str) -> Iterator[Block]:
    """What the first findings say."""
    if not findings:
        return
    yield Heading(fill(WORDS["points"], lang))
    for one in findings[:_FINDINGS]:
        sure = say(f"confidence-{one.confidence.value}", lang)
        aside = f"（{sure}）：" if lang == "zh" else f" ({sure}). "
        yield Paragraph((Span(bare(one.title.get(lang)), Style.STRONG), Span(aside), *spans(one.why.get(lang))))


def _versions(case: Case, first: Incident | None, lang: str) -> Iterator[Block]:
    """`torch 2.4.0 · CUDA 12.1 · NVIDIA L20, 44.5 GiB`, as far as the log tells."""
    versions = [
        (name.removeprefix("log.").removesuffix("_version"), value)
        for name, value in sorted(case.facts.items())
        if name.endswith("_version")
    ]
    known = [f"{name.replace('_', ' ')} {clean_line(str(value), 40)}" for name, value in versions]
    total = first.root.size("total_bytes") if first is not None else None
    card = [clean_line(str(case.facts["log.gpu_name"]), 80)] if "log.gpu_name" in case.facts else ["GPU"] if total else []
    known += [comma(lang).join([*card, *([format_size(total)] if total else [])])] if card else []
    if known:
        yield Heading(fill(WORDS["versions"], lang))
        yield Paragraph((Span(" · ".join(known)),))


def settings_in_force(case: Case, lang: str) -> list[Row]:
    """The settings of the run with their places: first those that decide about memory, then what else the log shows."""
    rows = {given.name: Row(given.key, _value(given.value), _written(given, case, lang)) for given in _placed(case)}
    if case.training is not None:
        worked_out = {name: value for name, value in case.training.known_settings().items() if name not in case.training.places}
        rows |= {name: Row(name.replace("_", " "), _value(value), fill(WORDS["derived"], lang)) for name, value in worked_out.items()}
    for event in case.events:
        if event.kind is Kind.CONTEXT and event.signature.startswith(_SETTING_SIGNS):
            shown = {name: value for name, value in event.fields.items() if not isinstance(value, tuple)}
            rows |= {name: Row(name, _value(value), _printed(event.place, case, lang)) for name, value in shown.items() if name not in rows}
    return list(rows.values())


def _placed(case: Case) -> list[WrittenSetting]:
    return list(case.training.places.values()) if case.training is not None else []


def _value(value: object) -> str:
    return clean_line(str(value), 80)


def _written(given: WrittenSetting, case: Case, lang: str) -> str:
    """Where a setting is written: a config file by its name, the one log by the line alone."""
    if [source.name for source in case.sources] == [given.file]:
        return fill(WORDS["line"], lang, n=given.line)
    return f"{given.file}:{given.line}"


def _printed(place: Place, case: Case, lang: str) -> str:
    """Where a setting is printed; of a single log the number of the line is enough."""
    if len(case.sources) == 1 and place.line is not None:
        return fill(WORDS["line"], lang, n=place.line)
    return at(place, lang)


def _tried(findings: Sequence[Finding], lang: str) -> Iterator[Block]:
    """Measures that are in force already, so that nobody proposes them again."""
    lines = list(dict.fromkeys(written(one.key, one.before or one.to) for finding in findings for one in finding.already))
    if lines:
        yield Heading(fill(WORDS["tried"], lang))
        yield Paragraph(spans(comma(lang).join(f"`{line}`" for line in lines[:_TRIED])))


def _missing(one: MissingInfo, lang: str) -> Row:
    return Row(one.what.get(lang), one.how.get(lang).replace("`", ""))


def _section(key: str, found: Sequence[Row] | Iterator[Row], lang: str) -> Iterator[Block]:
    shown = tuple(found)
    if shown:
        yield Heading(fill(WORDS[key], lang) if key in WORDS else say(key, lang))
        yield Facts(shown)


def _folded(case: Case, first: Incident | None, settings: Sequence[Row], lang: str) -> Iterator[Block]:
    """Further settings, what followed and what else failed, for whoever wants to see it."""
    if settings:
        yield Folded(fill(WORDS["more-settings"], lang, n=len(settings)), (Facts(tuple(settings[:_MORE])),))
    followed = first.consequences if first is not None else ()
    if followed:
        yield Folded(say("followed", lang, n=len(followed)), (Facts(tuple(_line(event, lang) for event in followed[:_FOLLOWED])),))
    others = [incident.root for incident in case.incidents[1:]]
    if others:
        yield Folded(say("others", lang, n=len(others)), (Facts(tuple(_line(event, lang) for event in others[:_OTHERS])),))


def _line(event: Event, lang: str) -> Row:
    return Row(where(event, lang), clean_line(event.text, 160), style=Style.CODE)
