"""Shapes of series: what grows is found, and what does not is never accused, whatever the seed."""

from __future__ import annotations

import random

import pytest
from series.made_series import (
    Maker,
    column,
    last_climb,
    leak,
    leak_under_a_saw_tooth,
    loading,
    longest_so_far,
    saw_tooth,
    steady,
    wandering,
    warmed_up,
)

from oomdoctor.case.recorded.series import SeriesShape
from oomdoctor.series.shape import find_shape
from oomdoctor.units import GIB

ACCUSED = {"leak", "staircase"}


def shapes(make: Maker, seeds: int) -> list[SeriesShape | None]:
    return [find_shape(column(make(random.Random(seed)))) for seed in range(seeds)]


@pytest.mark.parametrize(("make", "seeds"), [
    pytest.param(steady, 1000, id="a level with noise, with and without loading and an end"),
    pytest.param(wandering, 300, id="a level around which it wanders"),
    pytest.param(warmed_up, 200, id="a level that the optimizer raised once"),
    pytest.param(saw_tooth, 200, id="up and down"),
    pytest.param(loading, 200, id="a model that is loaded to the last sample"),
    pytest.param(last_climb, 200, id="a level, and one leap at the end"),
])  # fmt: skip
def test_what_does_not_grow_is_never_accused(make: Maker, seeds: int) -> None:
    assert [seed for seed, shape in enumerate(shapes(make, seeds)) if shape is not None and shape.name in ACCUSED] == []


@pytest.mark.parametrize("make", [
    pytest.param(leak, id="a straight climb, with noise"),
    pytest.param(leak_under_a_saw_tooth, id="a climb under an up and down"),
])  # fmt: skip
def test_a_leak_is_found_at_any_slope_above_noise(make: Maker) -> None:
    assert [seed for seed, shape in enumerate(shapes(make, 300)) if shape is None or shape.name != "leak"] == []


def test_longer_and_longer_batches_are_no_leak() -> None:
    names = [shape.name for shape in shapes(longest_so_far, 200) if shape is not None]
    assert "leak" not in names
    assert names.count("staircase") > 150


def test_a_leap_at_the_end_is_seen() -> None:
    assert all(shape is not None and shape.last_climb is not None for shape in shapes(last_climb, 200))


@pytest.mark.parametrize(
    "make", [pytest.param(steady, id="steady"), pytest.param(saw_tooth, id="up and down"), pytest.param(leak, id="a leak")]
)
def test_no_leap_is_seen_where_there_is_none(make: Maker) -> None:
    assert [seed for seed, shape in enumerate(shapes(make, 300)) if shape is not None and shape.last_climb is not None] == []


def test_the_pace_lies_in_its_range_and_says_when_the_card_is_full() -> None:
    draw = random.Random(5)
    levels = [20 * GIB + at * GIB / 360 + draw.gauss(0, GIB / 20) for at in range(1800)]
    shape = find_shape(column(levels, total=30 * GIB))
    assert shape is not None
    assert shape.per_hour is not None
    assert shape.per_hour.low < 10 * GIB < shape.per_hour.high
    assert abs(shape.per_hour.middle / GIB - 10) < 0.1
    assert shape.hours_to_full == pytest.approx(0.5, abs=0.03)


def test_what_comes_after_the_failure_counts_for_nothing() -> None:
    levels = [10.0 * GIB] * 60 + [9.0 * GIB + at * GIB / 10 for at in range(200)]
    made = column(levels)
    assert find_shape(made, until=made.times[59]) == find_shape(column(levels[:60]))


@pytest.mark.parametrize("levels", [
    pytest.param([], id="nothing"),
    pytest.param([5.0 * GIB] * 7, id="seven samples"),
    pytest.param([0.0] * 200, id="a card that nobody used"),
])  # fmt: skip
def test_too_little_has_no_shape(levels: list[float]) -> None:
    assert find_shape(column(levels)) is None
