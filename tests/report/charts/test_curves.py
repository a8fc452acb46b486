"""Curves: each point stands within a pixel of its figure, whatever the series, and no series makes a large drawing."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.charts.drawn import chart, corners, scale_of_places, scale_of_sizes, shapes

from oomdoctor.report.charts.curves import drawn_curves
from oomdoctor.report.charts.reduce import MOST_POINTS, clean_points, reduced
from oomdoctor.report.document import Curve, Curves, Limit, Moment, Stretch
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

EN = Wording("en")
Points = tuple[tuple[float, "int | None"], ...]


def block(*series: Points, limit: int | None = 24 * GIB, failure: float | None = None, **more: object) -> Curves:
    return Curves(
        "memory", "step", tuple(Curve(f"curve {at}", points) for at, points in enumerate(series)),
        limit=None if limit is None else Limit("the card", limit), failure=None if failure is None else Moment(failure, "failure"), **more,  # type: ignore[arg-type]
    )  # fmt: skip


CLIMB: Points = tuple((float(10 * at), 9 * GIB + at * GIB // 7) for at in range(90))
WAVE: Points = tuple((float(10 * at), round((12 + 3 * math.sin(at / 5)) * GIB)) for at in range(90))


def test_each_point_stands_within_a_pixel_of_its_figure() -> None:
    root = chart(drawn_curves(block(CLIMB, WAVE, failure=905.0), EN, 1))
    x, y = scale_of_places(root), scale_of_sizes(root)
    for series, path in zip((CLIMB, WAVE), shapes(root, "path", "curve"), strict=True):
        (line,) = corners(path.get("d", ""))
        assert len(line) == len(series)
        assert max(abs(x(at) - drawn) for (at, _), (drawn, _) in zip(series, line)) <= 1
        assert max(abs(y(size or 0) - drawn) for (_, size), (_, drawn) in zip(series, line)) <= 1


def test_the_card_and_the_failure_stand_within_a_pixel() -> None:
    root = chart(drawn_curves(block(CLIMB, failure=905.0), EN, 1))
    ((_, limit), *_), *_ = corners(shapes(root, "path", "limit")[0].get("d", "").replace("H", " "))
    ((failed, _), *_), *_ = corners(shapes(root, "path", "failure")[0].get("d", "").replace("V", " 0 "))
    assert abs(limit - scale_of_sizes(root)(24 * GIB)) <= 1
    assert abs(failed - scale_of_places(root)(905)) <= 1


def test_phases_stand_within_a_pixel() -> None:
    phases = (Stretch(0.0, 200.0, "loading"), Stretch(200.0, 890.0, "work"))
    root = chart(drawn_curves(block(CLIMB, phases=phases), EN, 1))
    x = scale_of_places(root)
    drawn = [(float(shape.get("x", "")), float(shape.get("width", ""))) for shape in shapes(root, "rect", "phase")]
    assert len(drawn) == 2
    for phase, (start, width) in zip(phases, drawn):
        assert abs(x(phase.start) - start) <= 1 and abs(x(phase.end) - start - width) <= 1


def test_doublings_are_as_wide_as_each_other() -> None:
    points: Points = tuple((float(1024 << at), (9 * GIB) << at) for at in range(5))
    root = chart(drawn_curves(block(points, limit=40 * GIB, is_log=True), EN, 1))
    ((line),) = corners(shapes(root, "path", "curve")[0].get("d", ""))
    across = [after[0] - before[0] for before, after in zip(line, line[1:])]
    down = [before[1] - after[1] for before, after in zip(line, line[1:])]
    assert max(across) - min(across) <= 1 and max(down) - min(down) <= 1
    # The line of 32 GiB lies 15/16 of a doubling above 9 GiB: log2(32 / 9) doublings.
    named = {shape.text: float(shape.get("y", "")) - 4 for shape in root.iter("text")}
    assert abs(named["32 GiB"] - (line[0][1] - down[0] * math.log2(32 / 9))) <= 1


def test_a_million_points_are_drawn_small_and_keep_their_peaks() -> None:
    draw = random.Random(5)
    sizes = [10 * GIB + draw.randrange(GIB) for _ in range(1_000_000)]
    sizes[123_456], sizes[654_321] = 23 * GIB, GIB
    drawn = drawn_curves(block(tuple((float(at), size) for at, size in enumerate(sizes))), EN, 1)
    root = chart(drawn)
    (line,) = corners(shapes(root, "path", "curve")[0].get("d", ""))
    assert len(line) <= MOST_POINTS and len(drawn.encode()) < 12_000
    y = scale_of_sizes(root)
    assert abs(min(drawn for _, drawn in line) - y(23 * GIB)) <= 1
    assert abs(max(drawn for _, drawn in line) - y(GIB)) <= 1


@pytest.mark.parametrize("points", [
    pytest.param((), id="no points"),
    pytest.param(((0.0, None), (1.0, None)), id="holes only"),
    pytest.param(((math.nan, 5), (math.inf, 6)), id="places that are none"),
    pytest.param(((0.0, -5),), id="less than nothing"),
])  # fmt: skip
def test_nothing_is_drawn_where_nothing_is_known(points: Points) -> None:
    assert drawn_curves(block(points), EN, 1) == ""


def test_one_point_is_a_dot_and_a_hole_parts_the_line() -> None:
    assert len(shapes(chart(drawn_curves(block(((7.0, GIB),)), EN, 1)), "circle")) == 1
    root = chart(drawn_curves(block(((0.0, GIB), (1.0, GIB), (2.0, None), (3.0, GIB), (4.0, GIB), (5.0, None), (6.0, GIB))), EN, 1))
    assert [len(line) for line in corners(shapes(root, "path", "curve")[0].get("d", ""))] == [2, 2]
    assert len(shapes(root, "circle")) == 1


_SERIES = st.lists(st.tuples(st.floats(), st.one_of(st.none(), st.integers(-5, 1 << 70))), max_size=900).map(tuple)


@settings(deadline=None, max_examples=60)
@given(st.lists(_SERIES, max_size=12), st.one_of(st.none(), st.integers(0, 1 << 62)), st.booleans())
def test_any_series_is_drawn_inside_its_frame(series: list[Points], limit: int | None, is_log: bool) -> None:
    drawn = drawn_curves(block(*series, limit=limit, is_log=is_log), EN, 1)
    assert "nan" not in drawn.lower() and "inf" not in drawn and len(drawn.encode()) < 80_000
    if not drawn:
        return
    root = chart(drawn)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    points = [point for path in shapes(root, "path", "curve") for line in corners(path.get("d", "")) for point in line]
    points += [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in root.iter("circle")]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


@given(_SERIES)
def test_reduced_twice_is_reduced_once_and_keeps_the_extremes(series: Points) -> None:
    points = clean_points(series)
    fewer = list(reduced(points))
    known = [size for _, size in points if size is not None]
    assert len(fewer) <= MOST_POINTS and list(reduced(fewer)) == fewer
    assert {*fewer} <= {*points}
    if known:
        kept = [size for _, size in fewer if size is not None]
        assert (max(kept), min(kept)) == (max(known), min(known))


def test_who_cannot_see_it_hears_the_figures() -> None:
    drawn = drawn_curves(block(CLIMB, failure=905.0), EN, 3)
    root = chart(drawn)
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "chart-3-title chart-3-desc")
    told = root.findtext("desc") or ""
    assert told == "curve 0: from 9.00 GiB to 21.71 GiB, at most 21.71 GiB; step 0 to 890; the card: 24.00 GiB; failure at step 905."
    assert "<summary>The figures</summary>" in drawn and "<th>0 to 50</th>" in drawn


def test_colour_is_not_all_that_tells_curves_apart() -> None:
    from oomdoctor.report.charts.stylesheet import stylesheet

    dashes = [rule for rule in stylesheet().split("}") if ".curve.l" in rule]
    assert len(dashes) == 8
    patterns = [rule.partition("stroke-dasharray: ")[2].rstrip("; ") for rule in dashes]
    assert len(set(patterns)) == 8
