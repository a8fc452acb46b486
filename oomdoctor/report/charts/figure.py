"""What all charts have in common: a title and a description for who cannot see it, a legend, and a table of the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from msgspec import Struct

from oomdoctor.report.charts import texts
from oomdoctor.report.charts.plot import WIDTH
from oomdoctor.report.document import Style
from oomdoctor.report.wording.wording import Wording

HUES = 10
"""Colours that the stylesheet tells apart; further parts begin anew. Their numbers tell them apart in any case."""


class Drawing(Struct, frozen=True):
    """The shapes of a chart, and what they show in words."""

    title: str
    tells: str
    """One or two sentences with the figures that matter."""
    height: float
    shapes: str


class Figures(Struct, frozen=True):
    """The table below a chart: the first column names the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def figure(drawing: Drawing, number: int, wording: Wording, *, legend: str = "", figures: Figures | None = None) -> str:
    """Return a chart as wide as the page; `number` tells it from the other charts there."""
    name = f"chart-{number}"
    titled = f'<title id="{name}-title">{escape(drawing.title)}</title><desc id="{name}-desc">{escape(drawing.tells)}</desc>'
    drawn = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {drawing.height:.0f}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f"{titled}{drawing.shapes}</svg>"
    )
    below = "" if figures is None else _table(figures, wording)
    return f"<figure><figcaption>{escape(drawing.title)}</figcaption>{drawn}{legend}{below}</figure>"


def legend(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return a list of (sign, label, value), each sign a drawing of its own."""
    return '<ul class="legend">' + "".join(f"<li>{sign}{escape(label)}{_dim(value)}</li>" for sign, label, value in entries) + "</ul>"


def part_sign(hue: str, number: int | str | None) -> str:
    """Return the sign of a part: its colour, and the number or letter that stands in it."""
    drawn = "" if number is None else f'<text class="number" x="10" y="14" text-anchor="middle">{number}</text>'
    return f'<svg class="key" viewBox="0 0 20 20"><rect class="{hue}" x="1" y="1" width="18" height="18"/>{drawn}</svg>'


def line_sign(hue: str) -> str:
    """Return the sign of a line: its colour and its dashes."""
    return f'<svg class="key wide" viewBox="0 0 40 20"><path class="curve {hue}" d="M0 10H40"/></svg>'


def hue_of(at: int, style: Style) -> str:
    """Return the class of the part that is the `at`-th: what is free, of others or the rest has its own."""
    return {Style.GOOD: "free", Style.WARN: "others", Style.DIM: "rest"}.get(style, f"a{at % HUES}")


def number_of(at: int, style: Style) -> int | None:
    """Return the number that stands in a part; what is free is empty and needs none."""
    return None if style is Style.GOOD else at + 1


def _dim(text: str) -> str:
    return f' <span class="dim">{escape(text)}</span>' if text else ""


def _table(figures: Figures, wording: Wording) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in figures.columns)
    rows = "".join(f"<tr><th>{escape(row[0])}</th>{''.join(map(_cell, row[1:]))}</tr>" for row in figures.rows)
    note = f"<p>{escape(figures.note)}</p>" if figures.note else ""
    return (
        f'<details class="figures"><summary>{escape(wording.say(texts.FIGURES))}</summary>{note}'
        f'<table class="grid"><tr>{head}</tr>{rows}</table></details>'
    )


def _cell(text: str) -> str:
    return f'<td class="size">{escape(text)}</td>'


def summed_up(sentences: Sequence[str], wording: Wording) -> str:
    """Join clauses to one description."""
    return wording.semicolon.join(sentence for sentence in sentences if sentence) + wording.stop
