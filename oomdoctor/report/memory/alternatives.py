"""The usual cards, or the usual formats of the weights, as a table: which of them a run fits."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.text import Text
from oomdoctor.planning.sizing.alternatives import Alternatives, Candidate
from oomdoctor.report.document import Block, Cell, Document, Folded, Paragraph, Span, Style, Table
from oomdoctor.report.memory.assumed import assumed
from oomdoctor.report.memory.fits import how_judged
from oomdoctor.report.memory.sweep import MARKS, limit_cell
from oomdoctor.report.memory.understood import understood
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

_MARKED = Text(" (✓ fits, ? too close to call, ✗ does not fit)", "（✓ 放得下，? 难以断定，✗ 放不下）")
_CARDS = Text("GiB required per card; columns: number of cards", "每张卡所需的 GiB；列：卡数")
_FORMATS = Text("GiB required on {card}, by weight format", "不同权重格式下 {card} 所需的 GiB")
_ANY_CARD = Text("each card", "每张卡")
_FORMAT, _LONGEST = Text("format", "格式"), Text("longest", "最长")
_SMALLEST = Text("Smallest certain to fit: {}.", "一定放得下的最小配置：{}。")
_NONE = Text("None of these is certain to fit.", "以上没有一种一定放得下。")
_SOME = Text("Formats certain to fit: {}.", "一定放得下的格式：{}。")
_SPREAD = {
    "zero3": Text("With several cards, the run is sharded by ZeRO 3.", "多张卡时按 ZeRO-3 分摊。"),
    "tensor parallel": Text("With several cards, the model is split by tensor parallelism.", "多张卡时按张量并行分摊。"),
}
_REFUSED = Text("“-”: the program refuses to start this way.", "“-”：程序拒绝以这种配置启动。")
_OF_A_SERVER = Text(
    "{} reserves its whole share of a card; these figures are what it needs for one request.",
    "{} 会占满自己的份额；表中是只服务一个请求时所需的显存。",
)


def compose(alternatives: Alternatives, wording: Wording, version: str) -> Document:
    """Compose the document."""
    title = wording.say(Text("oomdoctor {} · estimate", "oomdoctor {} · 显存估计")).format(version)
    return Document(title=title, blocks=tuple(_blocks(alternatives, wording)), lang=wording.lang)


def _blocks(alternatives: Alternatives, wording: Wording) -> Iterator[Block]:
    yield Paragraph((Span(understood(alternatives.setup, wording), Style.STRONG),))
    yield Paragraph((_answer(alternatives, wording),))
    yield _cards(alternatives, wording) if alternatives.compared == "cards" else _formats(alternatives, wording)
    notes = [wording.say(_SPREAD[alternatives.spread])] if alternatives.spread else []
    notes += [wording.say(_OF_A_SERVER).format(alternatives.server)] if alternatives.server else []
    notes += [wording.say(_REFUSED)] if any(cell.needed is None for row in alternatives.rows for cell in row) else []
    if notes:
        yield Paragraph((Span(wording.blank.join(notes), Style.DIM),))
    yield from assumed(alternatives.assumptions, wording)
    yield Folded(title=wording.say(Text("How this is decided", "判断依据")), blocks=how_judged(wording))


def _answer(alternatives: Alternatives, wording: Wording) -> Span:
    """Say which surely fit: of cards the smallest for each number of them, of formats all."""
    if alternatives.compared == "formats":
        if alternatives.budget is None:
            return Span("")
        named = [cell.name for cell in alternatives.fitting]
        return Span(wording.say(_SOME).format(wording.listed(named)) if named else wording.say(_NONE), Style.GOOD if named else Style.BAD)
    smallest: dict[int, Candidate] = {}
    for cell in alternatives.fitting:
        smallest.setdefault(cell.cards, cell)
    # Two small cards are worth naming only where they are smaller than the one that fits alone.
    named = []
    for cards, cell in sorted(smallest.items()):
        text = f"{cards} x {cell.name}"
        if all(not other.endswith(cell.name) for other in named):
            named.append(text)
    return Span(wording.say(_SMALLEST).format(wording.listed(named)) if named else wording.say(_NONE), Style.GOOD if named else Style.BAD)


def _cards(alternatives: Alternatives, wording: Wording) -> Table:
    counts = [str(cell.cards) for cell in alternatives.rows[0]]
    rows = tuple((Cell(row[0].name), *map(_cell, row)) for row in alternatives.rows)
    return Table(wording.say(_CARDS) + wording.say(_MARKED), (Cell(""), *map(Cell, counts)), rows)


def _formats(alternatives: Alternatives, wording: Wording) -> Table:
    budget = alternatives.budget
    title = wording.say(_FORMATS).format(card=budget.card if budget else wording.say(_ANY_CARD)) + (wording.say(_MARKED) if budget else "")
    columns = (Cell(wording.say(_FORMAT)), Cell("GiB"), *([Cell(wording.say(_LONGEST))] if budget else []))
    rows = tuple((Cell(cell.name), _cell(cell), *([_longest(cell)] if budget else [])) for (cell,) in alternatives.rows)
    return Table(title, columns, rows)


def _cell(cell: Candidate) -> Cell:
    mark, style = MARKS[cell.fits]
    return Cell("-" if cell.needed is None else f"{cell.needed.expected / GIB:.1f}{mark}", style)


def _longest(cell: Candidate) -> Cell:
    return Cell("-", Style.DIM) if cell.longest is None else limit_cell(cell.longest)
