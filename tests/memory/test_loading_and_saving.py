"""Before and after training: what loading, saving and joining adapters take for a moment, on the card and on the host."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import known, lora, run, zero
from msgspec.structs import replace

from oomdoctor.case.setup import Layout
from oomdoctor.memory import loading, saving
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model import parameters
from oomdoctor.memory.phases import phases

WHOLE = 2 * parameters.total(known("Qwen/Qwen2.5-7B"))
FSDP = Layout(engine="fsdp2", cards=8, stage=3)


def test_a_matrix_is_on_the_card_in_16_bit_until_it_is_packed() -> None:
    result = loading.loading(run(weights="nf4"))
    assert result is not None
    assert result.bytes == 2 * 3584 * 18944


@pytest.mark.parametrize("weights", [pytest.param("bf16", id="16 bit"), pytest.param("gptq-int4", id="packed before")])
def test_what_is_not_changed_is_loaded_to_its_place(weights: str) -> None:
    assert loading.loading(run(weights=weights)) is None


def test_a_model_on_the_card_before_it_is_cut_can_be_there_as_a_whole() -> None:
    result = loading.loading(run(layout=FSDP))
    assert result is not None
    assert result.high == pytest.approx(WHOLE * 7 / 8, rel=1e-6)
    cut = loading.loading(run(layout=replace(FSDP, meta_init=True)))
    assert cut is not None
    assert cut.high < WHOLE / 4


@pytest.mark.parametrize(("layout", "copies"), [
    pytest.param(Layout(), 1, id="one process, one copy"),
    pytest.param(Layout(engine="ddp", cards=4), 4, id="each process reads the model"),
    pytest.param(Layout(engine="ddp", cards=64), 8, id="a machine has eight cards"),
    pytest.param(zero(2, 4), 4, id="ZeRO-2 too"),
    pytest.param(replace(FSDP, meta_init=True), 1, id="one process reads for all"),
    pytest.param(FSDP, 1, id="which is the default"),
    pytest.param(replace(FSDP, meta_init=False), 8, id="all read where that is off"),
])  # fmt: skip
def test_copies_in_host_memory_while_loading(layout: Layout, copies: int) -> None:
    assert estimate(run(layout=layout)).host_loading == copies * WHOLE


@pytest.mark.parametrize(
    "layout", [pytest.param(zero(3, 4), id="ZeRO-3"), pytest.param(Layout(engine="device_map", cards=2), id="device_map")]
)
def test_a_file_of_the_checkpoint_at_a_time(layout: Layout) -> None:
    assert estimate(run(layout=layout)).host_loading == 5_000_000_000


def test_a_small_model_is_one_file() -> None:
    small = run("Qwen/Qwen2.5-0.5B", layout=zero(3, 4))
    assert estimate(small).host_loading == 2 * parameters.total(small.shape)


def test_zero_3_gathers_one_module_and_the_host_has_them_all() -> None:
    setup = run(layout=zero(3, 8))
    result = saving.saving(setup)
    assert result is not None
    assert result.bytes == 2 * parameters.embedding(setup.shape)
    assert estimate(setup).host_saving == WHOLE


def test_a_whole_checkpoint_of_fsdp_has_the_states_too() -> None:
    setup = run(layout=FSDP)
    assert estimate(setup).host_saving == 3 * WHOLE
    assert [phase.name for phase in phases(setup)][-1] == "save"


@pytest.mark.parametrize("changes", [
    pytest.param({"layout": zero(3, 8), "saves_whole": False}, id="each card writes its piece"),
    pytest.param({"layout": zero(2, 8)}, id="each card has all weights"),
    pytest.param({"layout": Layout(engine="ddp", cards=8)}, id="DDP"),
])  # fmt: skip
def test_nothing_is_gathered(changes: dict[str, Any]) -> None:
    result = estimate(run(**changes))
    assert result.host_saving == 0
    assert "save" not in [phase.name for phase in result.phases]


def test_joining_adapters_takes_the_product_of_a_pair() -> None:
    setup = run(adapters=lora(), merges=True)
    result = saving.merging(setup)
    assert result is not None
    assert result.bytes == (4 + 2) * 3584 * 18944
    packed = saving.merging(run(adapters=lora(), merges=True, weights="nf4"))
    assert packed is not None
    assert packed.bytes > result.bytes


def test_nothing_is_joined_in_full_training_or_unasked() -> None:
    assert saving.merging(run(merges=True)) is None
    assert saving.merging(run(adapters=lora())) is None
