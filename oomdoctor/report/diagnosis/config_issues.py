"""What of the config does not take effect: three complaints with what to write instead, the reasons of all but the first folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.report.document import Block, Folded, Heading, Paragraph, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.phrases import bare, blank, spans, stop, stopped
from oomdoctor.report.wording.texts import say

_SHOWN = 3
_FOLDED = 20
_STYLES = {"error": Style.BAD, "warning": Style.WARN, "note": Style.DIM}


def in_config(training: RunConfig | None, lang: str) -> Iterator[Block]:
    """The complaints, worst first; notes are for whoever unfolds them."""
    if training is None or not training.issues:
        return
    grave = [one for one in training.issues if one.severity != "note"]
    shown = grave[:_SHOWN]
    if shown:
        yield Heading(say("in-config", lang))
        yield from (_complaint(one, lang, whole=number == 0) for number, one in enumerate(shown))
    rest = [one for one in training.issues if one not in shown[:1]]
    if rest:
        yield Folded(say("more-in-config", lang, n=len(rest)), _blocks(rest, lang), _gist(rest, lang))


def _complaint(one: ConfigIssue, lang: str, *, whole: bool = True) -> Paragraph:
    place = Span(f"{one.file}:{one.line}", _STYLES[one.severity])
    write = (
        (*spans(blank(lang) + say("write-instead", lang)), Span(one.replacement, Style.CODE), Span(stop(lang))) if one.replacement else ()
    )
    why = blank(lang) + stopped(one.why.get(lang), lang) if whole else ""
    return Paragraph((place, Span("  "), *spans(stopped(one.what.get(lang), lang)), *spans(why), *write))


def _blocks(rest: Sequence[ConfigIssue], lang: str) -> tuple[Block, ...]:
    more = len(rest) - _FOLDED
    left = (Paragraph((Span(say("and-more", lang, n=more), Style.DIM),)),) if more > 0 else ()
    return (*(_complaint(one, lang) for one in rest[:_FOLDED]), *left)


def _gist(rest: Sequence[ConfigIssue], lang: str) -> str:
    return clean_line(("；" if lang == "zh" else "; ").join(bare(one.what.get(lang)) for one in rest), 160)
