"""What to do: three things in a line each, the evidence that settles an open cause last, and the command that writes the first."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.advice.ladder import ladder
from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis, Fix, OpenPhase
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text
from oomdoctor.planning.told.smallest_plan import PLAN
from oomdoctor.report.diagnosis.certainty import is_other_failure, is_told_by_message
from oomdoctor.report.diagnosis.headline import settle_text
from oomdoctor.report.diagnosis.steps import already_set, full_step, setting_as_typed, setting_place
from oomdoctor.report.diagnosis.typed_lines import phase_spans, settling_phase, typed_spans
from oomdoctor.report.document import Block, BriefStep, BriefSteps, Folded, Heading, Paragraph, Span, Steps, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, lower_first, spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_BRIEF = 3
_OTHER = 2
"""Steps against what is no failure of memory."""
_SETTINGS = 3
HOW = 200
"""Characters of how a step is done that a screen has room for."""
_FOLDED = 12
_ALREADY = 4
_SAID = 120
_KILL = "sigkill"
"""The check of a verdict that the evidence for a cause takes the place of: that asks for what this machine has."""
_ASKING = frozenset({"dmesg", "sacct", "kubectl", "nvidia-smi", "ulimit"})
_PASTED = ("", "-", "<text>")


def do_this(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield what to do. What is no failure of memory has its remedy and the test that tells whether it is that."""
    if diagnosis.open_phase is not None:
        yield Heading(_heading(diagnosis, (), wording))
        yield BriefSteps(tuple(_by_phase(diagnosis.open_phase, wording)))
        return
    # Of an error of no known class nothing is known that helps, other than to read it.
    is_unknown = is_told_by_message(diagnosis) and diagnosis.case.verdict.kind is Kind.LOOK_ALIKE
    fixes, settling = [] if is_unknown else ladder(unique_fixes(diagnosis.findings)), _settling(diagnosis, wording)
    fixes = [fix for fix in fixes if not (fix.command and settling and _is_asked(fix.command, settling[0]))]
    most = _OTHER - len(settling) if is_other_failure(diagnosis) else _BRIEF - len(settling)
    steps = (*(_brief(fix, diagnosis, wording, is_first=number == 0) for number, fix in enumerate(fixes[:most])), *settling)
    if steps:
        yield Heading(_heading(diagnosis, steps, wording))
        yield BriefSteps(steps, tuple(_written_by(diagnosis, fixes[:most], wording)))


def _by_phase(open_phase: OpenPhase, wording: Wording) -> Iterator[BriefStep]:
    """Yield what to do by when the run died, and what tells that."""
    yield from (BriefStep(phase_spans(phase, wording)) for phase in open_phase.phases)
    yield BriefStep((Span(wording.say(labels.SETTLE), Style.STRONG), *spans(wording.sentence(settling_phase(open_phase, wording)))))


def _heading(diagnosis: Diagnosis, steps: Sequence[BriefStep], wording: Wording) -> str:
    """Return what stands above the steps, with what is missing where a step says what it frees."""
    if diagnosis.case.verdict.survived:
        return wording.say(labels.DO_LATER)
    missing = _missing(diagnosis)
    frees = any(freed_bytes(fix) for fix in unique_fixes(diagnosis.findings)[: len(steps)])
    return (
        wording.say(labels.DO_THIS) if missing is None or not frees else wording.say(labels.DO_THIS_MISSING, missing=format_size(missing))
    )


def more_on_steps(diagnosis: Diagnosis, wording: Wording) -> Iterator[Block]:
    """Yield all that is known of each step, and what the run does already, folded."""
    fixes, already = unique_fixes(diagnosis.findings), already_set(diagnosis.findings)
    blocks: list[Block] = [Steps(tuple(full_step(fix, wording) for fix in fixes[:_FOLDED]))] if fixes else []
    if len(fixes) > _FOLDED:
        blocks.append(Paragraph((Span(wording.say(labels.AND_MORE, n=len(fixes) - _FOLDED), Style.DIM),)))
    if already:
        lines = wording.comma.join(f"`{line}`" for line in already[:_ALREADY])
        blocks.append(Paragraph(spans(wording.say(labels.ALREADY, lines=lines))))
    if (tried := diagnosis.case.stated.tried[:_ALREADY]) and fixes:
        sentences = wording.listed([clean_line(fact.says, _SAID) for fact in {fact.line: fact for fact in tried}.values()])
        blocks.append(Paragraph((Span(wording.say(labels.TRIED, said=sentences)),)))
    if blocks:
        yield Folded(wording.say(labels.MORE_STEPS, n=len(fixes)) if fixes else wording.say(labels.SET_ALREADY), tuple(blocks))


def fix_command(fix: Fix, case: Case) -> str | None:
    """Return the command that writes a fix into the configs that were given; None where the log is no file."""
    logs = [source.name for source in case.sources]
    if not logs or any(log in _PASTED for log in logs):
        return None
    named = [word for path in config_files(case) for word in ("-c", path)]
    decided = [] if fix.safety == "safe" else ["--yes"]
    return "oomdoctor fix " + shlex.join([*logs, *named, "--only", fix.id, *decided])


def _written_by(diagnosis: Diagnosis, shown: Sequence[Fix], wording: Wording) -> Iterator[Span]:
    """Yield the command that writes the first step that a tool can write."""
    number, fix = next(((number, fix) for number, fix in enumerate(shown, 1) if fix.id in diagnosis.written), (0, None))
    command = None if fix is None else fix_command(fix, diagnosis.case)
    if command is not None:
        yield Span(wording.say(labels.WRITE_IT if number == 1 else labels.WRITE_STEP, n=number), Style.DIM)
        yield Span(command, Style.CODE)


def config_files(case: Case) -> list[str]:
    """Return the config files that were given, as they were named."""
    logs = {source.name for source in case.sources}
    written = case.training.written if case.training is not None else ()
    return [file for file in dict.fromkeys(setting.file for setting in written) if file not in logs]


def _brief(fix: Fix, diagnosis: Diagnosis, wording: Wording, *, is_first: bool) -> BriefStep:
    """Return a fix in a line: what to type and where, else what to do."""
    title = bare(wording.say(fix.title))
    frees = _frees(fix, wording)
    if fix.settings:
        place, do = _typed(_written_together(fix), diagnosis.case, wording)
        names = is_first and not (frees and len(fix.settings) > 1)
        return _line(do, place, [frees, lower_first(title)], wording, least=2 if names else 1)
    if fix.command and "\n" not in fix.command:
        return _line((Span(title + wording.colon), Span(fix.command, Style.CODE)), "", [frees], wording)
    if fix.typed:
        return _line((Span(title + wording.colon), *typed_spans(fix.typed, wording)), "", [frees], wording)
    how = bare(wording.first_sentences(wording.say(fix.how), 1))
    return _line((Span(title),), "", [frees, how if len(how) <= HOW else ""], wording, least=2)


def _written_together(fix: Fix) -> Sequence[ProposedSetting]:
    """Return the settings of a step that one program takes; a plan holds only with all that it changes, in whatever program."""
    return fix.settings if fix.id == PLAN else [setting for setting in fix.settings if setting.framework == fix.settings[0].framework]


def _line(do: tuple[Span, ...], place: str, asides: Sequence[str], wording: Wording, *, least: int = 1) -> BriefStep:
    """Return a step with its asides, of which the first `least` are always told."""
    told, whole = (wording.semicolon.join(filter(None, part)) for part in (asides[:least], asides))
    return BriefStep(do, place, wording.aside(told).strip() if told else "", wording.aside(whole).strip() if whole else "")


def _typed(settings: Sequence[ProposedSetting], case: Case, wording: Wording) -> tuple[str, tuple[Span, ...]]:
    """Return the place of the first setting, and all settings as they are typed; other places stand before theirs."""
    do: list[Span] = []
    places: list[str] = []
    before: ProposedSetting | None = None
    for setting in settings[:_SETTINGS]:
        place = _place(setting, case, wording)
        is_new = all(_file(place) != _file(other) for other in places)
        do += [Span(wording.say(labels.OR_ELSE) if _is_other_version(setting, before) else wording.comma)] if before is not None else []
        before = setting
        do += [Span(f"{place} ", Style.DIM)] if is_new and places else []
        do.append(Span(setting_as_typed(setting), Style.CODE))
        do += [Span(wording.aside(wording.say(setting.note)))] if setting.dated and setting.note is not None else []
        places.append(place)
    # Of several lines of one file the first that is known leads to the others.
    first = next((place for place in places if place != _file(place) == _file(places[0])), places[0])
    return first, tuple(do)


def _is_other_version(setting: ProposedSetting, before: ProposedSetting) -> bool:
    """Return whether a setting is what another version of the program calls the one before it."""
    return setting.dated and before.dated and setting.sets == before.sets


def _file(place: str) -> str:
    return place.rpartition(":")[0] or place


def _place(setting: ProposedSetting, case: Case, wording: Wording) -> str:
    """Return where a setting stands; of one that is in no file yet, the file into which it goes where there is one."""
    configs = config_files(case)
    if setting.framework == "environment" and " " in setting.key:
        return ""
    if setting.file is None and len(configs) == 1 and case.training is not None and setting.framework == case.training.framework:
        return os.path.basename(configs[0])
    return setting_place(setting, wording)


def _frees(fix: Fix, wording: Wording) -> str:
    """Return what a fix frees and whether that is enough, as far as that is known."""
    freed, measured = freed_bytes(fix), fix.frees_measured
    by = measured.by if measured is not None else "at-most" if fix.fits is None else "model"
    size = wording.say(labels.FREES_SHORT[by], size=format_size(freed)) if freed else ""
    enough = wording.say(labels.THEN_FITS) if fix.fits == "yes" else ""
    return wording.semicolon.join(filter(None, (size, enough)))


def freed_bytes(fix: Fix) -> int | None:
    """Return what a fix frees: of what was measured, else as it is estimated."""
    return fix.frees_bytes if fix.frees_measured is None else fix.frees_measured.bytes


def _with_names(command: str, case: Case) -> str:
    """Return a command with the name of the log, where there is one."""
    logs = [source.name for source in case.sources]
    return re.sub(r"\bLOG\b", shlex.quote(logs[0]).replace("\\", r"\\"), command) if len(logs) == 1 and logs[0] not in _PASTED else command


def _missing(diagnosis: Diagnosis) -> int | None:
    """Return how much the request that failed lacked."""
    if diagnosis.request is not None and diagnosis.request.missing is not None:
        return diagnosis.request.missing
    root = diagnosis.case.incidents[0].root if diagnosis.case.incidents else None
    requested, free = (root.size("requested_bytes"), root.size("free_bytes")) if root is not None else (None, None)
    return requested - free if requested is not None and free is not None and free < requested else None


def _settling(diagnosis: Diagnosis, wording: Wording) -> tuple[BriefStep, ...]:
    """Return the one piece of evidence that settles an open verdict, else an open cause."""
    check, cause = settle_text(diagnosis.case, wording), diagnosis.open_cause
    lead = Span(wording.say(labels.SETTLE), Style.STRONG)
    if check is not None and not (cause is not None and diagnosis.case.verdict.settle == _KILL):
        return (BriefStep((lead, *spans(wording.sentence(check)))),)
    says, command = (cause.settled_by, cause.command) if cause is not None else _settles_request(diagnosis)
    is_given = "--config" in (command or "") and bool(config_files(diagnosis.case))
    if says is None or is_given:
        return ()
    typed = f"{wording.colon}`{_with_names(command, diagnosis.case)}`" if command else wording.stop
    return (BriefStep((lead, *spans(bare(wording.say(says)) + typed))),)


def _is_asked(command: str, settling: BriefStep) -> bool:
    """Return whether a command asks the same program as the evidence that settles it, and changes nothing."""
    program = command.split(" ", 1)[0]
    return any(span.style is Style.CODE and span.text.startswith(program + " ") for span in settling.do) and program in _ASKING


def _settles_request(diagnosis: Diagnosis) -> tuple[Text | None, str | None]:
    """Return what tells which request failed, where the first finding is only possible."""
    is_open = any(finding.confidence is Certainty.POSSIBLE for finding in diagnosis.findings[:1])
    request = diagnosis.request if is_open else None
    return (None, None) if request is None else (request.settled_by, request.command)
