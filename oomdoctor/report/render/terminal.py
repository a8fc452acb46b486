"""The report on a terminal: one screen, aligned in cells so that Chinese and Latin text share columns.

Lines are broken here: Chinese has no blanks to break at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, chop_cells

from oomdoctor.report.document import (
    Areas,
    Bar,
    Bars,
    Block,
    BriefStep,
    BriefSteps,
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
    Slice,
    Span,
    Step,
    Steps,
    Strips,
    Style,
    Table,
)
from oomdoctor.report.render.bars import bar_fill, bar_rows, cells, pointer_line
from oomdoctor.report.render.braille import chart_lines
from oomdoctor.report.render.styled_line import StyledLine
from oomdoctor.units import format_share

_WIDEST = 100
_NARROWEST = 20
_QUOTE_LINES = 3
_NOTE = 5
"""Notes are at least so wide: shares (`1.3 %`) stand below each other."""
_GUTTER = 3
_MANY = 4
_TITLE = 20
"""A bar's title of so few cells stands before it."""
_COLOURS = {
    Style.PLAIN: "",
    Style.STRONG: "bold",
    Style.DIM: "dim",
    Style.GOOD: "green",
    Style.WARN: "yellow",
    Style.BAD: "bold red",
    Style.CODE: "cyan",
    Style.LINK: "underline",
}
_HUES = ("blue", "cyan", "magenta", "bright_blue", "bright_cyan", "bright_magenta", "blue", "cyan")
_NOT_FIRST = frozenset("，。、；：？！）》」』】”’…,.;:?!)]}%")
_NOT_LAST = frozenset("（《「『【“‘([{")


def render(document: Document, *, width: int, color: bool, full: bool = False, opened_by: str = "", chart: int = 0) -> str:
    """Render the report for a terminal of `width` cells; `full` opens what is folded, and `opened_by` says how that is done.

    `chart` is how many lines a chart may have; with 0 none is drawn.
    """
    return "".join(line.render(color=color) + "\n" for line in lines(document, width=width, full=full, opened_by=opened_by, chart=chart))


def lines(document: Document, *, width: int, full: bool = False, opened_by: str = "", chart: int = 0) -> Sequence[StyledLine]:
    """Return the lines of the report before they are painted."""
    width = max(_NARROWEST, min(width, _WIDEST))
    has_folded = opened_by and not full and any(isinstance(block, Folded) for block in document.blocks)
    title = document.title + (f" · {opened_by}" if has_folded else "")
    return [*_blocks(document.blocks, width, full, chart), StyledLine(), *_wrapped([Span(title, Style.DIM)], width)]


def _blocks(blocks: Sequence[Block], width: int, full: bool, chart: int) -> Iterator[StyledLine]:
    before: Block | None = None
    under_heading = False
    bare = [] if full else [block.title for block in blocks if isinstance(block, Folded) and not block.gist]
    for block in blocks:
        if len(bare) > 1 and isinstance(block, Folded) and not block.gist:
            continue
        under_heading = (
            not isinstance(before, BriefSteps) and not isinstance(block, Folded) and (under_heading or isinstance(block, Heading))
        )
        if under_heading and isinstance(block, Paragraph):
            drawn = list(_wrapped(_marked(block.spans), width, "  ", under="    "))
        else:
            drawn = list(_block(block, width, full, chart))
        if not drawn:  # what only a page draws
            continue
        if before is not None and (_is_apart(before, block) or (isinstance(before, Quote) and not under_heading)):
            yield StyledLine()
        yield from drawn
        before = block
    if len(bare) > 1:
        if before is not None and not isinstance(before, Folded):
            yield StyledLine()
        yield from _packed([StyledLine("▸ ").append(_fitting(title, width - 2)) for title in bare], width)


def _is_apart(before: Block, block: Block) -> bool:
    """Whether an empty line goes between two blocks: before headings, after what is drawn, around tables, before what is folded."""
    if isinstance(block, Folded):
        return not isinstance(before, Folded)
    return isinstance(block, (Heading, Table)) or isinstance(before, (BriefSteps, Areas, Bar, Curves, Folded, Table))


def _block(block: Block, width: int, full: bool, chart: int) -> Iterator[StyledLine]:
    if isinstance(block, Heading):
        yield from _wrapped([Span(block.text, Style.STRONG)], width)
    elif isinstance(block, Paragraph):
        yield from _wrapped(_marked(block.spans), width)
    elif isinstance(block, Facts):
        yield from _facts(block.rows, width)
    elif isinstance(block, Table):
        yield from _table(block, width)
    elif isinstance(block, Bar):
        yield from _bar(block, width)
    elif isinstance(block, Bars):
        yield from () if block.is_told else _facts(bar_rows(block), width)
    elif isinstance(block, (Areas, Curves)):
        if chart and not (isinstance(block, Curves) and block.is_told):
            yield from chart_lines(block, width, chart)
    elif isinstance(block, (Strips, CountBars, CountGrid, Filter)):
        return
    elif isinstance(block, Quote):
        yield from _quote(block, width, full)
    elif isinstance(block, Steps):
        for number, step in enumerate(block.steps, block.first):
            yield from _step(number, step, width)
    elif isinstance(block, BriefSteps):
        for number, brief in enumerate(block.steps, 1):
            yield from _brief(number, brief, max(cell_len(each.place) for each in block.steps), width)
        if block.written_by:
            yield from _wrapped(_marked(block.written_by), width, "  ", under="    ")
    else:
        yield from _folded(block, width, full, chart)


def _facts(rows: Sequence[Row], width: int) -> Iterator[StyledLine]:
    """Labels and values in columns; twice beside each other where everything is short. A row that is too long gets lines of its own."""
    label = min(max(cell_len(row.label) for row in rows), width // 2)
    fitting = [row for row in rows if 4 + label + cell_len(row.value) + _noted(row) <= width]
    value = max((cell_len(row.value) for row in fitting), default=0)
    noted = max(map(_noted, fitting), default=0)
    if len(fitting) == len(rows) and 4 + label + value + noted <= width:
        yield from _columns([_short(row, label, value) for row in rows], width)
    elif 2 * len(fitting) < len(rows) or label > width // 2:
        yield from (line for row in rows for line in _long(row, label, width))
    else:
        column = min(value, width - 4 - label - noted)
        for row in rows:
            yield from [StyledLine("  ").extend(_short(row, label, column))] if row in fitting else _long(row, label, width)


def _noted(row: Row) -> int:
    """Return the cells that a note takes behind a value, with the blanks before it and those that align shares."""
    return 2 + max(_NOTE, cell_len(row.note)) if row.note else 0


def _columns(entries: Sequence[StyledLine], width: int) -> Iterator[StyledLine]:
    """Yield the entries below each other, or in two columns if there are many and both fit."""
    half = (len(entries) + 1) // 2
    left = max((entry.width for entry in entries[:half]), default=0)
    right = max((entry.width for entry in entries[half:]), default=0)
    gutter = min(_GUTTER, width - 2 - left - right)
    if len(entries) < 4 or gutter < 2:
        for entry in entries:
            if entry.width + 2 <= width:
                yield StyledLine("  ").extend(entry)
            else:
                yield from _wrapped([Span(entry.plain)], width, "  ", under="    ")
        return
    for at in range(half):
        line = StyledLine("  ").extend(entries[at])
        if at + half < len(entries):
            line.append(" " * (2 + left + gutter - line.width)).extend(entries[at + half])
        yield line


def _short(row: Row, label: int, value: int) -> StyledLine:
    entry = StyledLine(_padded(row.label, label) + "  " if label else "", _COLOURS[Style.DIM])
    entry.append(" " * (value - cell_len(row.value)) if _is_size(row.value) else "")
    entry.append(row.value, _COLOURS[row.style])
    if row.note:
        entry.append(" " * (0 if _is_size(row.value) else value - cell_len(row.value)))
        entry.append("  " + " " * (_NOTE - cell_len(row.note)) + row.note, _COLOURS[Style.DIM])
    return entry


def _is_size(value: str) -> bool:
    return value[:1].isdigit() and cell_len(value) <= 12


def _long(row: Row, label: int, width: int) -> Iterator[StyledLine]:
    """Yield a value that needs lines of its own, beside its label where there is space."""
    value = [Span(row.value, row.style)] + ([Span(f" ({row.note})", Style.DIM)] if row.note else [])
    if label <= 2 * width // 5:
        lead = "  " + (_padded(row.label, label) + "  " if label else "")
        yield from _wrapped(value, width, lead, Style.DIM)
    else:
        if row.label:
            yield from _wrapped([Span(row.label, Style.DIM)], width, "  ")
        yield from _wrapped(value, width, "    ")


def _table(table: Table, width: int) -> Iterator[StyledLine]:
    """Values below the names of their columns; columns that find no room follow below, each time behind the names of the rows."""
    yield from _wrapped([Span(table.title, Style.STRONG)], width, "  ")
    lines = (table.columns, *table.rows)
    most = width // 2 - 2 if len(table.columns) > 1 else width - 2
    widths = [min(max(cell_len(cell.text) for cell in column), most) for column in zip(*lines)]
    at = 1
    while at < len(widths) or at == len(widths) == 1:
        end = at + 1
        while end < len(widths) and 2 + widths[0] + sum(2 + size for size in widths[at : end + 1]) <= width:
            end += 1
        if at > 1:
            yield StyledLine()
        for number, line in enumerate(lines):
            entry = StyledLine("  " + _padded(line[0].text, widths[0]), _COLOURS[Style.DIM])
            for cell, size in zip(line[at:end], widths[at:end]):
                text = _fitting(cell.text, size)
                style = Style.DIM if number == 0 else cell.style
                entry.append("  " + " " * (size - cell_len(text)) + text, _COLOURS[style])
            yield entry
        at = end


def _bar(bar: Bar, width: int) -> Iterator[StyledLine]:
    is_short = 0 < cell_len(bar.title) <= min(_TITLE, width // 3) and bar.mark is None
    line = StyledLine("  ").append(bar.title + "  " if is_short else "", _COLOURS[Style.STRONG])
    if not is_short:
        yield from _wrapped([Span(bar.title, Style.STRONG)], width, "  ")
    for at, (part, count) in enumerate(zip(bar.slices, cells(bar, width - line.width))):
        line.append(bar_fill(part, at) * count, _hue(part, at))
    yield line
    if bar.mark is not None:
        yield StyledLine("  " + pointer_line(bar.mark, width - 2, cell_len(bar.mark.label)))
    label = min(max((cell_len(entry.label) for entry in bar.slices), default=0), width // 2)
    value = max((cell_len(entry.value) for entry in bar.slices), default=0)
    keys = [_key(part, at, label, value) for at, part in enumerate(bar.slices)]
    packed = [_key(part, at, 0, 0) for at, part in enumerate(bar.slices)]
    in_columns = len(keys) < _MANY or 2 * max(key.width for key in keys) + _GUTTER <= width
    if in_columns or max(key.width for key in packed) > width - 2:
        yield from _columns(keys, width)
    else:
        yield from (StyledLine("  ").extend(line) for line in _packed(packed, width - 2))


def _key(part: Slice, at: int, label: int, value: int) -> StyledLine:
    """Return one entry of a bar's legend; with a `label` of no cells one that stands in a row with others."""
    entry = StyledLine(bar_fill(part, at) + " ", _hue(part, at))
    if label:
        entry.append(_padded(part.label, label) + " " * (2 + value - cell_len(part.value)) + part.value)
        entry.append(f"  {format_share(part.share):>5}", _COLOURS[Style.DIM])
    else:
        entry.append(f"{part.label} {part.value}").append(f" {format_share(part.share)}", _COLOURS[Style.DIM])
    return entry.append(f"  {part.note}" if part.note else "", _COLOURS[Style.DIM])


def _hue(part: Slice, at: int) -> str:
    return _HUES[at % len(_HUES)] if part.style is Style.PLAIN else _COLOURS[part.style]


def _quote(quote: Quote, width: int, full: bool) -> Iterator[StyledLine]:
    yield from _wrapped([Span(quote.where, Style.DIM)], width, "  ")
    lines = [line for text in quote.text.split("\n") if quote.text for line in _wrapped([Span(text)], width, "  │ ", Style.DIM, "  │ ")]
    if not full and len(lines) > _QUOTE_LINES:
        lines = [*lines[: _QUOTE_LINES - 1], _ending(lines[_QUOTE_LINES - 1], width)]
    yield from lines


def _ending(line: StyledLine, width: int) -> StyledLine:
    """Return a line that says that more came after it."""
    line = line.cut(len(line.plain))
    if line.width + 2 > width:
        blank = line.plain.rfind(" ", len(line.plain) - 20)
        line = line.cut(blank if blank > 8 else len(_fitting(line.plain, width - 2)) - 1)
    return line.append(" …", _COLOURS[Style.DIM])


def _step(number: int, step: Step, width: int) -> Iterator[StyledLine]:
    lead = f"  {number}. "
    indent = " " * len(lead)
    blank = "" if step.title.endswith("。") else " "
    yield from _wrapped([Span(step.title, Style.STRONG), Span(blank), *_marked(step.text)], width, lead)
    for line in _facts(step.settings, width - len(indent) + 2) if step.settings else ():
        yield StyledLine(indent[2:]).extend(line)
    for command in step.command.split("\n") if step.command else ():
        yield from _wrapped([Span(command, Style.CODE)], width, indent + "$ ", Style.DIM)
    if step.note:
        yield from _wrapped([Span(span.text, Style.DIM) for span in _marked(step.note)], width, indent)


def _brief(number: int, brief: BriefStep, places: int, width: int) -> Iterator[StyledLine]:
    """Yield one thing to do: places below each other, and what it is for behind it where there is room, else below."""
    lead = f"  {number}. "
    place = _padded(brief.place, min(places, width // 3)) + "  " if brief.place else ""
    spans = _unmarked_alone(brief.do)
    used = cell_len(lead + place + "".join(span.text for span in spans))
    available = width - used - 2
    aside = brief.whole_aside if cell_len(brief.whole_aside) <= available else brief.aside
    if cell_len(aside) <= available:
        yield from _wrapped([*spans, Span(" "), Span(" " + aside, Style.DIM)], width, lead + place)
    else:
        yield from _wrapped(spans, width, lead + place, under=" " * (cell_len(lead) + 2))
        if aside:
            yield from _wrapped([Span(aside, Style.DIM)], width, " " * (cell_len(lead) + 2))


def _packed(entries: Sequence[StyledLine], width: int) -> Iterator[StyledLine]:
    """Yield as many entries on each line as there is room for."""
    line = StyledLine()
    for entry in entries:
        if line.width and line.width + _GUTTER + entry.width > width:
            yield line
            line = StyledLine()
        line.append(" " * _GUTTER if line.width else "").extend(entry)
    yield line


def _folded(block: Folded, width: int, full: bool, chart: int) -> Iterator[StyledLine]:
    if full:
        yield from _wrapped([Span(block.title, Style.STRONG)], width, "▾ ")
        for line in _blocks(block.blocks, width - 2, full, chart):
            yield StyledLine("  ").extend(line)
        return
    line = StyledLine("▸ ").append(_fitting(block.title, width - 2))
    if block.gist and line.width + 12 < width:
        line.append("  ")
        line.append(_fitting(block.gist, width - line.width), _COLOURS[Style.DIM])
    yield line


def _marked(spans: Sequence[Span]) -> list[Span]:
    """Code in running text keeps its backquotes: without colour nothing else tells where it ends."""
    return [Span(f"`{span.text}`", span.style) if span.style is Style.CODE else span for span in spans]


def _unmarked_alone(spans: Sequence[Span]) -> list[Span]:
    """Code that stands alone, or in a row with more of it, needs no backquotes."""
    is_prose = bool(spans) and spans[0].style is not Style.CODE
    return _marked(spans) if is_prose else list(spans)


def _fitting(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    kept = ""
    for char in text:
        if cell_len(kept + char) > width - 1:
            break
        kept += char
    return kept.rstrip() + "…"


def _padded(text: str, width: int) -> str:
    text = _fitting(text, width)
    return text + " " * (width - cell_len(text))


def _wrapped(spans: Sequence[Span], width: int, lead: str = "", style: Style = Style.PLAIN, under: str = "") -> Iterator[StyledLine]:
    """Yield the spans on lines of at most `width` cells, the first after `lead`, the others after `under` or as many blanks."""
    under = under or " " * cell_len(lead)
    available = max(4, width - max(cell_len(lead), cell_len(under)))
    before = lead
    for line in _broken(tuple(spans), available):
        yield StyledLine(before, _COLOURS[style]).extend(line)
        before = under


@functools.lru_cache(maxsize=512)
def _broken(spans: tuple[Span, ...], width: int) -> Sequence[StyledLine]:
    """Break spans into lines of at most `width` cells, once: the forms of a report that are tried on a screen share most of them."""
    lines = [StyledLine()]
    used = 0
    for group in _unbroken(_pieces(spans, width), width):
        if used and used + cell_len("".join(text for text, _ in group).rstrip(" ")) > width:
            lines.append(StyledLine())
            used = 0
        for text, colour in group:
            text = text if used else text.lstrip(" ")
            lines[-1].append(text, colour)
            used += cell_len(text)
    return lines


def _unbroken(pieces: Iterable[tuple[str, str]], width: int) -> Iterator[list[tuple[str, str]]]:
    """Words with the marks around them in another style: no full stop after code begins a line, no bracket before it ends one."""
    group: list[tuple[str, str]] = []
    for piece in pieces:
        before = "".join(text for text, _ in group)
        stays = before and before[-1] != " " and (piece[0][0] in _NOT_FIRST or before[-1] in _NOT_LAST)
        if stays and cell_len(before + piece[0].rstrip(" ")) <= width:
            group.append(piece)
        else:
            if group:
                yield group
            group = [piece]
    if group:
        yield group


def _pieces(spans: Sequence[Span], width: int) -> Iterator[tuple[str, str]]:
    """Pieces between which a line may break: Latin words with the blanks after them, Chinese characters with their marks."""
    pieces: list[list[str]] = []
    glue = False
    for span in spans:
        style = _COLOURS[span.style]
        for char in span.text:
            last = pieces[-1] if pieces else None
            joins = last is not None and (glue or _joins(last[0], char))
            if joins and last is not None and last[1] == style and cell_len(last[0]) < width:
                last[0] += char
            else:
                pieces.append([char, style])
            glue = char in _NOT_LAST
    for text, style in pieces:
        if cell_len(text) <= width:
            yield text, style
        else:
            yield from ((part, style) for part in chop_cells(text, width))


def _joins(piece: str, char: str) -> bool:
    if char == " ":
        return True
    if char in _NOT_FIRST:
        return piece[-1] != " "
    return piece[-1] != " " and cell_len(piece[-1]) < 2 and cell_len(char) < 2
