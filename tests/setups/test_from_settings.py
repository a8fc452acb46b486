"""A config's settings as a setup: what is said is used, what is not said is a named default."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.settings import RunSettings
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.memory.activations import kept, tokens
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model.parameters import total
from oomdoctor.memory.model.weights import reference, weights
from oomdoctor.memory.phases import phases
from oomdoctor.setups.from_log import sized_model, which_model
from oomdoctor.setups.from_settings import setup_from_settings

NAMES = (
    "micro_batch", "accumulation", "sequence_length", "packing", "precision", "load_bits", "finetuning", "lora_rank", "lora_targets", "modules_to_save",
    "gradient_checkpointing", "attention", "optimizer", "zero_stage", "offload_optimizer", "offload_params", "fsdp", "fsdp_version", "tensor_parallel",
    "eval_strategy", "eval_batch", "method", "max_model_len", "kv_cache_dtype", "syncs_gradients", "zero_file", "freeze_vision", "context_parallel",
)  # fmt: skip


def known() -> Shape:
    found = model_shape("Qwen/Qwen2.5-7B")
    assert found is not None
    return found


def made(framework: str | None = "transformers", cards: int = 1, **settings: Any) -> Setup:
    return setup_from_settings(RunSettings().with_values(settings), known(), framework, cards)[0]


LLAMA = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False}  # fmt: skip


@pytest.mark.parametrize(("changes", "params"), [
    pytest.param({}, 8_030_261_248, id="all sizes"),
    pytest.param({"vocab_size": None, "vocabulary_of": "meta-llama/Llama-3.1-8B"}, 8_030_261_248, id="the vocabulary by its tokenizer"),
    pytest.param({"vocab_size": None, "vocabulary_of": "nobody/knows"}, None, id="no vocabulary"),
    pytest.param({"num_attention_heads": None}, None, id="no heads"),
    pytest.param({"intermediate_size": None}, 8_030_261_248 - 3 * 32 * 4096 * (14336 - 10880), id="the width of the MLP that Megatron takes"),
])  # fmt: skip
def test_sizes_in_a_config_are_a_model(changes: dict[str, Any], params: int | None) -> None:
    sizes = {name: value for name, value in {**LLAMA, **changes}.items() if value is not None}
    settings = RunSettings(model_sizes=json.dumps(sizes))
    shape = sized_model(settings)
    assert (None if shape is None else total(shape)) == params
    assert ("but no" in which_model(settings)) == (params is None)


@pytest.mark.parametrize(("settings", "every", "together"), [
    pytest.param({"recompute_method": "uniform", "recompute_layers": 4}, 1, 4, id="in groups"),
    pytest.param({"recompute_method": "block", "recompute_layers": 7}, 4, 1, id="a quarter of them"),
    pytest.param({"recompute_method": "block", "recompute_layers": 7, "pipeline_parallel": 4}, 1, 1, id="all of those on a card"),
    pytest.param({"recompute_layers": 7}, 1, 1, id="no method"),
])  # fmt: skip
def test_layers_that_megatron_computes_again(settings: dict[str, Any], every: float, together: int) -> None:
    setup = made("megatron-lm", 4, gradient_checkpointing=True, **settings)
    assert (setup.checkpointing, setup.checkpointed_every, setup.checkpointed_together) == ("full", every, together)


def test_without_sequence_parallelism_each_card_has_norms_and_hidden_states_whole() -> None:
    """arXiv 2205.05198: s b h (10 + 24 / t) without, s b h (34 / t) with it, beside attention."""
    whole, divided = (kept(made("megatron-lm", 4, tensor_parallel=4, sequence_parallel=is_divided)).bytes for is_divided in (None, True))
    assert 1.3 < whole / divided < 2.5
    assert (
        kept(made("torchtitan", 4, tensor_parallel=4)).bytes == kept(made("torchtitan", 4, tensor_parallel=4, sequence_parallel=True)).bytes
    )


@pytest.mark.parametrize(("settings", "cards", "contradicts"), [
    pytest.param({"accumulation": 2}, 8, False, id="micro batch, accumulation and cards make it"),
    pytest.param({"accumulation": 2}, 4, True, id="they make half of it"),
    pytest.param({"accumulation": 2, "world_size": 8}, 4, False, id="with the cards of the files they do"),
    pytest.param({}, 4, False, id="some accumulation makes it"),
    pytest.param({}, 3, True, id="none does"),
    pytest.param({"accumulation": 2, "zero_stage": None}, 4, False, id="nobody compares them without DeepSpeed"),
])  # fmt: skip
def test_a_batch_that_is_stated_twice(settings: dict[str, Any], cards: int, contradicts: bool) -> None:
    told = {"zero_stage": 2, "global_batch": 64, "micro_batch": 4, **settings}
    found = setup_from_settings(RunSettings().with_values(told), known(), "deepspeed", cards)[1]
    assert ("global_batch" in {assumption.id for assumption in found}) == contradicts


@pytest.mark.parametrize(("settings", "cards", "accumulation"), [
    pytest.param({"global_batch": 64, "micro_batch": 2}, 4, 8, id="what is left for each card"),
    pytest.param({"global_batch": 64, "micro_batch": 2, "tensor_parallel": 2, "context_parallel": 2}, 8, 16, id="groups of cards have samples of their own"),
    pytest.param({"global_batch": 64, "micro_batch": 2, "accumulation": 3}, 4, 3, id="it is told"),
    pytest.param({"global_batch": 4, "micro_batch": 2}, 8, 1, id="too few samples"),
    pytest.param({"global_batch": 64}, 4, 1, id="no micro batch"),
])  # fmt: skip
def test_micro_batches_of_an_update(settings: dict[str, Any], cards: int, accumulation: int) -> None:
    assert made("megatron-lm", cards, **settings).accumulation == accumulation


@pytest.mark.parametrize(("settings", "attribute", "value"), [
    pytest.param({"micro_batch": 2}, "batch", 2, id="the batch"),
    pytest.param({}, "batch", 8, id="the default batch of transformers"),
    pytest.param({"gradient_checkpointing": True}, "checkpointing", "full", id="checkpointing"),
    pytest.param({}, "checkpointing", "none", id="no checkpointing by default"),
    pytest.param({"offload_optimizer": "cpu"}, "offload_optimizer", True, id="offload"),
    pytest.param({"offload_optimizer": "none"}, "offload_optimizer", False, id="offload to nothing"),
    pytest.param({"eval_strategy": "steps"}, "eval_batch", 8, id="the default evaluation batch"),
    pytest.param({"eval_strategy": "no"}, "eval_batch", None, id="no evaluation"),
    pytest.param({"method": "serve", "max_model_len": 32768}, "length", 32768, id="the length that a server promises"),
])  # fmt: skip
def test_a_setting_is_used(settings: dict[str, Any], attribute: str, value: object) -> None:
    assert getattr(made(**settings), attribute) == value


@pytest.mark.parametrize(("settings", "name"), [
    pytest.param({"finetuning": "full", "precision": "bf16"}, "bf16", id="a Trainer keeps the type in which the model was loaded"),
    pytest.param({"finetuning": "full", "precision": "bf16", "fsdp": True}, "fp32", id="which accelerate widens for FSDP"),
    pytest.param({"finetuning": "full", "precision": "bf16", "weights": "fp32"}, "fp32", id="or the type that the config gives"),
    pytest.param({"finetuning": "full", "precision": "bf16", "zero_stage": 3}, "bf16", id="DeepSpeed keeps 16-bit weights and a master copy"),
    pytest.param({"finetuning": "lora", "precision": "bf16"}, "bf16", id="a frozen base in 16 bit"),
    pytest.param({"finetuning": "lora", "load_bits": 4}, "nf4", id="four bits"),
    pytest.param({"finetuning": "qlora"}, "nf4", id="QLoRA without a number"),
])  # fmt: skip
def test_the_format_of_the_weights(settings: dict[str, Any], name: str) -> None:
    assert made(**settings).weights.name == name


@pytest.mark.parametrize(("method", "finetuning", "sequences", "copies"), [
    pytest.param("sft", "full", 1, 0, id="nothing is compared"),
    pytest.param("dpo", "full", 2, 1, id="pairs, and a second model"),
    pytest.param("dpo", "lora", 2, 0, id="with adapters the base is the second model"),
    pytest.param("simpo", "full", 2, 0, id="pairs alone"),
    pytest.param("kto", "full", 1, 1, id="a second model alone"),
])  # fmt: skip
def test_answers_are_compared(method: str, finetuning: str, sequences: int, copies: int) -> None:
    settings = RunSettings(method=method, finetuning=finetuning, micro_batch=2, sequence_length=512)
    found, _ = setup_from_settings(settings, known(), "llamafactory", 1)
    assert tokens(found) == 2 * sequences * 512
    beside = reference(found)
    assert (0 if beside is None else beside.bytes) == copies * weights(found).bytes / 2  # what is trained is fp32, what is not 16 bit
    assert any(one.name == "reference" for phase in phases(found) for one in phase.terms) == bool(copies)


def test_what_the_arithmetic_has_not_is_said() -> None:
    said = {one.id for one in setup_from_settings(RunSettings(method="grpo"), known(), "ms-swift", 1)[1]}
    assert "rollouts" in said
    assert "rollouts" not in {one.id for one in setup_from_settings(RunSettings(method="sft"), known(), "ms-swift", 1)[1]}


@pytest.mark.parametrize(("settings", "framework", "trained"), [
    pytest.param({}, "llamafactory", False, id="LLaMA-Factory freezes towers"),
    pytest.param({"freeze_vision": False}, "llamafactory", True, id="unless told otherwise"),
    pytest.param({}, "transformers", None, id="a plain script may do either"),
])  # fmt: skip
def test_a_tower(settings: dict[str, Any], framework: str, trained: bool | None) -> None:
    assert setup_from_settings(RunSettings().with_values(settings), known(), framework, 1)[0].tower_trained is trained


@pytest.mark.parametrize(("model", "targets", "trained"), [
    pytest.param("zai-org/glm-4v-9b", "['query_key_value']", True, id="a name that the tower has too"),
    pytest.param("zai-org/glm-4v-9b", "dense_h_to_4h", True, id="another one"),
    pytest.param("llava-hf/llava-1.5-7b-hf", "q_proj,v_proj", True, id="CLIP names its matrices like the text"),
    pytest.param("Qwen/Qwen2-VL-7B-Instruct", "q_proj,v_proj", False, id="a tower with names of its own"),
    pytest.param("Qwen/Qwen2-VL-7B-Instruct", "all-linear", True, id="everything"),
    pytest.param("Qwen/Qwen2-VL-7B-Instruct", "", None, id="no targets are said"),
])  # fmt: skip
def test_targets_that_match_a_tower(model: str, targets: str, trained: bool | None) -> None:
    found = model_shape(model)
    assert found is not None
    assert setup_from_settings(RunSettings(finetuning="lora", lora_targets=targets), found, "transformers", 1)[0].tower_trained is trained


@pytest.mark.parametrize(("settings", "stage", "said"), [
    pytest.param({"zero_file": "ds_z3.json", "zero_stage": 3}, 3, True, id="a file whose name has the stage"),
    pytest.param({"zero_file": "own.json"}, 2, True, id="a file whose name says nothing"),
    pytest.param({"zero_stage": 1}, 1, False, id="a file at hand"),
])  # fmt: skip
def test_a_deepspeed_file_that_is_not_at_hand(settings: dict[str, Any], stage: int, said: bool) -> None:
    found, assumptions = setup_from_settings(RunSettings().with_values(settings), known(), "llamafactory", 4)
    assert (found.layout.engine, found.layout.stage) == ("deepspeed", stage)
    assert ("zero_stage" in {one.id for one in assumptions}) == said


def test_llamafactory_checkpoints_by_default() -> None:
    assert made("llamafactory").checkpointing == "full"


def test_what_is_not_said_is_asked() -> None:
    known = model_shape("Qwen/Qwen2.5-7B")
    assert known is not None
    asked = {one.id for one in setup_from_settings(RunSettings(), known, None, 1)[1] if one.is_question}
    assert asked == {"finetuning", "micro_batch", "sequence_length", "gradient_checkpointing", "optimizer", "weights"}


@pytest.mark.parametrize(("framework", "settings", "rank", "said"), [
    pytest.param("llamafactory", {}, 8, "LoRA of rank 8, the LLaMA-Factory 0.9.5 default", id="LLaMA-Factory trains adapters"),
    pytest.param("ms-swift", {"lora_rank": 64}, 64, "LoRA of rank 64, the ms-swift 4.6.0 default", id="ms-swift trains adapters"),
    pytest.param("transformers", {}, None, "all weights are trained", id="a Trainer trains everything"),
    pytest.param(None, {}, None, "all weights are trained", id="nobody knows"),
    pytest.param("llamafactory", {"finetuning": "full"}, None, None, id="it is said"),
])  # fmt: skip
def test_what_is_trained_where_nothing_is_said(framework: str | None, settings: dict[str, Any], rank: int | None, said: str | None) -> None:
    found, assumptions = setup_from_settings(RunSettings().with_values(settings), known(), framework, 1)
    assert (found.adapters.rank if found.adapters else None) == rank
    assert next((one.text.en for one in assumptions if one.id == "finetuning"), None) == said


@given(
    st.dictionaries(st.sampled_from(NAMES), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)),
    st.integers(1, 64),
)
def test_no_setting_breaks_the_arithmetic(settings: dict[str, Any], cards: int) -> None:
    found = estimate(made(cards=cards, **settings))
    assert 0 < found.expected <= found.high


@pytest.mark.parametrize(("settings", "attribute", "value"), [
    pytest.param({"zero_stage": 2, "zero_bucket": 200_000_000}, "bucket", 200_000_000, id="a bucket by its number"),
    pytest.param({"zero_stage": 2, "zero_bucket": 5e8}, "bucket", 500_000_000, id="a bucket in scientific notation"),
    pytest.param({"zero_stage": 2, "zero_bucket_auto": True}, "bucket", 3584**2, id="a bucket that is sized by the model"),
    pytest.param({"zero_stage": 2}, "bucket", 500_000_000, id="a file without a word of it: DeepSpeed's default"),
    pytest.param({"zero_stage": 2, "zero_file": "mine.json"}, "bucket", None, id="a file that is not available"),
    pytest.param({"zero_bucket": 5e8}, "bucket", None, id="no DeepSpeed"),
    pytest.param({"zero_stage": 2}, "overlaps", False, id="stage 2 overlaps where the file says so"),
    pytest.param({"zero_stage": 3}, "overlaps", True, id="stage 3 unless the file says not"),
    pytest.param({"zero_stage": 2, "zero_file": "mine.json"}, "overlaps", None, id="nobody knows of a file that is not available"),
    pytest.param({"zero_stage": 2, "zero_overlap": False}, "overlaps", False, id="no overlap"),
    pytest.param({"zero_stage": 3, "zero_live": 1e8}, "live", 100_000_000, id="live parameters"),
    pytest.param({"fsdp": True, "fsdp_meta_init": False}, "meta_init", False, id="every process reads the model"),
])  # fmt: skip
def test_buffers_by_their_config(settings: dict[str, Any], attribute: str, value: object) -> None:
    assert getattr(made(cards=4, **settings).layout, attribute) == value


@pytest.mark.parametrize(("settings", "whole"), [
    pytest.param({"zero_saves_whole": True}, True, id="ZeRO-3 gathers"),
    pytest.param({"fsdp_state_dict": "FULL_STATE_DICT"}, True, id="FSDP gathers"),
    pytest.param({"fsdp_state_dict": "SHARDED_STATE_DICT"}, False, id="each card writes its piece"),
    pytest.param({}, None, id="nobody says"),
])  # fmt: skip
def test_how_a_checkpoint_is_written(settings: dict[str, Any], whole: bool | None) -> None:
    assert made(cards=4, **settings).saves_whole is whole


def test_adapters_are_joined_where_that_is_asked() -> None:
    assert made("ms-swift", merge_adapters=True, finetuning="lora").merges
    assert not made("ms-swift", finetuning="lora").merges


@pytest.mark.parametrize(("framework", "length", "said"), [
    pytest.param("axolotl", 512, "512 tokens per sample, the Axolotl 0.21.0 default", id="a framework with a default"),
    pytest.param("ms-swift", 2048, "2048 tokens per sample", id="a framework that asks the model"),
])  # fmt: skip
def test_the_length_where_nothing_is_said(framework: str, length: int, said: str) -> None:
    found, assumptions = setup_from_settings(RunSettings(), known(), framework, 1)
    assert (found.length, next(one.text.en for one in assumptions if one.id == "sequence_length")) == (length, said)


@pytest.mark.parametrize(("settings", "said"), [
    pytest.param({"zero_file": "ds_z2_config.json", "zero_stage": 2}, "ZeRO stage 2, as in the ds_z2_config.json shipped by LLaMA-Factory",
                 id="a file that is shipped"),
    pytest.param({"zero_file": "zero2.json", "zero_stage": 2, "offload_optimizer": "cpu"},
                 "ZeRO stage 2 with the optimizer on the host, as in the zero2.json shipped by Axolotl", id="what it offloads"),
    pytest.param({"zero_file": "own_z2.json", "zero_stage": 2}, "ZeRO stage 2: own_z2.json is not available", id="a file of one's own"),
])  # fmt: skip
def test_a_deepspeed_file_that_is_shipped_is_taken_as_it_is(settings: dict[str, Any], said: str) -> None:
    _, assumptions = setup_from_settings(RunSettings().with_values(settings), known(), "llamafactory", 4)
    assert next(one.text.en for one in assumptions if one.id == "zero_stage") == said


def mixture(
    framework: str | None, version: str | None = None, model: str = "Qwen/Qwen3-30B-A3B", **settings: Any
) -> tuple[Setup, set[str]]:
    shape = model_shape(model)
    assert shape is not None
    told = RunSettings().with_values({"finetuning": "qlora", **settings})
    setup, assumptions = setup_from_settings(told, shape, framework, 1, {framework: version} if framework and version else {})
    return setup, {assumption.id for assumption in assumptions}


@pytest.mark.parametrize(("framework", "version", "settings", "width", "is_assumed"), [
    pytest.param("llamafactory", None, {}, 2, True, id="bitsandbytes leaves out what Transformers 5 has in one parameter"),
    pytest.param("transformers", None, {}, 4, True, id="which peft's preparation makes fp32"),
    pytest.param("transformers", "4.57.6", {}, 0.5625, False, id="Transformers 4 has linear layers"),
    pytest.param("llamafactory", "0.9.4", {}, 0.5625, False, id="a version that needs Transformers 4"),
    pytest.param("ms-swift", "3.12.6", {}, 0.5625, False, id="another one"),
    pytest.param("ms-swift", "4.6.0", {"load_bits": 8, "finetuning": "lora"}, 2, True, id="in 8 bit as in 4"),
    pytest.param("unsloth", None, {}, 0.5625, False, id="a program that packs them itself"),
    pytest.param("axolotl", None, {}, 2, True, id="one that does so when it is told"),
    pytest.param("axolotl", None, {"packs_experts": True}, 0.5625, False, id="and is told"),
    pytest.param("llamafactory", None, {"weight_format": "nf4"}, 0.5625, False, id="somebody says in what format the weights lie"),
    pytest.param(None, None, {}, 0.5625, True, id="nobody knows the program"),
    pytest.param("llamafactory", None, {"finetuning": "lora"}, 2, False, id="nothing is packed"),
    pytest.param("llamafactory", None, {"weight_format": "gptq-int4"}, 0.5195, False, id="a checkpoint that is packed already"),
])  # fmt: skip
def test_routed_experts_are_packed_where_the_program_does_it(
    framework: str | None, version: str | None, settings: dict[str, Any], width: float, is_assumed: bool
) -> None:
    setup, assumed = mixture(framework, version, **settings)
    each = weights(setup).bytes / total(setup.shape)
    assert each == pytest.approx(width, rel=0.15)
    assert ("experts" in assumed) == is_assumed


def test_a_known_release_of_transformers_decides_about_experts() -> None:
    shape = model_shape("Qwen/Qwen3-30B-A3B")
    assert shape is not None
    settings = RunSettings().with_values({"finetuning": "qlora"})
    found = [setup_from_settings(settings, shape, "llamafactory", 1, {"transformers": version})[0] for version in ("4.57.1", "5.6.0")]
    assert [setup.stack.wide_experts for setup in found] == [False, True]


def test_a_model_without_experts_leaves_none_out() -> None:
    assert "experts" not in mixture("llamafactory", model="Qwen/Qwen3-8B")[1]
