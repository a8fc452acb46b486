"""A short answer to whoever reported a failure: what the log shows, what to try, which two facts are missing.

Everything in it stands in the diagnosis; where that knows nothing, the answer asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.advice.ladder import ladder
from oomdoctor.case.case import SEVERAL_RUNS, Case
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.event import Kind, Place
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.reading.feature_requests import has_nan_loss, is_wish
from oomdoctor.report.diagnosis.certainty import finding_certainty, is_other_failure
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.diagnosis.places import place_text
from oomdoctor.report.diagnosis.runs import runs_blocks
from oomdoctor.report.diagnosis.told import told_blocks
from oomdoctor.report.diagnosis.typed_lines import phase_spans, typed_spans
from oomdoctor.report.document import Block, Document, Paragraph, Span, Step, Steps, Style
from oomdoctor.report.issue.held_facts import held_facts
from oomdoctor.report.issue.missing_info import wanted_list
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording import reply as texts
from oomdoctor.report.wording.phrases import bare, setting_line, spans
from oomdoctor.report.wording.wording import Wording

_STEPS = 3
_ASKED = 2
_ASKED_FIRST = 3
_TRACEBACK = "Traceback"
_KEYS = 2
_SENTENCES = 2
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.M | re.S)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_SENTENCE_SIGNS = re.compile("[，。！？；：、]")
_ASKS = re.compile(r"^(?!\s*(?:\[|\d{2,4}[-/:]|INFO|WARN|ERROR|DEBUG))[^\n]*(?:请问|求助|求教|怎么|如何|为什么|帮忙|解决|吗[？?]|谢谢)")
_CHINESE_LINE = 6
_SAMPLE = 200_000


def compose_reply(diagnosis: Diagnosis, wording: Wording, version: str, text: str = "") -> Document:
    """Compose the answer; `text` is what the reporter wrote, so that nobody is asked for what stands in it."""
    case = diagnosis.case
    wish = not case.incidents and case.verdict.reason == "none" and is_wish(text)
    is_nan = not case.incidents and case.verdict.reason == "none" and has_nan_loss(text)
    blocks: list[Block] = [_shown(diagnosis, wording, wish=wish, is_nan=is_nan)]
    if case.verdict.reason == SEVERAL_RUNS:
        return Document(title=f"oomdoctor {version}", blocks=(*blocks, *runs_blocks(case, wording, heading=False)), lang=wording.lang)
    if case.told is not None:
        blocks += told_blocks(case.told, wording, heading=False)
    blocks += _meaning(diagnosis, wording)
    void = _void(case, wording)
    blocks += void
    steps = _steps(diagnosis, wording)[: _STEPS - len(void)]
    if steps:
        lead = texts.AVOID if case.verdict.survived else texts.TRY if len(steps) > 1 else texts.TRY_ONE
        blocks += [Paragraph((Span(wording.say(lead)),)), Steps(steps)]
    check = settle_text(case, wording)
    if check is not None:
        blocks.append(Paragraph(spans(wording.say(texts.SETTLE, check=check))))
    if not case.verdict.survived and not wish:
        answered = bool(steps) if case.told is None else bool(case.told.changes)
        blocks += _missing_info(case, wording, held_facts(text), first=not answered)
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang=wording.lang)


def language_of(text: str) -> str | None:
    """`zh` where somebody writes Chinese sentences around the log, else None: a log alone says nothing about its reader."""
    sample = text[:_SAMPLE]
    outside = any(_is_chinese(line) for line in _FENCED.sub("", sample).splitlines())
    # Forms put what a person writes into a block of text.
    return "zh" if outside or any(_is_chinese(line) and _ASKS.search(line) for line in sample.splitlines()) else None


def _is_chinese(line: str) -> bool:
    """Return whether a line is a sentence in Chinese, in which names of programs may stand in Latin letters."""
    chinese, latin = len(_CHINESE.findall(line)), len(_LATIN.findall(line))
    return chinese >= _CHINESE_LINE and (chinese > latin or (4 * chinese >= latin and _SENTENCE_SIGNS.search(line) is not None))


def _shown(diagnosis: Diagnosis, wording: Wording, *, wish: bool, is_nan: bool) -> Paragraph:
    """Thanks, and what the log shows with its place."""
    case = diagnosis.case
    if is_nan and not wish:
        verdict = wording.say(texts.NAN_LOSS)
    elif not case.incidents or case.verdict.reason in ("other-error", "told"):
        verdict = _without_incident(case, wording, wish=wish) or summary(diagnosis, wording)
    elif case.verdict.kind is Kind.LOOK_ALIKE and diagnosis.findings:
        verdict = wording.say(texts.NOT_MEMORY, what=bare(wording.say(diagnosis.findings[0].title)))
    else:
        verdict = summary(diagnosis, wording)
    pieces = [Span(wording.say(texts.THANKS) + wording.blank), Span(verdict)]
    if case.incidents and case.verdict.reason != SEVERAL_RUNS:
        pieces.append(Span(_place(case.incidents[0].root.place, wording), Style.DIM))
    return Paragraph(tuple(pieces))


def _without_incident(case: Case, wording: Wording, *, wish: bool) -> str | None:
    """Return what to say where no known message was found; None where the verdict says it."""
    reason = case.verdict.reason
    if wish:
        return wording.say(texts.WISH)
    if reason == "told":
        return wording.say(texts.TOLD)
    if reason == "other-error":
        error = clean_line(str(case.facts.get("log.last_error", "")), 200)
        return wording.say(texts.CUT if error.startswith(_TRACEBACK) else texts.OTHER_ERROR, error=bare(error))
    return wording.say(texts.UNREAD if reason == "nothing-read" else texts.NOTHING) if reason in ("nothing-read", "none") else None


def _place(place: Place, wording: Wording) -> str:
    """Where it stands; in what was pasted the number of the line is enough."""
    if place.source in ("", "-"):
        return wording.blank + wording.say(texts.LINE, n=place.line) if place.line is not None else ""
    return wording.blank + wording.say(texts.PLACE, place=place_text(place, wording))


def _meaning(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield the first finding; where it only repeats the headline of another error, just why."""
    if not diagnosis.findings:
        return
    first = diagnosis.findings[0]
    why = spans(wording.first_sentences(wording.say(first.why), _SENTENCES))
    if is_other_failure(diagnosis):
        yield Paragraph(why)
    else:
        yield Paragraph(
            (
                Span(wording.say(texts.CONFIDENCE[finding_certainty(diagnosis, first).value])),
                Span(bare(wording.say(first.title)), Style.STRONG),
                Span(wording.stop + wording.blank),
                *why,
            )
        )


def _void(case: Case, wording: Wording) -> list[Block]:
    """Return the worst complaint about the config: a setting without effect helps nobody."""
    grave = [issue for issue in case.training.issues if issue.severity != "note"] if case.training is not None else []
    if not grave:
        return []
    issue = grave[0]
    write = (
        (*spans(wording.blank + wording.say(labels.WRITE_INSTEAD)), Span(issue.replacement, Style.CODE), Span(wording.stop))
        if issue.replacement
        else ()
    )
    lead = wording.say(texts.CONFIG, place=f"{issue.file}:{issue.line}")
    return [Paragraph((Span(lead), *spans(wording.sentence(wording.say(issue.what))), *write))]


def _steps(diagnosis: Diagnosis, wording: Wording) -> tuple[Step, ...]:
    """Return the first steps; where nothing tells when the run died, what to do by when it was."""
    if diagnosis.open_phase is not None:
        return tuple(Step(title="", text=phase_spans(phase, wording)) for phase in diagnosis.open_phase.phases)
    return tuple(_step(fix, wording) for fix in ladder(unique_fixes(diagnosis.findings))[:_STEPS])


def _step(fix: Fix, wording: Wording) -> Step:
    """Return what to do with its keys; how only where there is nothing to type."""
    title = wording.sentence(wording.say(fix.title))
    framework = fix.settings[0].framework if fix.settings else None
    settings = [setting for setting in fix.settings if setting.framework == framework][:_KEYS]
    if settings:
        pieces: list[Span] = []
        for number, setting in enumerate(settings):
            pieces += [Span(wording.comma)] if number else []
            pieces.append(Span(_change(setting), Style.CODE))
        place = _where(settings[0])
        return Step(title=title, text=(*pieces, Span(wording.say(texts.IN, where=place) if place else "")))
    if fix.command and "\n" not in fix.command:
        return Step(title=title, text=(Span(fix.command, Style.CODE),))
    if fix.typed:
        return Step(title=title, text=typed_spans(fix.typed, wording))
    return Step(title=title, text=spans(wording.first_sentences(wording.say(fix.how), _SENTENCES)))


def _change(setting: ProposedSetting) -> str:
    return setting_line(setting.key, f"{setting.before} → {setting.to}" if setting.before is not None else setting.to)


def _where(setting: ProposedSetting) -> str:
    """Whose key it is and in which file; a variable or a command needs neither."""
    name = framework_title(setting.framework) if setting.framework != "environment" else ""
    place = f"{setting.file}:{setting.line}" if setting.file and setting.line else setting.file or ""
    return ", ".join(part for part in (name, place) if part)


def _missing_info(case: Case, wording: Wording, held: frozenset[str], *, first: bool) -> Iterator[Block]:
    listed = wanted_list(case, wording, held, _ASKED if case.incidents and case.told is None else _ASKED_FIRST)
    if listed:
        yield Paragraph(spans(wording.say(texts.ASK_FIRST if first else texts.ASK, list=listed)))
