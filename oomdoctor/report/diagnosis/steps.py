"""What to do, in the order in which to try it, what is done already, and what would not help."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.case.diagnosis import Finding, Fix, NotThis, TypedLine
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Folded, Heading, Paragraph, Row, Span, Step, Steps, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, setting_line, spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_SETTINGS = 4


def first_of_each(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    """Yield the first fix of each finding in full, where none waits for another; the others are folded."""
    first = unique_fixes([replace(finding, fixes=finding.fixes[:1]) for finding in findings])
    others = [fix for fix in unique_fixes(findings) if fix not in first]
    if first:
        yield Heading(wording.say(labels.DO))
        yield Steps(tuple(full_step(fix, wording) for fix in first))
    if others:
        gist = wording.comma.join(bare(wording.say(fix.title)) for fix in others)
        blocks = (Steps(tuple(full_step(fix, wording) for fix in others), first=1 + len(first)),)
        yield Folded(wording.say(labels.OTHER_WAYS, n=len(others)), blocks, clean_line(gist, 160))


def not_this(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    """Yield advice that people are likely to meet and that is wrong here, folded."""
    wrong = list({advice.advice: advice for finding in findings for advice in finding.not_this}.values())
    if wrong:
        gist = wording.semicolon.join(bare(wording.say(advice.advice)) for advice in wrong)
        yield Folded(wording.say(labels.NOT_THIS), tuple(_wrong(advice, wording) for advice in wrong), clean_line(gist, 160))


def already_set(findings: Sequence[Finding]) -> list[str]:
    """Return what the run does already, a line for each setting."""
    in_force = (setting for finding in findings for setting in finding.already)
    return list(dict.fromkeys(setting_line(setting.key, setting.before or setting.to) for setting in in_force))


def full_step(fix: Fix, wording: Wording) -> Step:
    """Return a fix with all that is known of it."""
    return Step(
        title=wording.sentence(wording.say(fix.title)),
        text=spans(wording.say(fix.how)),
        settings=tuple(settings(fix.settings, wording, _SETTINGS)) or tuple(_typed(fix.typed, wording)),
        command=fix.command or "",
        note=spans(wording.blank.join(_balance(fix, wording))),
    )


def _typed(lines: Sequence[TypedLine], wording: Wording) -> Iterator[Row]:
    """Yield what is typed where no program is known, each with who understands it."""
    for line in lines:
        yield Row(line.by, line.line, "" if line.value is None else wording.say(line.value), style=Style.CODE)


def _balance(fix: Fix, wording: Wording) -> Iterator[str]:
    """Yield what a fix frees, costs and needs, in a sentence each."""
    if fix.frees is not None:
        yield wording.say(labels.FREES) + bare(wording.say(fix.frees)) + _amount(fix, wording) + wording.stop
    if fix.fits is not None:
        yield wording.say(labels.FITS[fix.fits])
    if fix.costs is not None:
        yield wording.say(labels.COSTS) + wording.sentence(wording.say(fix.costs))
    yield from _needs(fix, wording)


def _amount(fix: Fix, wording: Wording) -> str:
    """Return how much a fix frees: of what was measured, else as far as it is estimated."""
    if fix.frees_measured is not None:
        sizes = {"size": format_size(fix.frees_measured.bytes), "of": format_size(fix.frees_measured.of)}
        return wording.say(labels.MEASURED[fix.frees_measured.by], **sizes)
    amount = labels.UP_TO if fix.fits is None else labels.ABOUT
    return "" if fix.frees_bytes is None else wording.say(amount, size=format_size(fix.frees_bytes))


def _needs(fix: Fix, wording: Wording) -> Iterator[str]:
    if fix.needs:
        yield wording.say(labels.NEEDS) + wording.comma.join(bare(wording.say(need)) for need in fix.needs) + wording.stop


def settings(proposed: Sequence[ProposedSetting], wording: Wording, most: int, left_out: int = 0) -> Iterator[Row]:
    """Yield settings as lines to type, each with the file where it stands; the last says how many more there are."""
    label, left_out = "", left_out + max(0, len(proposed) - most)
    for number, setting in enumerate(proposed[:most], 1):
        name = setting_place(setting, wording)
        note = wording.comma.join(_notes(setting, wording))
        more = wording.say(labels.SETTINGS_MORE, n=left_out) if left_out and number == min(most, len(proposed)) else ""
        yield Row(
            "" if name == label else name,
            setting_as_typed(setting),
            wording.semicolon.join(part for part in (note, more) if part),
            style=Style.CODE,
        )
        label = name


def setting_place(setting: ProposedSetting, wording: Wording) -> str:
    """Return the line of the file where a setting stands; else whose setting it is."""
    if setting.file:
        name = os.path.basename(setting.file)
        return name if setting.line is None else f"{name}:{setting.line}"
    return wording.say(labels.ENVIRONMENT) if setting.framework == "environment" else framework_title(setting.framework)


def setting_as_typed(setting: ProposedSetting) -> str:
    """Return a setting in its words, with the old value where it is known. What can be pasted as it is has no arrow in it."""
    if setting.before is None or not setting.to or _is_pasted(setting):
        return setting_line(setting.key, setting.to)
    return f"{setting_line(setting.key, setting.before)} → {setting.to}"


def _is_pasted(setting: ProposedSetting) -> bool:
    return setting.key.endswith(")") or "=" in setting_line(setting.key, "x")


def _notes(setting: ProposedSetting, wording: Wording) -> Iterator[str]:
    if setting.before is not None and _is_pasted(setting):
        yield wording.say(labels.WAS, value=setting.before)
    if setting.note is not None:
        yield wording.say(setting.note)


def _wrong(advice: NotThis, wording: Wording) -> Paragraph:
    return Paragraph((Span(bare(wording.say(advice.advice)), Style.STRONG), Span(wording.colon), *spans(wording.say(advice.why))))
