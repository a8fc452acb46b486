"""Bars, areas, strips and counts: each part is as long as it is large, within a pixel, and carries its number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.charts.drawn import chart, corners, scale_of_sizes, shapes

from oomdoctor.report.charts.areas import drawn_areas
from oomdoctor.report.charts.bars import drawn_bar, drawn_bars
from oomdoctor.report.charts.counts import drawn_count_bars, drawn_count_grid
from oomdoctor.report.charts.plot import WIDTH
from oomdoctor.report.charts.strips import drawn_strips
from oomdoctor.report.document import Area, Areas, Bar, Bars, CountBars, CountGrid, Counts, Mark, Piece, Slice, Strip, Strips, Style
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

EN = Wording("en")
INSIDE = WIDTH - 4
"""A bar as long as the whole: two pixels are left on each side."""


def slices(**shares: float) -> tuple[Slice, ...]:
    return tuple(
        Slice(name, f"{share * 24:.2f} GiB", share, Style.GOOD if name == "free" else Style.PLAIN) for name, share in shares.items()
    )


def parts(page: str, *, y: float | None = None) -> dict[str, tuple[float, float]]:
    """Return where each part of a bar begins and how long it is, by its title."""
    drawn = {}
    for shape in shapes(chart(page), "rect", "part"):
        if y is None or float(shape.get("y", "")) == y:
            drawn[(shape.findtext("title") or "").partition(":")[0]] = (float(shape.get("x", "")), float(shape.get("width", "")))
    return drawn


def test_parts_of_a_bar_are_as_long_as_they_are_large() -> None:
    drawn = parts(drawn_bar(Bar("GPU 0", slices(weights=0.5, activations=0.3, free=0.2)), EN, 1))
    assert drawn["weights"] == pytest.approx((2, 0.5 * INSIDE), abs=1)
    assert drawn["activations"] == pytest.approx((2 + 0.5 * INSIDE, 0.3 * INSIDE), abs=1)
    assert drawn["free"] == pytest.approx((2 + 0.8 * INSIDE, 0.2 * INSIDE), abs=1)


def test_a_bar_beyond_the_card_and_its_range_set_the_scale() -> None:
    page = drawn_bar(Bar("GPU 0", slices(weights=1.0), Mark(0.6, "card: 24 GiB"), spread=(0.8, 1.25)), EN, 1)
    assert parts(page)["weights"] == pytest.approx((2, INSIDE / 1.25), abs=1)
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", shapes(chart(page), "path", "range")[0].get("d", ""))]
    assert (numbers[0], numbers[5]) == pytest.approx((2 + INSIDE * 0.8 / 1.25, 2 + INSIDE), abs=1)
    mark = re.findall(r"[\d.]+", shapes(chart(page), "path", "limit")[0].get("d", ""))
    assert float(mark[0]) == pytest.approx(2 + INSIDE * 0.6 / 1.25, abs=1)


def test_expected_stands_below_seen_in_one_scale() -> None:
    expected = Bar("expected", slices(weights=0.4, logits=0.9), value="31.2 GiB", spread=(1.1, 1.5))
    page = drawn_bar(Bar("GPU 0: 24 GiB", slices(weights=0.7, free=0.3), value="seen", beside=(expected,)), EN, 1)
    root = chart(page)
    assert [shape.text for shape in shapes(root, "text", "name")] == ["seen", "expected"]
    rows = sorted({float(shape.get("y", "")) for shape in shapes(root, "rect", "part")})
    assert parts(page, y=rows[0])["weights"][1] == pytest.approx(0.7 * INSIDE / 1.5, abs=1)
    assert parts(page, y=rows[1])["logits"] == pytest.approx((2 + 0.4 * INSIDE / 1.5, 0.9 * INSIDE / 1.5), abs=1)
    # One part has one look and one number in both bars.
    looks = {(shape.findtext("title") or "").partition(":")[0]: shape.get("class") for shape in shapes(root, "rect", "part")}
    assert looks == {"weights": "part a0", "logits": "part a1", "free": "part free"}
    assert "card: " not in page and "GPU 0: 24 GiB" in [shape.text for shape in shapes(root, "text", "limit")]


def test_the_order_of_parts_can_be_that_of_another_chart() -> None:
    bars = (Bar("load", slices(weights=0.3)), Bar("forward", slices(activations=0.6, weights=0.3)))
    page = drawn_bars(Bars("phases", bars, parts=("activations", "weights")), EN, 1)
    assert re.findall(r"</svg>(\w+)<", page) == ["activations", "weights"]
    assert [shape.get("class") for shape in shapes(chart(page), "rect", "part")] == ["part a1", "part a0", "part a1"]


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=14), st.text(max_size=30))
def test_a_part_that_is_wide_enough_has_its_number(shares: list[float], name: str) -> None:
    whole = sum(shares) or 1.0
    page = drawn_bar(Bar(name, tuple(Slice(f"part {at}", "", share / whole) for at, share in enumerate(shares))), EN, 1)
    root = chart(page)
    wide = sum(float(shape.get("width", "")) >= 18.5 for shape in shapes(root, "rect", "part"))
    assert wide <= len(shapes(root, "text", "number")) <= len(shares)


def test_areas_lie_on_each_other_within_a_pixel() -> None:
    first, second = tuple(GIB + at * GIB // 50 for at in range(100)), tuple(2 * GIB - at * GIB // 100 for at in range(100))
    page = drawn_areas(Areas("in use", (Area("a", first), Area("b", second)), Area("reserved", (4 * GIB,) * 100)), EN, 1)
    root = chart(page)
    y = scale_of_sizes(root)
    for at, shape in enumerate(shapes(root, "path", "area")):
        ((line),) = corners(shape.get("d", ""))
        tops = [low * at + size for low, size in zip(first, (first, second)[at])]
        assert max(abs(y(size) - drawn) for size, (_, drawn) in zip(tops, line)) <= 1
    ((around),) = corners(shapes(root, "path", "curve")[0].get("d", ""))
    assert max(abs(y(4 * GIB) - drawn) for _, drawn in around) <= 1


def test_strips_are_as_long_as_their_bytes() -> None:
    strips = (Strip("2 GiB", (Piece(GIB, 0), Piece(GIB, None))), Strip("1 GiB", (Piece(GIB, 1),)))
    root = chart(drawn_strips(Strips("map", ("a", "others"), "free", strips), EN, 1))
    drawn = shapes(root, "rect", "part")
    half = (WIDTH - 150) / 2
    assert [float(shape.get("x", "")) for shape in drawn] == pytest.approx([150, 150 + half, 150], abs=1)
    assert [float(shape.get("width", "")) for shape in drawn] == pytest.approx([half, half, half], abs=1)


def test_counts_are_as_high_as_they_are_many_and_cells_have_their_number() -> None:
    page = drawn_count_bars(CountBars("by day", ("gpu", "host"), (Counts("1", (3, 1)), Counts("2", (0, 2)))), EN, 1)
    heights = [float(size) for size in re.findall(r"v-([\d.]+)h", page)]
    assert heights == pytest.approx([3 * 140 / 4, 140 / 4, 2 * 140 / 4], abs=1)
    grid = chart(drawn_count_grid(CountGrid("by node", ("1", "2"), (Counts("n1", (7, 0)), Counts("n2", (0, 2)))), EN, 2))
    assert [shape.text for shape in grid.iter("text") if shape.get("class") in ("number", "count")] == ["7", "2"]
