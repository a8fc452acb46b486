"""Bars made of characters: exactly as wide as asked, each part seen, and a mark that points where it should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.report.document import Bar, Mark, Slice, Style
from oomdoctor.report.render.bars import bar_fill, cells, pointer_line


def bar(*weights: int) -> Bar:
    return Bar(title="a card", slices=tuple(Slice(f"part {at}", "", weight / sum(weights)) for at, weight in enumerate(weights)))


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=14), st.integers(14, 200))
def test_parts_fill_the_bar_and_none_is_unseen(weights: list[int], width: int) -> None:
    counts = cells(bar(*weights), width)
    assert sum(counts) == width
    assert min(counts) >= 1


def test_no_two_of_twelve_parts_look_alike_nor_like_what_is_free() -> None:
    free = Slice("free", "", 0.1, Style.GOOD)
    parts = bar(*range(1, 13)).slices
    assert len({bar_fill(part, at) for at, part in enumerate((*parts, free))}) == 13


@pytest.mark.parametrize(("share", "line"), [
    pytest.param(0.25, "     ▲ card: 24 GiB", id="name to the right"),
    pytest.param(0.9, "     card: 24 GiB ▲", id="name to the left, where the right has no room"),
    pytest.param(1.0, "      card: 24 GiB ▲", id="at the very end"),
    pytest.param(0.0, "▲ card: 24 GiB", id="at the start"),
])  # fmt: skip
def test_a_mark_points_at_its_place(share: float, line: str) -> None:
    mark = Mark(share, "card: 24 GiB")
    assert pointer_line(mark, 20, len(mark.label)) == line
