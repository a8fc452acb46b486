"""Memory as a log prints it: over steps where they are told, by rank, up to the failure; nothing where too little stands there."""

from __future__ import annotations

import pytest
from series.test_diagnose_series import OOM

import oomdoctor
from oomdoctor.series.printed import PrintedMemory, printed_memory
from oomdoctor.units import GIB, MIB


def printed(log: str) -> PrintedMemory | None:
    return printed_memory(oomdoctor.diagnose(log).case)


def steps(numbers: range, form: str = "step {at} | loss 1.2 | allocated {size:.2f} GiB | reserved {more:.2f} GiB") -> str:
    return "".join(form.format(at=at, size=9 + at / 100, more=10 + at / 100) + "\n" for at in numbers)


def ranks(count: int) -> str:
    line = "[Rank {rank}] (after {step} iterations) memory (MB) | allocated: {size} | max allocated: {size} | reserved: {size} | max reserved: {size}\n"
    return "".join(line.format(rank=rank, step=step, size=1000 + 10 * step + rank) for step in range(10, 80, 10) for rank in range(count))


def test_each_figure_is_a_curve_over_its_steps_up_to_the_failure() -> None:
    memory = printed(steps(range(10, 200, 10)) + OOM)
    assert memory is not None
    assert (memory.is_by_step, memory.failed_at, memory.total) == (True, 190.0, round(23.65 * GIB))
    assert [(curve.figure, curve.rank) for curve in memory.curves] == [("reserved_bytes", None), ("allocated_bytes", None)]
    assert memory.curves[1].points[0] == (10.0, round(9.1 * GIB))
    assert [at for at, _ in memory.curves[1].points] == [float(step) for step in range(10, 200, 10)]


def test_steps_that_begin_anew_make_lines_the_axis() -> None:
    memory = printed(steps(range(10, 60, 10)) + steps(range(10, 60, 10)) + OOM)
    assert memory is not None and not memory.is_by_step
    assert ([at for at, _ in memory.curves[0].points], memory.failed_at) == ([float(line) for line in range(1, 11)], 11.0)


def test_of_several_ranks_each_has_a_curve_and_the_failed_one_comes_first() -> None:
    memory = printed(ranks(12) + "[rank2]: " + OOM)
    assert memory is not None
    assert [curve.rank for curve in memory.curves] == [2, 11, 10, 9, 8, 7, 6, 5]
    assert {curve.figure for curve in memory.curves} == {"reserved_bytes"}
    assert memory.curves[0].points[0] == (10.0, 1102 * MIB)


@pytest.mark.parametrize("log", [
    pytest.param(OOM, id="no such lines"),
    pytest.param(steps(range(10, 40, 10)) + OOM, id="three lines"),
    pytest.param("".join(f"CPU Virtual Memory: used = {at}.5 GB, percent = 24.4%\n" for at in range(20)) + OOM, id="memory of the host"),
])  # fmt: skip
def test_too_little_or_another_memory_is_no_course(log: str) -> None:
    assert printed(log) is None


def test_a_long_course_is_seen_from_its_start_to_its_end() -> None:
    """Of thirty thousand lines a few hundred are read, at both ends and between."""
    memory = printed(steps(range(1, 30_000)) + OOM)
    assert memory is not None and memory.failed_at == 29_999.0
    places = [at for at, _ in memory.curves[0].points]
    assert len(places) < 2500
    assert (places[0], places[-1]) == (1.0, 29_999.0)
    assert max(after - before for before, after in zip(places, places[1:])) < 2000
