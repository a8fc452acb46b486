"""Bars made of characters: exactly as wide as asked, each part seen, and a mark that points where it should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.api.plan import plan
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.document import Bar, Bars, Mark, Slice, Style
from oomdoctor.report.memory.plan_answer import plan_document
from oomdoctor.report.render.bars import bar_fill, cells, pointer_line
from oomdoctor.report.wording.wording import Wording


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


@pytest.mark.parametrize(("model", "is_larger"), [("Qwen3-32B", True), ("Qwen2.5-7B", False)])
def test_plans_of_a_server_are_drawn_in_one_scale_with_the_end_of_a_card_that_is_too_small(model: str, is_larger: bool) -> None:
    document = plan_document(plan(model=model, gpu="L40S", serve=True), load_pack(), Wording("en"), "0")
    (chart,) = (block for block in document.blocks if isinstance(block, Bars))
    shares = [part.share for drawn in chart.bars for part in drawn.slices if part.label == "CUDA context and NCCL"]
    assert len(shares) == len(chart.bars) and max(shares) == min(shares)
    assert (chart.mark is not None and "44.4" in chart.mark.label and chart.mark.share < 1) == is_larger
