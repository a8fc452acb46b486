"""How a bar is drawn where there are only characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oomdoctor.report.document import Areas, Bar, Bars, Mark, Row, Slice, Style

_LEVELS = "▁▂▃▄▅▆▇█"
_CELLS = 20
"""Of a bar that stands in a row."""
_FILLS = "█▓▒░▞▚▤▥▦▧▨▩"


def bar_fill(part: Slice, at: int) -> str:
    """Return the character of the part that is the `at`-th of its bar; what is free has its own."""
    return "·" if part.style is Style.GOOD else _FILLS[at % len(_FILLS)]


def cells(bar: Bar, width: int) -> list[int]:
    """Return the whole cells of each part, `width` together; a part that is not nothing has at least one."""
    shares = [entry.share for entry in bar.slices]
    counts = [max(1, int(share * width)) for share in shares]
    while sum(counts) > width and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    by_loss = sorted(range(len(counts)), key=lambda at: shares[at] * width - counts[at], reverse=True)
    for at in by_loss[: max(0, width - sum(counts))]:
        counts[at] += 1
    return counts


def pointer_line(mark: Mark, width: int, label: int) -> str:
    """Return the line under a bar of `width` cells that points at the mark; its name, of `label` cells, is on the side where it fits."""
    at = min(width - 1, max(0, round(mark.share * width)))
    if at + 2 + label <= width:
        return f"{' ' * at}▲ {mark.label}"
    return f"{' ' * (at - 1 - label)}{mark.label} ▲"


def spark_line(sizes: Sequence[int], width: int) -> str:
    """Return sizes over time as characters of different height, the largest of each part; nothing where there are none."""
    parts = min(width, len(sizes))
    edges = [len(sizes) * part // parts for part in range(parts + 1)] if parts else []
    highest = [max(sizes[start:stop]) for start, stop in zip(edges, edges[1:])]
    most = max(highest, default=0)
    return "".join(_LEVELS[min(len(_LEVELS) - 1, size * len(_LEVELS) // most)] for size in highest) if most else ""


def totals(areas: Areas) -> list[int]:
    """Return the sum of the areas at each point."""
    return [sum(sizes) for sizes in zip(*(area.sizes for area in areas.areas))]


def bar_rows(bars: Bars) -> tuple[Row, ...]:
    """Return bars as rows, each with its range drawn against the mark where there are both."""
    return tuple(Row(bar.title, f"{_drawn(bar, bars.mark)}{bar.value}", bar.note) for bar in bars.bars)


def _drawn(bar: Bar, mark: Mark | None) -> str:
    """Draw what is expected, what it may be at most, what is free."""
    if mark is None or bar.spread is None or not mark.share:
        return ""
    shares = (sum(part.share for part in bar.slices), bar.spread[1])
    # Rounded first: shares are bytes divided, and what fills a cell exactly is not to begin the next.
    filled, most = (min(_CELLS, math.ceil(round(share / mark.share * _CELLS, 6))) for share in shares)
    return "█" * filled + "▒" * (most - filled) + "·" * (_CELLS - most) + "  "
