"""A sweep in words: how many combinations fit, a table of what each needs, and the largest that fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.plan import Fits
from oomdoctor.case.text import Text
from oomdoctor.planning.sizing.sweep import Sweep, SweepCell, SweepLimit
from oomdoctor.report.document import Block, Cell, Curve, Curves, Document, Folded, Limit, Paragraph, Span, Style, Table
from oomdoctor.report.memory.assumed import assumed, taken
from oomdoctor.report.memory.fits import how_judged
from oomdoctor.report.wording.wording import Counted, Wording
from oomdoctor.units import GIB

MARKS: Mapping[Fits | None, tuple[str, Style]] = {
    "yes": (" ✓", Style.GOOD),
    "close": (" ?", Style.WARN),
    "no": (" ✗", Style.BAD),
    None: ("", Style.PLAIN),
}
"""What stands behind a need, by whether it fits."""
_TRAINED = Text(
    "GiB required per card; rows: samples at a time, columns: tokens per sample", "每张卡所需的 GiB；行：批大小，列：每条样本的 token 数"
)
_SERVED = Text(
    "GiB required per card; rows: concurrent requests, columns: tokens per request",
    "每张卡所需的 GiB；行：并发请求数，列：每个请求的 token 数",
)
_MARKED = Text(" (✓ fits, ? too close to call, ✗ does not fit)", "（✓ 放得下，? 难以断定，✗ 放不下）")
_LONGEST = Text("longest", "最长")
_MOST = Text("most", "最多")
_OVER = Text("Expected memory required per card", "单卡所需显存（估计值）")
_LENGTH, _BATCH, _REQUESTS = Text("length", "长度"), Text("batch", "批大小"), Text("requests", "并发请求数")
_USABLE = Text("usable", "可规划")
_CURVES = 4
"""As many as a terminal tells apart."""
_FITTING = Counted(
    "Of {all} combinations, {n} fits {card} ({usable} usable).",
    "Of {all} combinations, {n} fit {card} ({usable} usable).",
    "{all} 种组合中有 {n} 种放得下：{card}，可规划的显存为 {usable}。",
)
_NONE = Text(
    "None of {all} combinations is certain to fit {card} ({usable} usable).",
    "{all} 种组合没有一种一定放得下：{card}，可规划的显存为 {usable}。",
)
_NEEDS = Text("{model}: from {least} to {most} GiB{each}.", "{model}：需要 {least} 至 {most} GiB{each}。")
_LIMITS = Text(
    "“{longest}” and “{most}” are the largest values certain to fit for each row and column; lengths in steps of 256.",
    "“{longest}”和“{most}”分别是每行、每列中一定放得下的最大值；长度以 256 为步长。",
)
_CACHE = Text(
    "{server} always reserves its whole share; a combination fits if the cache in that share holds all requests at once, "
    "each at full length.",
    "{server} 总会占满自己的份额；份额内的缓存能同时容纳全部请求（都按最大长度）才算放得下。",
)


def compose(sweep: Sweep, wording: Wording, version: str) -> Document:
    """Compose the document."""
    title = wording.say(Text("oomdoctor {} · estimate", "oomdoctor {} · 显存估计")).format(version)
    return Document(title=title, blocks=tuple(_blocks(sweep, wording)), lang=wording.lang)


def _blocks(sweep: Sweep, wording: Wording) -> Iterator[Block]:
    yield Paragraph(tuple(_headline(sweep, wording)))
    deciding = [assumption for assumption in sweep.assumptions if assumption.id in sweep.deciding]
    if deciding:
        yield Paragraph((Span(taken(deciding, wording)),))
    yield _table(sweep, wording)
    yield from _curves(sweep, wording)
    if sweep.budget is not None:
        told = [wording.say(_LIMITS, longest=wording.say(_LONGEST), most=wording.say(_MOST))]
        told += [wording.say(_CACHE, server=sweep.server)] if sweep.server else []
        yield Paragraph((Span(wording.blank.join(told), Style.DIM),))
    yield from assumed(sweep.assumptions, wording)
    yield Folded(title=wording.say(Text("How this is decided", "判断依据")), blocks=how_judged(wording))


def _headline(sweep: Sweep, wording: Wording) -> Iterator[Span]:
    needs = [cell.needed.expected / GIB for cell in sweep.cells]
    card = sweep.budget
    if card is not None:
        fitting = sum(cell.fits == "yes" for cell in sweep.cells)
        values = {"all": len(sweep.cells), "card": card.card, "usable": f"{card.usable / GIB:.1f} GiB"}
        text = wording.count(_FITTING, fitting, **values) if fitting else wording.say(_NONE, **values)
        yield Span(text + wording.blank, Style.GOOD if fitting else Style.BAD)
    cards = sweep.setup.layout.cards
    each = "" if cards == 1 else wording.say(Text(f" on each of {cards} cards", f"，共 {cards} 张卡，每张都要"))
    yield Span(wording.say(_NEEDS, model=sweep.setup.shape.name, least=f"{min(needs):.1f}", most=f"{max(needs):.1f}", each=each))


def _table(sweep: Sweep, wording: Wording) -> Table:
    is_judged = sweep.budget is not None
    columns = [Cell(""), *(Cell(f"{length:,}") for length in sweep.lengths)]
    rows = [[Cell(f"{batch:,}"), *map(_cell, sweep.row(batch))] for batch in sweep.batches]
    if is_judged:
        columns.append(Cell(wording.say(_LONGEST)))
        for row, limit in zip(rows, sweep.longest):
            row.append(limit_cell(limit))
        rows.append([Cell(wording.say(_MOST)), *map(limit_cell, sweep.largest), Cell("")])
    title = wording.say(_TRAINED if sweep.setup.task == "train" else _SERVED) + (wording.say(_MARKED) if is_judged else "")
    return Table(title, tuple(columns), tuple(map(tuple, rows)))


def _curves(sweep: Sweep, wording: Wording) -> Iterator[Block]:
    """Yield the needs over the longer axis, a curve for each value of the other; nothing where there is one combination."""
    by_length = len(sweep.lengths) >= len(sweep.batches)
    places, others = (sweep.lengths, sweep.batches) if by_length else (sweep.batches, sweep.lengths)
    if len(places) < 2:
        return
    needs = {(cell.batch, cell.length): cell.needed.expected for cell in sweep.cells}
    batch = _BATCH if sweep.setup.task == "train" else _REQUESTS
    axis, other = (_LENGTH, batch) if by_length else (batch, _LENGTH)
    curves = tuple(
        Curve(
            f"{wording.say(other)} {value:,}",
            tuple((float(at), needs[(value, at) if by_length else (at, value)]) for at in places),
        )
        for value in _spread(others)
    )
    limit = None if sweep.budget is None else Limit(wording.say(_USABLE), sweep.budget.usable)
    yield Curves(wording.say(_OVER), wording.say(axis), curves, limit=limit, is_log=True)


def _spread(values: Sequence[int]) -> Sequence[int]:
    """Return a few of the values, from the first to the last."""
    return [values[round(at * (len(values) - 1) / (_CURVES - 1))] for at in range(_CURVES)] if len(values) > _CURVES else values


def _cell(cell: SweepCell) -> Cell:
    mark, style = MARKS[cell.fits]
    return Cell(f"{cell.needed.expected / GIB:.1f}{mark}", style)


def limit_cell(limit: SweepLimit) -> Cell:
    """Return the cell of a largest size."""
    if limit.size is None:
        return Cell("-", Style.DIM)
    return Cell(f"{'≥' if limit.is_open else ''}{limit.size:,}", Style.STRONG)
