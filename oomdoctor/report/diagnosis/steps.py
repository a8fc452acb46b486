"""What to do, in the order in which to try it, what is done already, and what would not help."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.case.diagnosis import Finding, Fix, NotThis
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Folded, Heading, Paragraph, Row, Span, Step, Steps, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, setting_line, spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_SHORT = 3
_FOLDED = 12
_SETTINGS = 4
_SETTINGS_SHORT = 2
_ALREADY = 4
_NOT_THIS = 1
_SETTLED = ("yes", "no")


def steps(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    """Yield the best step in full, a few more in short, the rest folded."""
    fixes = unique_fixes(findings)
    if fixes:
        yield Heading(wording.say(labels.NEXT))
        yield Steps((full_step(fixes[0], wording),))
        yield from _others(fixes[1:], wording)
    already = already_set(findings)
    if already:
        yield Paragraph(spans(wording.say(labels.ALREADY, lines=wording.comma.join(f"`{line}`" for line in already[:_ALREADY]))))


def not_this(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    """Advice that people are likely to meet and that is wrong here."""
    wrong = list({advice.advice: advice for finding in findings for advice in finding.not_this}.values())
    if not wrong:
        return
    yield Heading(wording.say(labels.NOT_THIS))
    yield from (_wrong(advice, wording) for advice in wrong[:_NOT_THIS])
    rest = wrong[_NOT_THIS:]
    if rest:
        gist = wording.semicolon.join(bare(wording.say(advice.advice)) for advice in rest)
        yield Folded(wording.say(labels.NOR_THIS, n=len(rest)), tuple(_wrong(advice, wording) for advice in rest), clean_line(gist, 160))


def _others(fixes: Sequence[Fix], wording: Wording) -> Iterator[Block]:
    if not fixes:
        return
    yield Paragraph((Span(wording.say(labels.THEN), Style.DIM),))
    yield Steps(tuple(_brief(fix, wording) for fix in fixes[:_SHORT]), first=2)
    title = wording.say(labels.DETAILS if len(fixes) > 1 else labels.DETAIL, first=2, last=1 + len(fixes))
    blocks: list[Block] = [Steps(tuple(full_step(fix, wording) for fix in fixes[:_FOLDED]), first=2)]
    if len(fixes) > _FOLDED:
        blocks.append(Paragraph((Span(wording.say(labels.AND_MORE, n=len(fixes) - _FOLDED), Style.DIM),)))
    gist = wording.semicolon.join(bare(wording.say(fix.title)) for fix in fixes[_SHORT:])
    yield Folded(title, tuple(blocks), clean_line(gist, 160))


def already_set(findings: Sequence[Finding]) -> list[str]:
    """Return what the run does already, a line for each setting."""
    in_force = (setting for finding in findings for setting in finding.already)
    return list(dict.fromkeys(setting_line(setting.key, setting.before or setting.to) for setting in in_force))


def full_step(fix: Fix, wording: Wording) -> Step:
    """Return a fix with all that is known of it."""
    return Step(
        title=wording.sentence(wording.say(fix.title)),
        text=spans(wording.say(fix.how)),
        settings=tuple(settings(fix.settings, wording, _SETTINGS)),
        command=fix.command or "",
        note=spans(wording.blank.join(_balance(fix, wording))),
    )


def _brief(fix: Fix, wording: Wording) -> Step:
    """Return a step in a line or two: whether it is enough, what and where; how only if there is nothing to type."""
    enough = [wording.say(labels.FITS[fix.fits])] if fix.fits in _SETTLED else []
    how = [] if fix.settings or fix.command else [wording.first_sentences(wording.say(fix.how), 1)]
    return Step(
        title=wording.sentence(wording.say(fix.title)),
        text=spans(wording.blank.join([*enough, *how])) if enough or how else (),
        settings=tuple(settings(fix.settings, wording, _SETTINGS_SHORT)),
        command=fix.command or "",
        note=spans("".join(_needs(fix, wording))),
    )


def _balance(fix: Fix, wording: Wording) -> Iterator[str]:
    """Yield what a fix frees, costs and needs, in a sentence each."""
    if fix.frees is not None:
        amount = labels.UP_TO if fix.fits is None else labels.ABOUT
        size = "" if fix.frees_bytes is None else wording.say(amount, size=format_size(fix.frees_bytes))
        yield wording.say(labels.FREES) + bare(wording.say(fix.frees)) + size + wording.stop
    if fix.fits is not None:
        yield wording.say(labels.FITS[fix.fits])
    if fix.costs is not None:
        yield wording.say(labels.COSTS) + wording.sentence(wording.say(fix.costs))
    yield from _needs(fix, wording)


def _needs(fix: Fix, wording: Wording) -> Iterator[str]:
    if fix.needs:
        yield wording.say(labels.NEEDS) + wording.comma.join(bare(wording.say(need)) for need in fix.needs) + wording.stop


def settings(proposed: Sequence[ProposedSetting], wording: Wording, most: int) -> Iterator[Row]:
    """Yield settings as lines to type, each with the file where it stands."""
    label = ""
    for setting in proposed[:most]:
        name = _place(setting, wording)
        yield Row("" if name == label else name, *_line(setting, wording), style=Style.CODE)
        label = name
    if len(proposed) > most:
        yield Row("", wording.say(labels.SETTINGS_MORE, n=len(proposed) - most), style=Style.DIM)


def _place(setting: ProposedSetting, wording: Wording) -> str:
    """Return the line of the file where a setting stands; else whose setting it is."""
    if setting.file:
        name = os.path.basename(setting.file)
        return name if setting.line is None else f"{name}:{setting.line}"
    return wording.say(labels.ENVIRONMENT) if setting.framework == "environment" else framework_title(setting.framework)


def _line(setting: ProposedSetting, wording: Wording) -> tuple[str, str]:
    """Return the line to type, and a note on it. What can be pasted as it is has no arrow in it."""
    notes = [] if setting.note is None else [wording.say(setting.note)]
    if setting.before is None:
        return setting_line(setting.key, setting.to), "".join(notes)
    if setting.key.endswith(")") or "=" in setting_line(setting.key, "x"):
        return setting_line(setting.key, setting.to), wording.comma.join([wording.say(labels.WAS, value=setting.before), *notes])
    return f"{setting_line(setting.key, setting.before)} → {setting.to}", "".join(notes)


def _wrong(advice: NotThis, wording: Wording) -> Paragraph:
    colon = wording.colon
    return Paragraph((Span(bare(wording.say(advice.advice)), Style.STRONG), Span(colon), *spans(wording.say(advice.why))))
