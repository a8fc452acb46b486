"""What of the config does not take effect: three complaints with what to write instead, the reasons of all but the first folded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.report.document import Block, Folded, Heading, Paragraph, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Wording

_SHOWN = 3
_FOLDED = 20
_STYLES = {"error": Style.BAD, "warning": Style.WARN, "note": Style.DIM}


def config_error(training: RunConfig | None, wording: Wording) -> Iterator[Block]:
    """Yield the first thing in the config that stops the run or has no effect, without what to write instead."""
    issue = next((issue for issue in (training.issues if training is not None else ()) if issue.severity == "error"), None)
    if issue is not None:
        place = Span(f"{os.path.basename(issue.file)}:{issue.line}", Style.BAD)
        yield Paragraph((place, Span("  "), *spans(wording.sentence(wording.say(issue.what)))))


def more_on_config(training: RunConfig | None, wording: Wording) -> Iterator[Block]:
    """Yield all that is said of the config, folded."""
    issues = training.issues if training is not None else ()
    if issues:
        yield Folded(wording.say(labels.CONFIG_ISSUES, n=len(issues)), _blocks(issues, wording))


def config_issue_blocks(training: RunConfig | None, wording: Wording) -> Iterator[Block]:
    """Yield the complaints, worst first; notes are for whoever unfolds them."""
    if training is None or not training.issues:
        return
    grave = [issue for issue in training.issues if issue.severity != "note"]
    shown = grave[:_SHOWN]
    if shown:
        yield Heading(wording.say(labels.IN_CONFIG))
        yield from (_complaint(issue, wording, whole=number == 0) for number, issue in enumerate(shown))
    rest = [issue for issue in training.issues if issue not in shown[:1]]
    if rest:
        yield Folded(wording.say(labels.MORE_IN_CONFIG, n=len(rest)), _blocks(rest, wording), _gist(rest, wording))


def _complaint(issue: ConfigIssue, wording: Wording, *, whole: bool = True) -> Paragraph:
    place = Span(f"{issue.file}:{issue.line}", _STYLES[issue.severity])
    why = wording.blank + wording.sentence(wording.say(issue.why)) if whole else ""
    return Paragraph((place, Span("  "), *spans(wording.sentence(wording.say(issue.what))), *spans(why), *_instead(issue, wording)))


def _instead(issue: ConfigIssue, wording: Wording) -> tuple[Span, ...]:
    if not issue.replacement:
        return ()
    return (*spans(wording.blank + wording.say(labels.WRITE_INSTEAD)), Span(issue.replacement, Style.CODE), Span(wording.stop))


def _blocks(rest: Sequence[ConfigIssue], wording: Wording) -> tuple[Block, ...]:
    more = len(rest) - _FOLDED
    left = (Paragraph((Span(wording.say(labels.AND_MORE, n=more), Style.DIM),)),) if more > 0 else ()
    return (*(_complaint(issue, wording) for issue in rest[:_FOLDED]), *left)


def _gist(rest: Sequence[ConfigIssue], wording: Wording) -> str:
    return clean_line(wording.semicolon.join(bare(wording.say(issue.what)) for issue in rest), 160)
