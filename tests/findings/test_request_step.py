"""The value of a setting with which a request fits: between what is in force and the least, rounded as people write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.advice.request_step import fitted_values, rows_that_change
from oomdoctor.advice.settings import number
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.request import FailingRequest, QuantityGrowth, SettingInForce
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.fix import ChangeName, SettingRecord
from oomdoctor.units import GIB, MIB

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
SIZES = ("micro_batch", "sequence_length", "max_model_len", "max_num_seqs", "max_batched_tokens")


def row(sets: str = "micro_batch", change: ChangeName = "divide", least: int | None = None, facts: tuple[str, ...] = ()) -> SettingRecord:
    return SettingRecord(framework="demo", key=sets, to="1", sets=sets, change=change, least=least, facts=list(facts), source="test")


def request(
    value: float,
    power: float = 1,
    size: int | None = None,
    missing: int | None = None,
    total: int | None = 40 * GIB,
    name: str = "micro_batch",
) -> FailingRequest:
    return FailingRequest(
        size=size, missing=missing, total=total,
        grows_with=(QuantityGrowth(quantity=name, title=Text("batch", "批"), power=power),),
        in_force=(SettingInForce(setting=name, value=value),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "value", "frees"),
    [
        pytest.param(request(8192), 4096, None, id="half where no size is known"),
        pytest.param(request(8, size=8 * GIB, missing=3 * GIB), 4, 4 * GIB, id="what fits where that is more than half"),
        pytest.param(request(8, size=64 * MIB, missing=60 * MIB), 4, 32 * MIB, id="one of many becomes half with the others"),
        pytest.param(request(8, size=8 * GIB, missing=8 * GIB), 4, 4 * GIB, id="nothing was free: half"),
        pytest.param(request(600, size=8 * GIB, missing=GIB), 448, None, id="middling lengths in steps of 64"),
        pytest.param(request(12, size=8 * GIB, missing=2 * GIB), 8, None, id="a number that is no power of two stays one"),
        pytest.param(request(8000, 2, 8 * GIB, 4 * GIB), 5632, None, id="a square needs less of a change"),
        pytest.param(request(20000, size=8 * GIB, missing=2 * GIB), 13312, None, id="long lengths in steps of 256"),
    ],
)
def test_the_fitted_value(asked: FailingRequest, value: float, frees: int | None) -> None:
    fitted = fitted_values([row()], asked, {})["micro_batch"]
    assert fitted.value == value
    assert frees is None or fitted.frees == frees


def test_a_request_alone_of_its_kind_must_fit_by_itself() -> None:
    asked = request(8, size=8 * GIB, missing=7 * GIB)
    assert fitted_values([row()], asked, {}, is_alone=True)["micro_batch"].value == 1
    assert fitted_values([row()], asked, {}, is_alone=False)["micro_batch"].value == 4


@pytest.mark.parametrize(
    ("setting", "asked", "facts"),
    [
        pytest.param(row(), request(1, size=GIB, missing=GIB), {}, id="one cannot become less"),
        pytest.param(row(least=32), request(32, size=GIB, missing=MIB), {}, id="nor the least that makes sense"),
        pytest.param(row("eval_batch"), request(8), {}, id="a setting with which it does not grow"),
        pytest.param(row(), request(8, power=-1), {}, id="a setting with which it falls"),
        pytest.param(row(change="at-least"), request(8), {}, id="a row that raises"),
        pytest.param(row(change="fitting", facts=("derived.x",)), request(8), {"derived.x": 3}, id="a value that the message leads to"),
    ],
)
def test_no_value(setting: SettingRecord, asked: FailingRequest, facts: dict[str, Fact]) -> None:
    assert fitted_values([setting], asked, facts) == {}


def test_what_the_message_says_goes_before_the_config() -> None:
    setting = SettingRecord(framework="demo", key="n", to="1", sets="micro_batch", change="divide", was="event.n", source="test")
    assert fitted_values([setting], request(256), {"event.n": 1024})["micro_batch"].value == 512


def test_rows_that_change_nothing_of_the_request_are_left_out() -> None:
    rows = [row("max_num_seqs"), row(), row("accumulation", "keep-batch")]
    assert [kept.sets for kept in rows_that_change(rows, request(8))] == ["micro_batch"]
    assert rows_that_change([row("max_num_seqs")], request(8)) == [row("max_num_seqs")]


@given(
    st.integers(2, 1 << 20), st.sampled_from([0.5, 1.0, 2.0]), st.integers(1, 1 << 40), st.floats(0.001, 1), st.integers(1, 64),
)  # fmt: skip
def test_a_value_lies_between_the_least_and_what_is_in_force(was: int, power: float, size: int, lacking: float, least: int) -> None:
    asked = request(was, power, size, max(1, int(size * lacking)))
    fitted = fitted_values([row(least=least)], asked, {}).get("micro_batch")
    if fitted is None:
        assert was <= least or was == 1
        return
    assert least <= fitted.value < was
    assert fitted.value == int(fitted.value)
    assert fitted.frees is not None
    assert 0 <= fitted.frees <= size


@pytest.mark.parametrize("log", sorted(CASES.glob("*/*.log")), ids=lambda path: path.parent.name)
def test_no_number_is_invented(log: Path) -> None:
    """A number for a setting that every run has follows from the value in force; a share has figures of the card beside it."""
    findings = diagnose_logs([str(log)], load_pack()).findings[:1]
    steps = [setting for finding in findings for fix in finding.fixes for setting in fix.settings if setting.sets in SIZES]
    assert [setting for setting in steps if number(setting.to) not in (None, 1) and setting.before is None] == []
    assert [setting for setting in steps if setting.direction is not None and setting.to] == []
