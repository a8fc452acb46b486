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
from oomdoctor.report.wording.phrases import bare, blank, comma, first_sentences, spans, stop, stopped, written
from oomdoctor.report.wording.texts import say
from oomdoctor.units import format_size

_SHORT = 3
_FOLDED = 12
_SETTINGS = 4
_SETTINGS_SHORT = 2
_ALREADY = 4
_NOT_THIS = 1
_SETTLED = ("yes", "no")


def steps(findings: Sequence[Finding], lang: str) -> Iterator[Block]:
    """The best step in full, a few more in short, the rest folded."""
    fixes = unique_fixes(findings)
    if fixes:
        yield Heading(say("next", lang))
        yield Steps((full_step(fixes[0], lang),))
        yield from _others(fixes[1:], lang)
    already = list(dict.fromkeys(written(one.key, one.before or one.to) for finding in findings for one in finding.already))
    if already:
        yield Paragraph(spans(say("already", lang, lines=comma(lang).join(f"`{line}`" for line in already[:_ALREADY]))))


def not_this(findings: Sequence[Finding], lang: str) -> Iterator[Block]:
    """Advice that people are likely to meet and that is wrong here."""
    wrong = list({one.advice: one for finding in findings for one in finding.not_this}.values())
    if not wrong:
        return
    yield Heading(say("not-this", lang))
    yield from (_wrong(one, lang) for one in wrong[:_NOT_THIS])
    rest = wrong[_NOT_THIS:]
    if rest:
        gist = ("；" if lang == "zh" else "; ").join(bare(one.advice.get(lang)) for one in rest)
        yield Folded(say("nor-this", lang, n=len(rest)), tuple(_wrong(one, lang) for one in rest), clean_line(gist, 160))


def _others(fixes: Sequence[Fix], lang: str) -> Iterator[Block]:
    if not fixes:
        return
    yield Paragraph((Span(say("then", lang), Style.DIM),))
    yield Steps(tuple(_brief(fix, lang) for fix in fixes[:_SHORT]), first=2)
    title = say("details" if len(fixes) > 1 else "detail", lang, first=2, last=1 + len(fixes))
    blocks: list[Block] = [Steps(tuple(full_step(fix, lang) for fix in fixes[:_FOLDED]), first=2)]
    if len(fixes) > _FOLDED:
        blocks.append(Paragraph((Span(say("and-more", lang, n=len(fixes) - _FOLDED), Style.DIM),)))
    gist = ("；" if lang == "zh" else "; ").join(bare(fix.title.get(lang)) for fix in fixes[_SHORT:])
    yield Folded(title, tuple(blocks), clean_line(gist, 160))


def full_step(fix: Fix, lang: str) -> Step:
    """A fix with all that is known of it."""
    return Step(
        title=stopped(fix.title.get(lang), lang),
        text=spans(fix.how.get(lang)),
        settings=tuple(settings(fix.settings, lang, _SETTINGS)),
        command=fix.command or "",
        note=spans(blank(lang).join(_balance(fix, lang))),
    )


def _brief(fix: Fix, lang: str) -> Step:
    """A step in a line or two: whether it is enough, what and where; how only if there is nothing to type."""
    enough = [say(f"fits-{fix.fits}", lang)] if fix.fits in _SETTLED else []
    how = [] if fix.settings or fix.command else [first_sentences(fix.how.get(lang), lang, 1)]
    return Step(
        title=stopped(fix.title.get(lang), lang),
        text=spans(blank(lang).join([*enough, *how])) if enough or how else (),
        settings=tuple(settings(fix.settings, lang, _SETTINGS_SHORT)),
        command=fix.command or "",
        note=spans("".join(_needs(fix, lang))),
    )


def _balance(fix: Fix, lang: str) -> Iterator[str]:
    """What a fix frees, costs and needs, in a sentence each."""
    if fix.frees is not None:
        amount = "up-to" if fix.fits is None else "about"
        size = "" if fix.frees_bytes is None else say(amount, lang, size=format_size(fix.frees_bytes))
        yield say("frees", lang) + bare(fix.frees.get(lang)) + size + stop(lang)
    if fix.fits is not None:
        yield say(f"fits-{fix.fits}", lang)
    if fix.costs is not None:
        yield say("costs", lang) + stopped(fix.costs.get(lang), lang)
    yield from _needs(fix, lang)


def _needs(fix: Fix, lang: str) -> Iterator[str]:
    if fix.needs:
        yield say("needs", lang) + comma(lang).join(bare(one.get(lang)) for one in fix.needs) + stop(lang)


def settings(found: Sequence[ProposedSetting], lang: str, most: int) -> Iterator[Row]:
    """Settings as lines to type, each with the file where it stands."""
    label = ""
    for one in found[:most]:
        name = _place(one, lang)
        yield Row("" if name == label else name, *_line(one, lang), style=Style.CODE)
        label = name
    if len(found) > most:
        yield Row("", say("settings-more", lang, n=len(found) - most), style=Style.DIM)


def _place(setting: ProposedSetting, lang: str) -> str:
    """The line of the file where a setting stands; else whose setting it is."""
    if setting.file:
        name = os.path.basename(setting.file)
        return name if setting.line is None else f"{name}:{setting.line}"
    return say("environment", lang) if setting.framework == "environment" else framework_title(setting.framework)


def _line(setting: ProposedSetting, lang: str) -> tuple[str, str]:
    """The line to type, and a note on it. What can be pasted as it is has no arrow in it."""
    notes = [] if setting.note is None else [setting.note.get(lang)]
    if setting.before is None:
        return written(setting.key, setting.to), "".join(notes)
    if setting.key.endswith(")") or "=" in written(setting.key, "x"):
        return written(setting.key, setting.to), comma(lang).join([say("was", lang, value=setting.before), *notes])
    return f"{written(setting.key, setting.before)} → {setting.to}", "".join(notes)


def _wrong(one: NotThis, lang: str) -> Paragraph:
    colon = "：" if lang == "zh" else ": "
    return Paragraph((Span(bare(one.advice.get(lang)), Style.STRONG), Span(colon), *spans(one.why.get(lang))))
