"""The report as one page: no scripts, nothing from elsewhere, light or dark as the reader's system is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import count

from oomdoctor.report.charts.areas import drawn_areas
from oomdoctor.report.charts.bars import drawn_bar, drawn_bars
from oomdoctor.report.charts.counts import drawn_count_bars, drawn_count_grid
from oomdoctor.report.charts.curves import drawn_curves
from oomdoctor.report.charts.strips import drawn_strips
from oomdoctor.report.charts.stylesheet import policy, stylesheet
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
from oomdoctor.report.wording.wording import Wording

_LINK = re.compile(r"https?://[^\s<>\"'`]{1,500}\Z")
_SHORT = 12
_TAGS = {Style.STRONG: "strong", Style.CODE: "code"}
_PAGE = """<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{head}<main>
{body}
</main>
<footer>{title}</footer>
</body>
</html>
"""


def render(document: Document) -> str:
    """Render the report as a page of HTML in one file."""
    title = escape(document.title)
    head = f"<header>{escape(' · '.join(document.head))}</header>\n" if document.head else ""
    return _PAGE.format(head=head, lang=escape(document.lang), policy=policy(), title=title, style=stylesheet(), body=render_main(document))


def render_main(document: Document) -> str:
    """Return what stands inside `<main>`, for a page that has the stylesheet already."""
    return "\n".join(_BlockWriter(document.lang).blocks(document.blocks))


class _BlockWriter:
    """The blocks of one page: charts are numbered through it."""

    def __init__(self, lang: str) -> None:
        self._wording = Wording(lang)
        self._charts = count(1)

    def blocks(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Yield the blocks as HTML."""
        for block in blocks:
            if isinstance(block, Heading):
                yield f"<h2>{escape(block.text)}</h2>"
            elif isinstance(block, Paragraph):
                yield f"<p>{_spans(block.spans)}</p>"
            elif isinstance(block, Facts):
                yield _table(block.rows)
            elif isinstance(block, Table):
                yield _grid(block)
            elif isinstance(block, Quote):
                text = f"<pre>{escape(block.text)}</pre>" if block.text else ""
                yield f"<figure><figcaption>{escape(block.where)}</figcaption>{text}</figure>"
            elif isinstance(block, Steps):
                yield f'<ol start="{block.first}">' + "".join(_step(step) for step in block.steps) + "</ol>"
            elif isinstance(block, BriefSteps):
                written = f"<p>{_spans(block.written_by)}</p>" if block.written_by else ""
                yield "<ol>" + "".join(map(_brief, block.steps)) + "</ol>" + written
            elif isinstance(block, Folded):
                gist = f' <span class="dim">{escape(block.gist)}</span>' if block.gist else ""
                folded = "\n".join(self.blocks(block.blocks))
                kind = "" if block.kind is None else f' class="kind k{block.kind}"'
                yield f"<details{kind}><summary>{escape(block.title)}{gist}</summary>\n{folded}\n</details>"
            elif isinstance(block, Filter):
                yield _filter(block)
            else:
                yield self._chart(block)

    def _chart(self, block: Bar | Bars | Areas | Curves | Strips | CountBars | CountGrid) -> str:
        number = next(self._charts)
        if isinstance(block, Bar):
            return drawn_bar(block, self._wording, number)
        if isinstance(block, Bars):
            return drawn_bars(block, self._wording, number)
        if isinstance(block, Areas):
            return drawn_areas(block, self._wording, number)
        if isinstance(block, Curves):
            return drawn_curves(block, self._wording, number)
        if isinstance(block, Strips):
            return drawn_strips(block, self._wording, number)
        if isinstance(block, CountBars):
            return drawn_count_bars(block, self._wording, number)
        return drawn_count_grid(block, self._wording, number)


def _filter(block: Filter) -> str:
    """Return the choice; the stylesheet hides what is not of the chosen kind, without a script."""
    choices = "".join(
        f'<label><input type="radio" name="kind" value="k{number}"{"" if number else " checked"}> {escape(kind)}</label>'
        for number, kind in enumerate(block.kinds)
    )
    return f'<fieldset class="filter"><legend>{escape(block.title)}</legend>{choices}</fieldset>'


def _spans(spans: Sequence[Span]) -> str:
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    text = escape(span.text)
    if span.style is Style.LINK and _LINK.match(span.text):
        return f'<a href="{text}" rel="noreferrer">{text}</a>'
    if span.style in _TAGS:
        tag = _TAGS[span.style]
        return f"<{tag}>{text}</{tag}>"
    return text if span.style in (Style.PLAIN, Style.LINK) else f'<span class="{span.style.value}">{text}</span>'


def _table(rows: Sequence[Row]) -> str:
    return "<table>" + "".join(f"<tr>{_label(row.label)}{_cells(row)}</tr>" for row in rows) + "</table>"


def _label(label: str) -> str:
    """Return the name of a row; a short one, a size say, is never broken."""
    kind = ' class="unbroken"' if label and label.isascii() and len(label) <= _SHORT else ""
    return f"<th{kind}>{escape(label)}</th>"


def _grid(table: Table) -> str:
    head = "".join(f"<th>{escape(cell.text)}</th>" for cell in table.columns)
    rows = "".join(f"<tr><th>{escape(first.text)}</th>{''.join(map(_value, rest))}</tr>" for first, *rest in table.rows)
    return f'<figure><figcaption>{escape(table.title)}</figcaption><table class="grid"><tr>{head}</tr>{rows}</table></figure>'


def _value(cell: Cell) -> str:
    return f'<td class="size {cell.style.value}">{escape(cell.text)}</td>'


def _cells(row: Row) -> str:
    kind = ' class="size"' if row.value[:1].isdigit() and len(row.value) <= 12 else ""
    value = f"<td{kind}>{_span(Span(row.value, row.style))}</td>"
    return value + (f'<td class="dim">{escape(row.note)}</td>' if row.note else "")


def _brief(brief: BriefStep) -> str:
    place = f'<span class="dim">{escape(brief.place)}</span> ' if brief.place else ""
    aside = f' <span class="dim">{escape(brief.whole_aside)}</span>' if brief.whole_aside else ""
    return f"<li>{place}{_spans(brief.do)}{aside}</li>"


def _step(step: Step) -> str:
    parts = [f"<strong>{escape(step.title)}</strong>"]
    if step.text:
        parts.append(f"<p>{_spans(step.text)}</p>")
    if step.settings:
        parts.append(_table(step.settings))
    if step.command:
        parts.append(f"<pre>{escape(step.command)}</pre>")
    if step.note:
        parts.append(f'<p class="dim">{_spans(step.note)}</p>')
    return f"<li>{''.join(parts)}</li>"
