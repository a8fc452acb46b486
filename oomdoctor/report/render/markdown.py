"""The report for a GitHub issue: tables, fenced log lines, folded parts.

Text from logs never acts as Markdown, as HTML, as a mention of a person or as a reference to an issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.report.document import (
    Areas,
    Bar,
    Bars,
    Block,
    BriefStep,
    BriefSteps,
    Cell,
    CountBars,
    CountGrid,
    Curves,
    Document,
    Facts,
    Filter,
    Folded,
    Heading,
    Paragraph,
    Quote,
    Row,
    Span,
    Step,
    Steps,
    Strips,
    Style,
    Table,
)
from oomdoctor.report.render.bars import bar_fill, bar_rows, cells, pointer_line, spark_line, totals
from oomdoctor.units import format_share, format_size

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~$&]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_REFERENCE = re.compile(r"([@#])(?=\w)")
_AUTOLINK = re.compile(
    r"(?<!\w)(?:(?:https?|ftp)(?=://)|www(?=\.)|GH(?=-\d)"
    r"|(?=[0-9a-f]{0,39}[0-9])(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{6}(?=[0-9a-f]{1,34}(?!\w)))"
)
"""What code hosts turn into links without being asked: addresses, hashes of commits, short names of issues."""
_MARKER = re.compile(r"\A(\s*)([-+=]|\d{1,9}(?=[.)])|#)")
_LINK = re.compile(r"https?://[^\s<>\"'`|\\]{1,500}\Z")
_CELLS = 40


def render(document: Document) -> str:
    """Render the report as Markdown."""
    parts = [*blocks(document.blocks), f"<sub>{escaped(document.title)}</sub>" if document.title else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def blocks(sequence: Sequence[Block]) -> Iterator[str]:
    """Blocks, each as its Markdown."""
    for block in sequence:
        if isinstance(block, Heading):
            yield f"#### {escaped(block.text)}"
        elif isinstance(block, Paragraph):
            yield _start(_spans(block.spans))
        elif isinstance(block, Facts):
            yield _table(block.rows)
        elif isinstance(block, Table):
            yield _grid(block)
        elif isinstance(block, Bar):
            yield _bar(block)
        elif isinstance(block, Bars):
            yield "" if block.is_told else _table(bar_rows(block))
        elif isinstance(block, Areas):
            yield _areas(block)
        elif isinstance(block, (Curves, Strips, CountBars, CountGrid, Filter)):
            continue
        elif isinstance(block, Quote):
            yield _start(escaped(block.where)) + (f"\n{fenced(block.text)}" if block.text else "")
        elif isinstance(block, Steps):
            yield "\n".join(_step(number, step) for number, step in enumerate(block.steps, block.first)).rstrip("\n")
        elif isinstance(block, BriefSteps):
            yield "\n".join(_brief(number, brief) for number, brief in enumerate(block.steps, 1))
            yield _spans(block.written_by)
        else:
            yield _folded(block)


def _spans(spans: Sequence[Span]) -> str:
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    core = span.text.strip(" ")
    if not core:
        return span.text
    lead, tail = span.text[: len(span.text) - len(span.text.lstrip(" "))], span.text[len(span.text.rstrip(" ")) :]
    if span.style is Style.CODE:
        return f"{lead}{code(core)}{tail}"
    if span.style is Style.LINK and _LINK.match(core):
        return f"{lead}<{core}>{tail}"
    if span.style in (Style.STRONG, Style.BAD, Style.GOOD, Style.WARN):
        return f"{lead}**{escaped(core)}**{tail}"
    return f"{lead}{escaped(core)}{tail}"


def escaped(text: str) -> str:
    """Text that means itself: no emphasis, no link, no mention."""
    escaped = _SPECIAL.sub(lambda match: _entity(match[0]), text)
    return _AUTOLINK.sub(r"\g<0><!-- -->", _REFERENCE.sub(r"\1<!-- -->", escaped))


def _entity(char: str) -> str:
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(char, "\\" + char)


def _start(text: str) -> str:
    """Escape the first character of a paragraph that would make it a list or a heading."""
    return _MARKER.sub(lambda match: f"{match[1]}{match[2]}\\" if match[2].isdigit() else f"{match[1]}\\{match[2]}", text)


def code(text: str) -> str:
    """Inline code, in more backquotes than the text has in a row."""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str, kind: str = "text") -> str:
    """Lines in a fence of more backquotes than they have in a row."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _table(rows: Sequence[Row]) -> str:
    with_notes = any(row.note for row in rows)
    head = "| | | |\n|---|---:|---|" if with_notes and all(row.value[:1].isdigit() for row in rows) else "| | | |\n|---|---|---|"
    if not with_notes:
        head = "| | |\n|---|---|"
    lines = [f"| {escaped(row.label)} | {_cell(row)} |" + (f" {escaped(row.note)} |" if with_notes else "") for row in rows]
    return "\n".join([head, *lines])


def _grid(table: Table) -> str:
    named = f"**{escaped(table.title)}**\n\n" if table.title else ""
    head = "| " + " | ".join(escaped(cell.text) for cell in table.columns) + " |"
    rule = "|---|" + "---:|" * (len(table.columns) - 1)
    rows = ("| " + " | ".join(_value(cell) for cell in row) + " |" for row in table.rows)
    return named + "\n".join([head, rule, *rows])


def _value(cell: Cell) -> str:
    return f"**{escaped(cell.text)}**" if cell.text and cell.style is Style.GOOD else escaped(cell.text)


def _cell(row: Row) -> str:
    # A bar splits a table's cells even inside code.
    return code(row.value).replace("|", "\\|") if row.style is Style.CODE and row.value else escaped(row.value)


def _bar(bar: Bar) -> str:
    """Return the bar and its legend, as text in columns."""
    drawn = "".join(bar_fill(part, at) * count for at, (part, count) in enumerate(zip(bar.slices, cells(bar, _CELLS))))
    value = max((len(entry.value) for entry in bar.slices), default=0)
    legend = [
        f"{bar_fill(entry, at) * 2} {entry.value:>{value}}  {format_share(entry.share):>5}  {entry.label}"
        + (f" ({entry.note})" if entry.note else "")
        for at, entry in enumerate(bar.slices)
    ]
    marked = [] if bar.mark is None else [pointer_line(bar.mark, _CELLS, len(bar.mark.label))]
    return fenced("\n".join([bar.title, drawn, *marked, *legend]))


def _areas(areas: Areas) -> str:
    """Return the total over time, as text."""
    sizes = totals(areas)
    return fenced(f"{areas.title}\n{spark_line(sizes, _CELLS)}  {format_size(max(sizes))}") if sizes else ""


def _setting(row: Row) -> str:
    label, note = f"{escaped(row.label)}: " if row.label else "", f" ({escaped(row.note)})" if row.note else ""
    return f"    - {label}" + _cell(row).replace("\\|", "|") + note


def _step(number: int, step: Step) -> str:
    parts = [f"{number}. **{escaped(step.title)}**" + (f"  \n    {_start(_spans(step.text))}" if step.text else "")]
    parts += [_setting(row) for row in step.settings]
    if step.command:
        parts.append("\n" + "\n".join("    " + line for line in fenced(step.command, "sh").split("\n")))
    if step.note:
        parts.append(f"\n    {_start(_spans(step.note))}")
    return "\n".join(parts) + "\n"


def _brief(number: int, brief: BriefStep) -> str:
    """Return one thing to do, with what it is for."""
    place = escaped(brief.place) + " " if brief.place else ""
    return (
        f"{number}. "
        + (place or "")
        + (_spans(brief.do) if place else _start(_spans(brief.do)))
        + (f" {escaped(brief.whole_aside)}" if brief.whole_aside else "")
    )


def _folded(block: Folded) -> str:
    gist = f" <i>{_summary(block.gist)}</i>" if block.gist else ""
    inside = "\n\n".join(part for part in blocks(block.blocks) if part)
    return f"<details><summary>{_summary(block.title)}{gist}</summary>\n\n{inside}\n\n</details>"


def _summary(text: str) -> str:
    return _AUTOLINK.sub(r"\g<0><!-- -->", _REFERENCE.sub(r"\1<!-- -->", text.translate(_ENTITIES)))
