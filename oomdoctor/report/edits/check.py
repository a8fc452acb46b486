"""What `oomdoctor check` says of a config: how much is wrong, each complaint with its line, and whether the run fits its cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.gap import Gap
from oomdoctor.case.plan import Fit, Fits
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.memory.estimate import compose as compose_estimate
from oomdoctor.report.memory.fits import fits_line
from oomdoctor.report.memory.serving import compose as compose_server
from oomdoctor.report.memory.serving import obstacle
from oomdoctor.report.memory.serving import verdict as server_verdict
from oomdoctor.report.wording.phrases import blank, comma, spans, stop, stopped
from oomdoctor.report.wording.texts import say

Taken = tuple[Estimate, Fit] | Served
"""What a run takes of a card as nvidia-smi shows it, and whether it fits; or what a server makes of it."""
_SEVERITIES = {
    "error": (Text("error", "错误"), Style.BAD),
    "warning": (Text("warning", "警告"), Style.WARN),
    "note": (Text("note", "提示"), Style.DIM),
}
_MANY = {"error": "errors", "warning": "warnings", "note": "notes"}
_SHOWN = 100
_NOBODYS = Text("Whose settings these are is not known, so little of them could be checked: ", "不知道这是哪个框架的配置，能检查的不多：")


def compose(training: RunConfig | None, taken: Taken | None, gaps: Sequence[Gap], lang: str, version: str) -> Document:
    """The document; `taken` is None where nobody asked whether the run fits, or where that is not known."""
    return Document(title=f"oomdoctor {version} · check", blocks=tuple(_blocks(training, taken, gaps, lang)), lang=lang)


def fits(taken: Taken) -> Fits:
    """`yes`, `no` or `close`; of a server, whether it starts."""
    return taken.starts if isinstance(taken, Served) else taken[1].fits


def findings(training: RunConfig, taken: Taken | None) -> tuple[ConfigIssue, ...]:
    """The complaints, and before them that the run does not fit or may not, where the model is named: for formats of lines only."""
    if taken is None or fits(taken) == "yes":
        return training.issues
    place = training.places.get("model") or training.written[0]
    surely = fits(taken) == "no"
    what, why = (Text(*(_verdict(taken, lang)[at] for lang in ("en", "zh"))) for at in range(2))
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


def _verdict(taken: Taken, lang: str) -> tuple[str, str]:
    """The verdict, and what it rests on."""
    if isinstance(taken, Served):
        return server_verdict(taken, lang).text, obstacle(taken, lang)
    words, needs = fits_line(taken[1], lang)
    return words.text, needs.text.strip()


def _blocks(training: RunConfig | None, taken: Taken | None, gaps: Sequence[Gap], lang: str) -> Iterator[Block]:
    complaints = () if training is None else training.issues
    yield Paragraph(tuple(_summary(training, complaints, lang)))
    yield from (_complaint(one, lang) for one in complaints[:_SHOWN])
    if len(complaints) > _SHOWN:
        yield Paragraph((Span(say("and-more", lang, n=len(complaints) - _SHOWN), Style.DIM),))
    if taken is not None:
        yield Heading("显存" if lang == "zh" else "Memory")
        yield from (compose_server(taken, lang, "") if isinstance(taken, Served) else compose_estimate(taken[0], lang, "", taken[1])).blocks
    if gaps:
        yield Heading("未能读取或确定" if lang == "zh" else "Not read, or not known")
        yield Facts(tuple(Row(one.what, one.why, one.how or "") for one in gaps[:_SHOWN]))


def _summary(training: RunConfig | None, complaints: Sequence[ConfigIssue], lang: str) -> Iterator[Span]:
    if training is not None and training.framework:
        name = framework_title(training.framework)
        yield Span(f"{name}{'：' if lang == 'zh' else ': '}")
    elif training is not None:
        yield Span(_NOBODYS.get(lang))
    counted = [(severity, _count(complaints, severity)) for severity in _SEVERITIES]
    said = [_counted(severity, number, lang) for severity, number in counted if number]
    if said:
        yield Span(comma(lang).join(said) + stop(lang), _SEVERITIES[complaints[0].severity][1])
    else:
        yield Span("没有发现问题。" if lang == "zh" else "nothing is wrong.", Style.GOOD)


def _counted(severity: str, number: int, lang: str) -> str:
    if lang == "zh":
        return f"{number} 处{_SEVERITIES[severity][0].zh}"
    return f"{number} {_MANY[severity] if number > 1 else severity}"


def _count(complaints: Sequence[ConfigIssue], severity: str) -> int:
    return sum(one.severity == severity for one in complaints)


def _complaint(one: ConfigIssue, lang: str) -> Paragraph:
    word, style = _SEVERITIES[one.severity]
    place = (Span(f"{one.file}:{one.line}", Style.STRONG), Span("  "), Span(word.get(lang), style), Span("  "))
    said = spans(stopped(one.what.get(lang), lang) + blank(lang) + stopped(one.why.get(lang), lang))
    write = (
        (*spans(blank(lang) + say("write-instead", lang)), Span(one.replacement, Style.CODE), Span(stop(lang))) if one.replacement else ()
    )
    return Paragraph((*place, *said, *write))
