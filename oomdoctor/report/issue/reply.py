"""A short answer to whoever reported a failure: what the log shows, what to try, which two facts are missing.

Everything in it stands in the diagnosis; where that knows nothing, the answer asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis, Finding, Fix
from oomdoctor.case.event import Kind, Place
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.diagnosis.places import at
from oomdoctor.report.document import Block, Document, Paragraph, Span, Step, Steps, Style
from oomdoctor.report.issue.missing_info import missing_info
from oomdoctor.report.wording.phrases import bare, blank, comma, first_sentences, spans, stop, stopped, written
from oomdoctor.report.wording.texts import fill, say

_STEPS = 3
_ASKED = 2
_KEYS = 2
_SENTENCES = 2
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.M | re.S)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_SENTENCE_SIGNS = re.compile("[，。！？；：、]")
_CHINESE_LINE = 6
_SAMPLE = 200_000

WORDS = {
    "thanks": Text("Thank you for the report.", "感谢反馈。"),
    "not-memory": Text("This is not a lack of memory. {what}.", "这不是内存或显存不足：{what}。"),
    "nothing": Text("The text that was posted shows no failure.", "贴出的内容里没有看到失败。"),
    "unread": Text("Nothing of the report could be read.", "没有读到任何内容。"),
    "place": Text("({place})", "（{place}）"),
    "line": Text("(line {n})", "（第 {n} 行）"),
    "likely": Text("What it most likely is: ", "很可能是："),
    "certain": Text("What it is: ", "原因："),
    "possible": Text("What it may be: ", "可能是："),
    "settle": Text("The log alone does not decide it. To settle it: {check}.", "只看日志还不能确定。可以这样确认：{check}。"),
    "config": Text("In the config, {place}: ", "配置 {place}："),
    "try": Text("Worth trying, in this order:", "建议依次尝试："),
    "try-one": Text("Worth trying:", "建议尝试："),
    "avoid": Text("To keep it from happening again:", "想避免再次出现："),
    "ask": Text("If that is not enough, please add: {list}.", "如果还不行，请补充：{list}。"),
    "ask-first": Text("To say more, it would help to see: {list}.", "要进一步判断，还需要：{list}。"),
    "asked": Text("{what} ({how})", "{what}（{how}）"),
    "and": Text("; and ", "；以及"),
    "in": Text(" ({where})", "（{where}）"),
}


def reply(diagnosis: Diagnosis, lang: str, version: str) -> Document:
    """The answer in `lang` (`en` or `zh`)."""
    case, findings = diagnosis.case, diagnosis.findings
    blocks: list[Block] = [_shown(diagnosis, lang)]
    check = settle_text(case, lang)
    if check is not None:
        blocks.append(Paragraph(spans(fill(WORDS["settle"], lang, check=check))))
    blocks += _meaning(findings, case, lang)
    void = _void(case, lang)
    blocks += void
    steps = _steps(findings, lang)[: _STEPS - len(void)]
    if steps:
        lead = "avoid" if case.verdict.survived else "try" if len(steps) > 1 else "try-one"
        blocks += [Paragraph((Span(fill(WORDS[lead], lang)),)), Steps(steps)]
    if not case.verdict.survived:
        blocks += _asked(case, lang, first=not steps)
    return Document(title=f"oomdoctor {version}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def language_of(text: str) -> str | None:
    """`zh` where somebody writes Chinese sentences around the log, else None: a log alone says nothing about its reader."""
    prose = _FENCED.sub("", text[:_SAMPLE])
    return "zh" if any(_is_chinese(line) for line in prose.splitlines()) else None


def _is_chinese(line: str) -> bool:
    """A sentence in Chinese, in which names of programs may stand in Latin letters."""
    chinese, latin = len(_CHINESE.findall(line)), len(_LATIN.findall(line))
    return chinese >= _CHINESE_LINE and (chinese > latin or (4 * chinese >= latin and _SENTENCE_SIGNS.search(line) is not None))


def _shown(diagnosis: Diagnosis, lang: str) -> Paragraph:
    """Thanks, and what the log shows with its place."""
    case = diagnosis.case
    if not case.incidents:
        said = fill(WORDS["unread" if case.verdict.reason == "nothing-read" else "nothing"], lang)
    elif case.verdict.kind is Kind.LOOK_ALIKE and diagnosis.findings:
        said = fill(WORDS["not-memory"], lang, what=bare(diagnosis.findings[0].title.get(lang)))
    else:
        said = summary(diagnosis, lang)
    pieces = [Span(fill(WORDS["thanks"], lang) + blank(lang)), Span(said)]
    if case.incidents:
        pieces.append(Span(_place(case.incidents[0].root.place, lang), Style.DIM))
    return Paragraph(tuple(pieces))


def _place(place: Place, lang: str) -> str:
    """Where it stands; in what was pasted the number of the line is enough."""
    if place.source in ("", "-"):
        return blank(lang) + fill(WORDS["line"], lang, n=place.line) if place.line is not None else ""
    return blank(lang) + fill(WORDS["place"], lang, place=at(place, lang))


def _meaning(findings: Sequence[Finding], case: Case, lang: str) -> Iterator[Block]:
    """The first finding; where it only repeats the headline of a look-alike, just why."""
    if not findings:
        return
    first = findings[0]
    why = spans(first_sentences(first.why.get(lang), lang, _SENTENCES))
    if case.verdict.kind is Kind.LOOK_ALIKE:
        yield Paragraph(why)
    else:
        yield Paragraph(
            (
                Span(fill(WORDS[first.confidence.value], lang)),
                Span(bare(first.title.get(lang)), Style.STRONG),
                Span(stop(lang) + blank(lang)),
                *why,
            )
        )


def _void(case: Case, lang: str) -> list[Block]:
    """The worst that is wrong in the config: what is void there helps nobody."""
    grave = [one for one in case.training.issues if one.severity != "note"] if case.training is not None else []
    if not grave:
        return []
    one = grave[0]
    write = (
        (*spans(blank(lang) + say("write-instead", lang)), Span(one.replacement, Style.CODE), Span(stop(lang))) if one.replacement else ()
    )
    lead = fill(WORDS["config"], lang, place=f"{one.file}:{one.line}")
    return [Paragraph((Span(lead), *spans(stopped(one.what.get(lang), lang)), *write))]


def _steps(findings: Sequence[Finding], lang: str) -> tuple[Step, ...]:
    return tuple(_step(fix, lang) for fix in unique_fixes(findings)[:_STEPS])


def _step(fix: Fix, lang: str) -> Step:
    """What to do with its keys; how only where there is nothing to type."""
    title = stopped(fix.title.get(lang), lang)
    framework = fix.settings[0].framework if fix.settings else None
    own = [one for one in fix.settings if one.framework == framework][:_KEYS]
    if own:
        pieces: list[Span] = []
        for number, one in enumerate(own):
            pieces += [Span(comma(lang))] if number else []
            pieces.append(Span(_change(one), Style.CODE))
        place = _where(own[0])
        return Step(title=title, text=(*pieces, Span(fill(WORDS["in"], lang, where=place) if place else "")))
    if fix.command and "\n" not in fix.command:
        return Step(title=title, text=(Span(fix.command, Style.CODE),))
    return Step(title=title, text=spans(first_sentences(fix.how.get(lang), lang, _SENTENCES)))


def _change(one: ProposedSetting) -> str:
    return written(one.key, f"{one.before} → {one.to}" if one.before is not None else one.to)


def _where(one: ProposedSetting) -> str:
    """Whose key it is and in which file; a variable or a command needs neither."""
    name = framework_title(one.framework) if one.framework != "environment" else ""
    place = f"{one.file}:{one.line}" if one.file and one.line else one.file or ""
    return ", ".join(part for part in (name, place) if part)


def _asked(case: Case, lang: str, *, first: bool) -> Iterator[Block]:
    asked = [fill(WORDS["asked"], lang, what=one.what.get(lang), how=one.how.get(lang)) for one in missing_info(case)][:_ASKED]
    if asked:
        listed = fill(WORDS["and"], lang).join(asked)
        yield Paragraph(spans(fill(WORDS["ask-first" if first else "ask"], lang, list=listed)))
