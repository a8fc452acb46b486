"""The report as one page: no scripts, nothing from elsewhere, light or dark as the reader's system is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from oomdoctor.report.document import (
    Areas,
    Bar,
    Block,
    Cell,
    CountBars,
    CountGrid,
    Document,
    Facts,
    Folded,
    Heading,
    Paragraph,
    Quote,
    Row,
    Slice,
    Span,
    Step,
    Steps,
    Strips,
    Style,
    Table,
)
from oomdoctor.report.render.count_charts import drawn_bars, drawn_grid
from oomdoctor.report.render.svg import SVG_STYLE, drawn_areas, drawn_strips
from oomdoctor.units import format_share

_LINK = re.compile(r"https?://[^\s<>\"'`]{1,500}\Z")
_TAGS = {Style.STRONG: "strong", Style.CODE: "code"}
_HUES = 8
_PAGE = """<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{body}
</main>
<footer>{title}</footer>
</body>
</html>
"""
_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --dim: #59636e; --line: #d1d9e0; --soft: #f6f8fa;
  --good: #1a7f37; --warn: #9a6700; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --dim: #9198a1; --line: #3d444d; --soft: #151b23;
  --good: #3fb950; --warn: #d29922; --bad: #f85149; } }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
main > p:first-child { font-size: 1.25rem; font-weight: 600; line-height: 1.4; margin-top: 0; }
h2 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
footer, .dim, figcaption { color: var(--dim); font-size: .875rem; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
code, pre { font: .85em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--soft); border-radius: 4px; }
code { padding: .1em .3em; } pre { padding: .7rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
figure { margin: .6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: normal; color: var(--dim); } th, td { padding: .15rem 1.2rem .15rem 0; vertical-align: top; }
td.size { text-align: right; }
main > table th { white-space: nowrap; } details td:not(.size, .dim) { overflow-wrap: anywhere; }
.grid { border-collapse: separate; border-spacing: 2px; display: block; overflow-x: auto; }
.grid th, .grid td { padding: .2rem .6rem; white-space: nowrap; text-align: right; } .grid tr > th:first-child { text-align: left; }
.grid td { background: var(--soft); border-radius: 3px; }
.grid .good { background: color-mix(in srgb, var(--good) 18%, var(--paper)); }
.grid .warn { background: color-mix(in srgb, var(--warn) 18%, var(--paper)); }
.grid .bad { background: color-mix(in srgb, var(--bad) 14%, var(--paper)); }
.bar { display: flex; height: 1.4rem; border-radius: 4px; overflow: hidden; margin: .3rem 0; gap: 1px; background: var(--line); }
.bar span { min-width: 2px; }
.mark { white-space: nowrap; }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; vertical-align: -1px; margin-right: .5rem; }
.h0 { background: #0969da; } .h1 { background: #1b9e9e; } .h2 { background: #8250df; } .h3 { background: #bf5f82; }
.h4 { background: #6e7781; } .h5 { background: #b87333; } .h6 { background: #4f7cac; } .h7 { background: #7a8450; }
.free { background: #57ab5a; } .others { background: #d4a72c; } .rest { background: #8c959f; }
details { border-top: 1px solid var(--line); padding: .4rem 0; } details + details { margin-top: 0; } summary { cursor: pointer; }
ol { padding-left: 1.4rem; margin: .3rem 0; } li { margin: .6rem 0; }"""


def render(document: Document) -> str:
    """Render the report as a page of HTML."""
    body = "\n".join(_blocks(document.blocks))
    style = _STYLE + SVG_STYLE if "<svg" in body else _STYLE
    return _PAGE.format(lang=escape(document.lang), title=escape(document.title), style=style, body=body)


def _blocks(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Heading):
            yield f"<h2>{escape(block.text)}</h2>"
        elif isinstance(block, Paragraph):
            yield f"<p>{_spans(block.spans)}</p>"
        elif isinstance(block, Facts):
            yield _table(block.rows)
        elif isinstance(block, Table):
            yield _grid(block)
        elif isinstance(block, Bar):
            yield _bar(block)
        elif isinstance(block, Areas):
            yield drawn_areas(block)
        elif isinstance(block, Strips):
            yield drawn_strips(block)
        elif isinstance(block, CountBars):
            yield drawn_bars(block)
        elif isinstance(block, CountGrid):
            yield drawn_grid(block)
        elif isinstance(block, Quote):
            yield f"<figure><figcaption>{escape(block.where)}</figcaption><pre>{escape(block.text)}</pre></figure>"
        elif isinstance(block, Steps):
            yield f'<ol start="{block.first}">' + "".join(_step(step) for step in block.steps) + "</ol>"
        else:
            yield _folded(block)


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
    return "<table>" + "".join(f"<tr><th>{escape(row.label)}</th>{_cells(row)}</tr>" for row in rows) + "</table>"


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


def _bar(bar: Bar) -> str:
    drawn = "".join(
        f'<span class="{_hue(at, part)}" style="flex: {max(part.share, 0.0):.5f}"></span>' for at, part in enumerate(bar.slices)
    )
    legend = "".join(
        f'<tr><th><span class="key {_hue(at, part)}"></span>{escape(part.label)}</th>'
        f'<td class="size">{escape(part.value)}</td><td class="size">{format_share(part.share)}</td>'
        f'<td class="dim">{escape(part.note)}</td></tr>'
        for at, part in enumerate(bar.slices)
    )
    mark = "" if bar.mark is None else f'<div class="mark" style="margin-left: {bar.mark.share:.1%}">▲ {escape(bar.mark.label)}</div>'
    return f'<figure><figcaption>{escape(bar.title)}</figcaption><div class="bar">{drawn}</div>{mark}<table>{legend}</table></figure>'


def _hue(at: int, part: Slice) -> str:
    return {Style.GOOD: "free", Style.WARN: "others", Style.DIM: "rest"}.get(part.style, f"h{at % _HUES}")


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


def _folded(block: Folded) -> str:
    gist = f' <span class="dim">{escape(block.gist)}</span>' if block.gist else ""
    return f"<details><summary>{escape(block.title)}{gist}</summary>\n" + "\n".join(_blocks(block.blocks)) + "\n</details>"
