"""What can be changed in a run, and what cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_run, anything

from oomdoctor.case.plan import RISKS
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.planning.incompatible import incompatible
from oomdoctor.planning.options import is_general
from oomdoctor.planning.run_options import RunOption, batches, lengths, replicas, subjects


def changed(run: Setup, option: RunOption) -> Setup:
    setup = option.apply(run)
    assert setup is not None
    return setup


def offered(run: Setup) -> list[list[str]]:
    ways = (*subjects(run, (), anything), lengths(run, anything))
    return [[measure.fix for measure in option.measures] for options in ways for option in options]


def setting(run: Setup, fix: str) -> list[object]:
    """What the options of one fix would set, without the accumulation that goes along."""
    ways = subjects(run, (), anything)
    return [
        to
        for options in ways
        for option in options
        for measure in option.measures
        if measure.fix == fix
        for name, to in measure.sets
        if name != "accumulation"
    ]


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_smaller_batches_keep_the_samples_of_an_update_and_are_few(batch: int, accumulation: int) -> None:
    run = replace(a_run(), batch=batch, accumulation=accumulation)
    setups = [changed(run, option) for option in batches(run)]
    sizes = [setup.batch for setup in setups]
    assert len(sizes) < 100
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(0 < size < batch for size in sizes)
    assert {setup.batch * setup.accumulation for setup in setups} <= {batch * accumulation}
    assert batch == 1 or 1 in sizes


@pytest.mark.parametrize(("run", "there", "not_there"), [
    pytest.param(a_run(cards=4, finetuning="full", fsdp=True), [["sync-each-batch"]], [["zero2-zero3"]], id="FSDP can exchange gradients each time"),
    pytest.param(a_run(cards=4, finetuning="full", fsdp=True, syncs_gradients=True), [], [["sync-each-batch"]], id="and does already"),
    pytest.param(a_run(cards=4, finetuning="full", zero_stage=3), [], [["sync-each-batch"]], id="DeepSpeed always does"),
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
    pytest.param(a_run(cards=4, finetuning="full", sequence_length=8192), [["context-parallel"], ["tensor-parallel"], ["pipeline-parallel"]], [],
                 id="several cards can share a sample, the matrices or the layers"),
    pytest.param(a_run(cards=4, sequence_length=8192), [["context-parallel"]], [["tensor-parallel"], ["pipeline-parallel"]],
                 id="adapters are not split, samples are"),
    pytest.param(a_run(cards=1, sequence_length=8192), [], [["context-parallel"]], id="one card has nobody to share with"),
    pytest.param(a_run(cards=2, sequence_length=400), [], [["context-parallel"]], id="half of a short sample is too little for a card"),
    pytest.param(a_run(cards=4, sequence_length=8192, attention="eager"), [], [["context-parallel"]], id="eager attention wants whole samples"),
    pytest.param(a_run(cards=4, finetuning="full", zero_stage=3), [["smaller-zero-buffers"]], [["tensor-parallel"], ["paged-optimizer"]],
                 id="ZeRO-3 has large buffers, and its own way to page"),
    pytest.param(a_run(cards=4, finetuning="full", zero_stage=3, zero_live=1_000_000, zero_bucket=1_000_000), [], [["smaller-zero-buffers"]],
                 id="small buffers stay"),
    pytest.param(a_run(finetuning="full"), [["paged-optimizer"], ["factored-optimizer"], ["optimizer-in-backward"]], [],
                 id="one card has every optimizer"),
    pytest.param(a_run(finetuning="full", optimizer="adafactor"), [], [["optimizer-8bit-paged"], ["factored-optimizer"]], id="Adafactor stays"),
    pytest.param(a_run(cards=2, finetuning="full"), [], [["optimizer-in-backward"]], id="gradients of several cards meet before the update"),
    pytest.param(a_run(modules_to_save="embed_tokens,lm_head"), [["frozen-embeddings"]], [], id="copies of the embeddings can go"),
    pytest.param(a_run(), [], [["frozen-embeddings"]], id="where none are, none go"),
    pytest.param(a_run(cards=4), [["fsdp-full-shard", "offload-params"]], [], id="FSDP can be begun with the weights on the host"),
])  # fmt: skip
def test_what_is_offered(run: Setup, there: list[list[str]], not_there: list[list[str]]) -> None:
    names = offered(run)
    assert [name for name in there if name not in names] == []
    assert [name for name in not_there if name in names] == []


@pytest.mark.parametrize(("taken", "not_taken"), [
    pytest.param(replace(a_run(cards=4, fsdp=True), weights=known_format("nf4")), replace(a_run(cards=4, fsdp=True), weights=known_format("int8")),
                 id="four bits are sharded, eight are not"),
    pytest.param(a_run(load_bits=4), replace(a_run(finetuning="full"), weights=known_format("nf4")), id="packed weights carry adapters"),
    pytest.param(replace(a_run(load_bits=4, cards=4, fsdp=True), offload_params=True),
                 replace(a_run(load_bits=4, cards=4, zero_stage=3), offload_params=True), id="FSDP moves packed weights, DeepSpeed does not"),
    pytest.param(a_run(framework="torchtune", finetuning="full", optimizer_in_backward=True),
                 a_run(framework="torchtune", finetuning="full", optimizer_in_backward=True, accumulation=2), id="an update at once accumulates nothing"),
    pytest.param(a_run(cards=4, finetuning="full", optimizer="paged_adamw_32bit"),
                 a_run(cards=4, finetuning="full", optimizer="paged_adamw_32bit", zero_stage=2), id="DeepSpeed has states of its own"),
    pytest.param(a_run(cards=4, finetuning="full", tensor_parallel=2),
                 a_run(cards=4, finetuning="full", tensor_parallel=2, fused_cross_entropy=True), id="tensor parallel runs have no fused loss"),
    pytest.param(a_run(cards=4, finetuning="full", tensor_parallel=2),
                 a_run(cards=4, finetuning="full", tensor_parallel=2, optimizer="adamw_8bit"), id="nor states in 8 bit"),
    pytest.param(a_run(cards=4, tensor_parallel=2, context_parallel=2), a_run(cards=4, tensor_parallel=2, context_parallel=4),
                 id="groups divide the cards"),
    pytest.param(a_run(gradient_checkpointing=True, activation_offload=True), a_run(gradient_checkpointing=False, activation_offload=True),
                 id="what is offloaded are the inputs of checkpointed layers"),
])  # fmt: skip
def test_what_programs_refuse(taken: Setup, not_taken: Setup) -> None:
    assert not incompatible(taken)
    assert len(incompatible(not_taken)) == 1


def test_packed_weights_move_on_cards_with_bf16() -> None:
    moved = replace(a_run(load_bits=4, cards=4, fsdp=True), offload_params=True)
    assert not incompatible(moved, (8, 9))
    assert incompatible(moved, (6, 1))


@pytest.mark.parametrize(("run", "fix", "sizes"), [
    pytest.param(a_run(cards=8, sequence_length=32768), "context-parallel", [2, 4], id="no more cards than heads of keys"),
    pytest.param(a_run(cards=6, sequence_length=32768), "context-parallel", [2], id="all cards are in a group"),
    pytest.param(a_run(cards=8, sequence_length=32768, context_parallel=2), "context-parallel", [4], id="a group grows from what it is"),
    pytest.param(a_run(cards=8, finetuning="full"), "pipeline-parallel", [2, 4], id="stages have the same number of layers"),
    pytest.param(a_run(micro_batch=4, eval_strategy="steps", eval_batch=16), "evaluation", [4, 1], id="an evaluation as large as a step, or the least"),
    pytest.param(a_run(micro_batch=4, eval_strategy="steps", eval_batch=2), "evaluation", [1], id="a small one only becomes smaller"),
])  # fmt: skip
def test_the_sizes_that_are_offered(run: Setup, fix: str, sizes: list[int]) -> None:
    assert setting(run, fix) == sizes


@given(st.sampled_from([2, 4, 8, 16]), st.integers(1, 8), st.integers(1, 16))
def test_cards_that_share_their_samples_accumulate_more(cards: int, batch: int, accumulation: int) -> None:
    run = replace(a_run(cards=cards, sequence_length=32768, finetuning="full"), batch=batch, accumulation=accumulation)
    for option in (option for options in subjects(run, (), anything) for option in options if option.together > 1):
        made = changed(run, option)
        assert made.batch * made.accumulation * replicas(made) == batch * accumulation * cards


def test_an_evaluation_that_collects_hands_over_or_keeps_nothing() -> None:
    run = replace(a_run(eval_strategy="steps", eval_batch=8), eval_samples=1000)
    kept = [
        changed(run, option).eval_samples
        for options in subjects(run, (), anything)
        for option in options
        if "eval" in option.measures[0].fix
    ]
    assert kept == [32, None]


def test_what_needs_a_framework_that_has_it_is_not_general() -> None:
    assert {row["measure"] for row in table("measures") if not is_general(row["measure"])} == {
        "tensor-parallel", "context-parallel", "pipeline-parallel", "optimizer-in-backward", "distributed-optimizer",
    }  # fmt: skip


@pytest.mark.parametrize(("capability", "there"), [
    pytest.param((8, 0), True, id="Ampere"), pytest.param((7, 5), False, id="Turing"), pytest.param((), True, id="an unknown card"),
])  # fmt: skip
def test_sixteen_bit_weights_are_for_cards_with_bf16(capability: tuple[int, ...], there: bool) -> None:
    run = a_run(framework="llamafactory", finetuning="full")
    ways = subjects(run, capability, anything)
    assert any(measure.fix == "half-precision" for options in ways for option in options for measure in option.measures) is there


def test_every_measure_is_a_fix_with_a_risk_and_a_source() -> None:
    rows = table("measures")
    assert {row["risk"] for row in rows} <= set(RISKS)
    assert all(row["effort"].isdigit() and row["source"] for row in rows)
