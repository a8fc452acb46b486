"""What `oomdoctor check` says of a config: how much is wrong, each complaint with its line, and whether the run fits its cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.case.gap import Gap
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.bugs import installed_bugs
from oomdoctor.report.memory.estimate import compose as compose_estimate
from oomdoctor.report.memory.fits import fits_line
from oomdoctor.report.memory.serving import compose as compose_server
from oomdoctor.report.memory.serving import obstacle
from oomdoctor.report.memory.serving import verdict as server_verdict
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording

_SEVERITIES = {
    "error": (Text("error", "错误"), Style.BAD),
    "warning": (Text("warning", "警告"), Style.WARN),
    "note": (Text("note", "提示"), Style.DIM),
}
_MANY = {"error": "errors", "warning": "warnings", "note": "notes"}
_SHOWN = 100
_UNKNOWN_FRAMEWORK = Text(
    "The framework for these settings is unknown, so only a few could be checked; in those: ",
    "不知道这是哪个框架的配置，能检查的不多；就查过的而言：",
)


def compose(
    training: RunConfig | None,
    memory: RunEstimate | None,
    gaps: Sequence[Gap],
    wording: Wording,
    version: str,
    *,
    bugs: Sequence[KnownBug] = (),
) -> Document:
    """Compose the document; `memory` is None where no card was named or the model is not known; `bugs` are of the framework's release."""
    blocks = (*_blocks(training, memory, gaps, wording), *installed_bugs(bugs, wording))
    return Document(title=f"oomdoctor {version} · check", blocks=blocks, lang=wording.lang)


def findings(training: RunConfig, memory: RunEstimate | None) -> tuple[ConfigIssue, ...]:
    """Return the complaints, led by one that the run does not fit or may not, at the line of the model: for formats of lines only."""
    if memory is None or memory.fits_alone in (None, "yes"):
        return training.issues
    place = training.places.get("model") or training.written[0]
    surely = memory.fits_alone == "no"
    what, why = (Text(*(_verdict(memory, Wording(lang))[at] for lang in ("en", "zh"))) for at in range(2))
    verdict = ConfigIssue(
        id="does-not-fit" if surely else "may-not-fit",
        severity="error" if surely else "warning",
        key=place.key,
        file=place.file,
        line=place.line,
        what=what,
        why=why,
    )
    return (verdict, *training.issues)


def _verdict(memory: RunEstimate, wording: Wording) -> tuple[str, str]:
    """Return the verdict, and what it rests on; empty where the run is held against no card."""
    if isinstance(memory.estimate, Served):
        return server_verdict(memory.estimate, wording).text, obstacle(memory.estimate, wording)
    verdict, needs = ("", "") if memory.fit is None else (span.text.strip() for span in fits_line(memory.fit, wording))
    return verdict, needs


def _blocks(training: RunConfig | None, memory: RunEstimate | None, gaps: Sequence[Gap], wording: Wording) -> Iterator[Block]:
    complaints = () if training is None else training.issues
    yield Paragraph(tuple(_summary(training, complaints, wording)))
    yield from (_complaint(issue, wording) for issue in complaints[:_SHOWN])
    if len(complaints) > _SHOWN:
        yield Paragraph((Span(wording.say(labels.AND_MORE, n=len(complaints) - _SHOWN), Style.DIM),))
    if memory is not None:
        yield Heading(wording.say(Text("Memory", "显存")))
        yield from (
            compose_server(memory.estimate, wording, "")
            if isinstance(memory.estimate, Served)
            else compose_estimate(memory, memory.estimate, wording, "")
        ).blocks
    if gaps:
        yield Heading(wording.say(Text("Not read or unknown", "未能读取或确定")))
        yield Facts(tuple(Row(gap.what, gap.why, gap.how or "") for gap in gaps[:_SHOWN]))


def _summary(training: RunConfig | None, complaints: Sequence[ConfigIssue], wording: Wording) -> Iterator[Span]:
    if training is not None and training.framework:
        name = framework_title(training.framework)
        yield Span(f"{name}{wording.colon}")
    elif training is not None:
        yield Span(wording.say(_UNKNOWN_FRAMEWORK))
    counted = [(severity, _count(complaints, severity)) for severity in _SEVERITIES]
    counts = [_counted(severity, number, wording) for severity, number in counted if number]
    if counts:
        yield Span(wording.comma.join(counts) + wording.stop, _SEVERITIES[complaints[0].severity][1])
    else:
        yield Span(wording.say(Text("no problems found.", "没有发现问题。")), Style.GOOD)


def _counted(severity: str, number: int, wording: Wording) -> str:
    if wording.is_chinese:
        return f"{number} 处{_SEVERITIES[severity][0].zh}"
    return f"{number} {_MANY[severity] if number > 1 else severity}"


def _count(complaints: Sequence[ConfigIssue], severity: str) -> int:
    return sum(issue.severity == severity for issue in complaints)


def _complaint(issue: ConfigIssue, wording: Wording) -> Paragraph:
    word, style = _SEVERITIES[issue.severity]
    place = (Span(f"{issue.file}:{issue.line}", Style.STRONG), Span("  "), Span(wording.say(word), style), Span("  "))
    reason = spans(wording.sentence(wording.say(issue.what)) + wording.blank + wording.sentence(wording.say(issue.why)))
    write = (
        (*spans(wording.blank + wording.say(labels.WRITE_INSTEAD)), Span(issue.replacement, Style.CODE), Span(wording.stop))
        if issue.replacement
        else ()
    )
    return Paragraph((*place, *reason, *write))
