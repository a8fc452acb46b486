"""What to do, in the order in which to try it, what is done already, and what would not help."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

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

_SHORT = (3, 2, 1, 0, 0)
"""Steps after the first that are told in short, for each tightness."""
TIGHTEST = len(_SHORT) - 1
"""How little a report can tell outside of what is folded; 0 is the most."""
_FOLDED = 12
_SETTINGS = 4
_SETTINGS_SHORT = 2
_ALREADY = 4
_NOT_THIS = 1
_JOINED = " ,;，；"
"""What joins an amount to the words before it."""
_SETTLED = ("yes", "no")


def steps(findings: Sequence[Finding], wording: Wording, tightness: int) -> Iterator[Block]:
    """Yield the best step in full, a few more in short, the rest folded."""
    fixes = unique_fixes(findings)
    if fixes:
        yield Heading(wording.say(labels.NEXT))
        yield Steps((full_step(fixes[0], wording) if tightness < TIGHTEST else _short_step(fixes[0], wording),))
        yield from _others(fixes, wording, _SHORT[tightness], told=0 if tightness == TIGHTEST else 1)
    already = already_set(findings)
    if already:
        yield Paragraph(spans(wording.say(labels.ALREADY, lines=wording.comma.join(f"`{line}`" for line in already[:_ALREADY]))))


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


def not_this(findings: Sequence[Finding], wording: Wording, tightness: int) -> Iterator[Block]:
    """Advice that people are likely to meet and that is wrong here: one of it in full or in a sentence, the rest folded."""
    wrong = list({advice.advice: advice for finding in findings for advice in finding.not_this}.values())
    if not wrong:
        return
    shown = wrong[: 0 if _SHORT[tightness] < _NOT_THIS else _NOT_THIS]
    if shown:
        yield Heading(wording.say(labels.NOT_THIS))
        yield from (_wrong(advice, wording, sentences=1 if tightness else None) for advice in shown)
    rest = wrong if tightness else wrong[len(shown) :]
    if rest:
        gist = wording.semicolon.join(bare(wording.say(advice.advice)) for advice in wrong[len(shown) :])
        blocks = tuple(_wrong(advice, wording) for advice in rest)
        title = wording.say(labels.NOT_THIS if rest == wrong else labels.NOR_THIS, n=len(rest))
        yield Folded(title, blocks, clean_line(gist, 160))


def _others(fixes: Sequence[Fix], wording: Wording, short: int, told: int) -> Iterator[Block]:
    """Yield what follows the first fix; the details of all of which not all was `told` are folded."""
    rest = fixes[told:]
    if not rest:
        return
    if short and fixes[1:]:
        yield Paragraph((Span(wording.say(labels.THEN), Style.DIM),))
        yield Steps(tuple(_brief(fix, wording) for fix in fixes[1 : 1 + short]), first=2)
    title = wording.say(labels.DETAILS if len(rest) > 1 else labels.DETAIL, first=1 + told, last=len(fixes))
    blocks: list[Block] = [Steps(tuple(full_step(fix, wording) for fix in rest[:_FOLDED]), first=1 + told)]
    if len(rest) > _FOLDED:
        blocks.append(Paragraph((Span(wording.say(labels.AND_MORE, n=len(rest) - _FOLDED), Style.DIM),)))
    gist = wording.semicolon.join(bare(wording.say(fix.title)) for fix in fixes[1 + short :])
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


def _short_step(fix: Fix, wording: Wording) -> Step:
    """Return the first step where there is no space for all of it: how in a sentence, and what it needs."""
    step = full_step(fix, wording)
    how = spans(wording.first_sentences(wording.say(fix.how), 1))
    return replace(step, text=how, note=spans("".join(_needs(fix, wording))))


def _brief(fix: Fix, wording: Wording) -> Step:
    """Return a step in a line or two: whether it is enough, what and where; how only if there is nothing to type."""
    enough = [wording.say(labels.FITS[fix.fits])] if fix.fits in _SETTLED else []
    if fix.frees_measured is not None and fix.frees_measured.by != "at-most":
        enough.insert(0, wording.say(labels.FREES_MEASURED, amount=_amount(fix, wording).lstrip(_JOINED)))
    how = [] if fix.settings or fix.command else [wording.first_sentences(wording.say(fix.how), 1)]
    return Step(
        title=wording.sentence(wording.say(fix.title)),
        text=spans(wording.blank.join([*enough, *how])) if enough or how else (),
        settings=tuple(_first_settings(fix.settings, wording)),
        command=fix.command or "",
        note=spans("".join(_needs(fix, wording))),
    )


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


def _first_settings(proposed: Sequence[ProposedSetting], wording: Wording) -> Iterator[Row]:
    """Yield the settings of the first place alone, and how many there are for others."""
    first = [setting for setting in proposed if _place(setting, wording) == _place(proposed[0], wording)]
    yield from settings(first, wording, _SETTINGS_SHORT, left_out=len(proposed) - len(first))


def settings(proposed: Sequence[ProposedSetting], wording: Wording, most: int, left_out: int = 0) -> Iterator[Row]:
    """Yield settings as lines to type, each with the file where it stands; the last says how many more there are."""
    label, left_out = "", left_out + max(0, len(proposed) - most)
    for number, setting in enumerate(proposed[:most], 1):
        name = _place(setting, wording)
        line, note = _line(setting, wording)
        more = wording.say(labels.SETTINGS_MORE, n=left_out) if left_out and number == min(most, len(proposed)) else ""
        yield Row("" if name == label else name, line, wording.semicolon.join(part for part in (note, more) if part), style=Style.CODE)
        label = name


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


def _wrong(advice: NotThis, wording: Wording, sentences: int | None = None) -> Paragraph:
    why = wording.say(advice.why)
    sentences_told = wording.first_sentences(why, sentences) if sentences else why
    return Paragraph((Span(bare(wording.say(advice.advice)), Style.STRONG), Span(wording.colon), *spans(sentences_told)))
