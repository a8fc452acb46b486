"""What can be changed in a run, and what cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_run

from oomdoctor.case.estimate import Setup
from oomdoctor.knowledge.memory_tables import known_format
from oomdoctor.knowledge.tables import table
from oomdoctor.planning.options import RISKS, batches, is_possible, subjects
from oomdoctor.planning.search import anything


def offered(run: Setup) -> list[list[str]]:
    ways = subjects(run, (), anything, last_resort=True)
    return [[measure.fix for measure in option.measures] for options in ways for option in options]


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_smaller_batches_keep_the_samples_of_an_update_and_are_few(batch: int, accumulation: int) -> None:
    found = batches(replace(a_run(), batch=batch, accumulation=accumulation))
    sizes = [option.fields["batch"] for option in found]
    assert len(sizes) < 100
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(0 < option.fields["batch"] < batch for option in found)
    assert {option.fields["batch"] * option.fields["accumulation"] for option in found} <= {batch * accumulation}
    assert batch == 1 or 1 in sizes


@pytest.mark.parametrize(("run", "there", "not_there"), [
    pytest.param(a_run(cards=1), [["quantise-4bit-8bit"]], [["zero2-zero3"], ["fsdp-full-shard"]], id="one card is not sharded"),
    pytest.param(a_run(cards=4), [["zero2-zero3"], ["fsdp-full-shard"]], [["lora-rank-targets"]], id="several cards are, and LoRA is LoRA already"),
    pytest.param(a_run(cards=4, zero_stage=3), [["offload-optimizer"]], [["zero2-zero3"], ["fsdp-full-shard"]], id="what is sharded stays so"),
    pytest.param(a_run(cards=4, fsdp=True), [["offload-params"]], [["zero2-zero3"]], id="FSDP can offload, and is not mixed with ZeRO"),
    pytest.param(a_run(gradient_checkpointing=True), [["activation-offload"]], [["gradient-checkpointing"]], id="checkpointing is on"),
    pytest.param(a_run(load_bits=8), [["quantise-4bit-8bit"]], [], id="eight bits become four"),
    pytest.param(a_run(load_bits=4), [], [["quantise-4bit-8bit"]], id="four bits stay four"),
    pytest.param(a_run(finetuning="full"), [["lora-rank-targets"], ["lora-rank-targets", "quantise-4bit-8bit"]], [["quantise-4bit-8bit"]],
                 id="a model that is trained itself is not packed"),
    pytest.param(a_run(sequence_length=400), [], [["shorter-sequences"]], id="short samples are not cut"),
    pytest.param(a_run(method="serve", cards=2, max_model_len=8192), [["tensor-parallel"], ["serving-memory"]], [["gradient-checkpointing"]],
                 id="a server is not trained"),
])  # fmt: skip
def test_what_is_offered(run: Setup, there: list[list[str]], not_there: list[list[str]]) -> None:
    found = offered(run)
    assert [one for one in there if one not in found] == []
    assert [one for one in not_there if one in found] == []


def test_what_programs_refuse_is_not_possible() -> None:
    packed = replace(a_run(cards=4, fsdp=True), weights=known_format("int8"))
    assert not is_possible(packed)
    assert is_possible(replace(packed, weights=known_format("nf4")))
    assert not is_possible(replace(a_run(load_bits=4), offload_params=True))
    assert not is_possible(replace(a_run(finetuning="full"), weights=known_format("nf4")))


def test_every_measure_is_a_fix_with_a_risk_and_a_source() -> None:
    rows = table("measures")
    assert {row["risk"] for row in rows} <= set(RISKS)
    assert all(row["effort"].isdigit() and row["source"] for row in rows)
