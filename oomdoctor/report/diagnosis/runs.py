"""Several runs in one answer: a line for each, or for each kind of failure where there are many."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.case import SEVERAL_RUNS, Case, RunLine, worst_first
from oomdoctor.case.text import Text
from oomdoctor.comparing.several_runs import shown_by
from oomdoctor.report.diagnosis.headline import incident_sentence
from oomdoctor.report.diagnosis.places import event_text
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Counted, Wording

_LINES = 24
"""More runs than that are told by what they failed with."""
_NAMED = 3
_ASKED = 16
_LONGEST = 400
"""A command that is longer is no help; then that of one of the next runs is told."""
_KINDS = 16
_STYLE = {"yes": Style.BAD, "possible": Style.WARN}
_RUNS = Text("Runs", "各次运行")
_NOTHING = Text("no failure found", "没有发现失败")
_HANDLED = Text("memory ran short, but the run continued", "内存或显存一度不足，但已自行处理")
_UNREAD = Text("could not be read completely", "没有读完")
_ENDS = Text("another error: {error}", "另一个错误：{error}")
_OPEN = Text("an error that mentions memory: {error}", "一条提到内存的错误：{error}")
_MANY = Counted("{n} run", "{n} runs", "{n} 次运行")
_MORE = Text("{names} and {n} more", "{names} 以及另外 {n} 个")
_GROUP = Text("group {n}", "第 {n} 组")
_ONE = Text("To see one in full: `oomdoctor diagnose {name}`.", "要看其中一次的完整诊断：`oomdoctor diagnose {name}`。")


def runs_blocks(case: Case, wording: Wording, *, heading: bool = True) -> Iterator[Block]:
    """Yield the table of the runs, the failed ones first, and how to see one in full."""
    if heading:
        yield Heading(wording.say(_RUNS))
    lines = sorted(case.runs, key=worst_first)
    rows = list(_rows(lines, wording) if len(lines) <= _LINES else _counted_rows(lines, wording))
    yield Facts(tuple(rows[: _LINES if len(lines) <= _LINES else _KINDS]))
    if len(lines) > _LINES and len(rows) > _KINDS:
        yield Paragraph((Span(wording.say(labels.AND_MORE, n=len(rows) - _KINDS), Style.DIM),))
    if case.verdict.reason == SEVERAL_RUNS:
        logs = [source for line in lines for source in line.sources]
        commands = (shown_by(line.name, line.sources, logs) for line in lines[:_ASKED] if line.is_apart)
        command = next((command for command in commands if 0 < len(command) <= _LONGEST), None)
        if command is not None:
            yield Paragraph(spans(wording.say(_ONE, name=clean_line(command, _LONGEST))))


def _rows(lines: Sequence[RunLine], wording: Wording) -> Iterator[Row]:
    """Yield a row for each run, with the log in which it failed and the number of those that failed alike."""
    groups = _groups(lines)
    for line in lines:
        row = _row(line, wording)
        place = os.path.basename(line.incident.root.place.source) if line.incident is not None and len(line.sources) > 1 else ""
        group = groups.get(line.group or "")
        notes = (clean_line(place, 60), row.note, "" if group is None else wording.say(_GROUP, n=group))
        yield replace(row, note=wording.semicolon.join(note for note in notes if note))


def _row(line: RunLine, wording: Wording) -> Row:
    cause = "" if line.title is None or line.verdict.survived else bare(wording.say(line.title))
    return Row(
        label=clean_line(line.name, 60),
        value=_outcome(line, wording),
        note=cause,
        style=_STYLE.get(line.verdict.memory_failure, Style.PLAIN),
    )


def _groups(lines: Sequence[RunLine]) -> dict[str, int]:
    """Return a number for each group that holds more than one run."""
    counts = Counter(line.group for line in lines if line.group is not None)
    return {group: number for number, group in enumerate((group for group, count in counts.items() if count > 1), 1)}


def _outcome(line: RunLine, wording: Wording) -> str:
    """Return what a run came to, as part of a table."""
    error = clean_line(line.error or "", 120)
    if line.verdict.reason == "unknown-memory-error":
        return wording.say(_OPEN, error=error)
    if line.error is not None:
        return wording.say(_ENDS, error=error)
    if line.verdict.survived:
        return wording.say(_HANDLED)
    if line.incident is None:
        return wording.say(_NOTHING if line.verdict.memory_failure == "no" else _UNREAD)
    if line.verdict.kind.value == "look-alike":
        return clean_line(event_text(line.incident.root, wording).strip().rsplit("\n", 1)[-1], 120)
    return bare(incident_sentence(line.incident, wording))


def _counted_rows(lines: Sequence[RunLine], wording: Wording) -> Iterator[Row]:
    """Yield a row for each kind of outcome, with how many runs came to it and the first of their names."""
    groups: dict[str, list[RunLine]] = {}
    for line in lines:
        signature = line.incident.root.signature if line.incident is not None else re.sub(r"\d+", "#", line.error or "")
        groups.setdefault(f"{worst_first(line)} {signature}", []).append(line)
    for members in groups.values():
        names = wording.item_comma.join(clean_line(line.name, 60) for line in members[:_NAMED])
        more = len(members) - _NAMED
        row = _row(members[0], wording)
        note = wording.say(_MORE, names=names, n=more) if more > 0 else names
        title = f"{row.note}{wording.semicolon}" if row.note else ""
        yield Row(label=wording.count(_MANY, len(members)), value=row.value, note=title + note, style=row.style)
