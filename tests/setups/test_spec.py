"""Lines of JSON: the contract, what is refused, and what is assumed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.setup import Setup
from oomdoctor.setups.spec import RefusedSpec, Spec, setup_from_spec
from oomdoctor.setups.spec_lines import LONGEST_LINE, answer_lines
from oomdoctor.setups.strategy import layout_from_strategy


def ask(**given_: Any) -> dict[str, Any]:
    (answer,) = answer_lines([json.dumps(given_).encode()])
    found: dict[str, Any] = json.loads(answer)
    return found


def made(**given_: Any) -> Setup:
    found = setup_from_spec(Spec(**given_))
    assert not isinstance(found, RefusedSpec)
    return found[0]


@pytest.mark.parametrize(("key", "meant"), [
    pytest.param("seq_length", "did you mean seq_len", id="nearly a key"),
    pytest.param("zzz", "is not known and is ignored", id="like none"),
])  # fmt: skip
def test_a_key_that_is_not_known_is_named(key: str, meant: str) -> None:
    first = ask(model="Qwen/Qwen2.5-7B", **{key: 1})["assumptions"][0]
    assert key in first
    assert meant in first


def test_an_answer_has_the_keys_of_the_contract() -> None:
    answer = ask(id="a", model="Qwen/Qwen2.5-7B", task="train", method="lora", micro_batch=1, seq_len=2048, counter="max_allocated")
    assert set(answer) == {"id", "per_gpu_bytes", "terms", "assumptions", "refused"}
    assert answer["refused"] is None
    sizes = answer["per_gpu_bytes"]
    assert sizes["low"] <= sizes["expected"] <= sizes["high"]
    assert sum(answer["terms"].values()) == sizes["expected"]


@pytest.mark.parametrize("line", [
    pytest.param(b"no json", id="no JSON"),
    pytest.param(b"[1, 2]", id="no object"),
    pytest.param(b'{"micro_batch": "many"}', id="a wrong type"),
    pytest.param(b'{"id": 7, "model": "nobody/knows-this"}', id="an unknown model without a size"),
    pytest.param(b'{"model": "Qwen/Qwen2.5-7B", "task": "dance"}', id="another task"),
    pytest.param(b'{"model": "Qwen/Qwen2.5-7B", "seq_len": -4}', id="a length below 1"),
    pytest.param(b'{"model": "Qwen/Qwen2.5-7B", "micro_batch": 1000000001}', id="a batch above all measure"),
])  # fmt: skip
def test_what_cannot_be_answered_is_refused_with_a_reason(line: bytes) -> None:
    (answer,) = answer_lines([line])
    assert json.loads(answer)["refused"]


def test_empty_lines_are_no_questions() -> None:
    assert list(answer_lines([b"", b"  \n"])) == []


def test_behind_a_line_that_is_no_question_by_its_length_nothing_is_read() -> None:
    answers = list(answer_lines([b"{}", b" " * LONGEST_LINE, b"{}"]))
    assert len(answers) == 2
    assert "mebibyte" in json.loads(answers[1])["refused"]


def test_a_model_of_which_only_the_size_is_known_is_estimated_and_says_so() -> None:
    answer = ask(model="our/own-13b", params=13_000_000_000, task="infer", seq_len=128, counter="max_allocated")
    assert answer["per_gpu_bytes"]["expected"] == pytest.approx(26e9, rel=0.05)
    assert any("number of parameters" in text for text in answer["assumptions"])


@pytest.mark.parametrize(("written", "taken"), [
    pytest.param("hqq-int4", None, id="a format of the table"),
    pytest.param("exl9-int7", "bf16", id="one that nobody knows"),
    pytest.param("fp32 or bf16", None, id="either of two"),
])  # fmt: skip
def test_an_unknown_format_is_said(written: str, taken: str | None) -> None:
    said = ask(model="Qwen/Qwen2.5-7B", task="infer", seq_len=128, weights_dtype=written)["assumptions"]
    assert any("is not known" in text for text in said) == (taken is not None)
    assert taken is None or any(taken in text for text in said)


@pytest.mark.parametrize(("strategy", "batch"), [
    pytest.param("fsdp 8 + pp 4", 2, id="torchtitan cuts the batch of a rank into pieces"),
    pytest.param("megatron tp 2 + pp 4", 8, id="Megatron's micro batch is a piece"),
])  # fmt: skip
def test_what_a_pipeline_makes_of_a_batch(strategy: str, batch: int) -> None:
    made = setup_from_spec(
        Spec(model="Qwen/Qwen2.5-7B", strategy=strategy, gpus=32, micro_batch=8, seq_len=512, gradient_checkpointing=True)
    )
    assert not isinstance(made, RefusedSpec)
    assert made[0].batch == batch


@pytest.mark.parametrize(("strategy", "cards", "expected"), [
    pytest.param("single", 1, ("none", 0, 1, 1, 1), id="one card"),
    pytest.param("zero3", 8, ("deepspeed", 3, 1, 1, 1), id="ZeRO-3"),
    pytest.param("fsdp 32 + tp 8", 256, ("fsdp1", 3, 8, 1, 1), id="FSDP and tensor parallel"),
    pytest.param("fsdp2", 2, ("fsdp2", 3, 1, 1, 1), id="the second FSDP is no group of two"),
    pytest.param("fsdp 8 + tp 8 + pp 8 (interleaved 1F1B)", 512, ("fsdp1", 3, 8, 8, 1), id="three dimensions"),
    pytest.param("ddp + sequence parallel 4", 4, ("ddp", 0, 1, 1, 4), id="sequence parallel"),
    pytest.param("megatron tp 8 + pp 4", 64, ("deepspeed", 1, 8, 4, 1), id="Megatron's distributed optimizer shards like ZeRO-1"),
    pytest.param("nn.DataParallel", 4, ("dp", 0, 1, 1, 1), id="one process with copies"),
    pytest.param("DistributedDataParallel", 4, ("ddp", 0, 1, 1, 1), id="one process for each card"),
    pytest.param("", 2, ("ddp", 0, 1, 1, 1), id="several cards and no word: replicas"),
])  # fmt: skip
def test_a_strategy_is_a_layout(strategy: str, cards: int, expected: tuple[object, ...]) -> None:
    found = layout_from_strategy(strategy, cards)
    assert (found.engine, found.stage, found.tensor, found.pipeline, found.context) == expected


@pytest.mark.parametrize(("modules", "targets"), [
    pytest.param("q_proj,v_proj", "q v", id="names of transformers"),
    pytest.param("ALL linear", "q k v o gate up down", id="all"),
    pytest.param("c_attn,c_proj,w1,w2", "qkv o down gate up", id="names of Qwen's remote code"),
    pytest.param("q,v; trainable=1,572,864", "q v", id="with a count"),
])  # fmt: skip
def test_what_is_adapted(modules: str, targets: str) -> None:
    adapters = made(model="Qwen/Qwen-7B", method="lora", trainable_modules=modules).adapters
    assert adapters is not None
    assert adapters.targets == frozenset(targets.split())


def test_a_stated_count_is_used_as_it_is() -> None:
    adapters = made(model="Qwen/Qwen-7B", method="lora", trainable_modules="q,v; trainable=1,572,864").adapters
    assert adapters is not None
    assert adapters.count == 1_572_864


def test_adapters_that_match_the_tower_cost_its_activations() -> None:
    """A GLM-4V whose tower is adapted too takes tens of gibibytes more; where nobody names what the tower has, that is in the range."""
    asked = {"model": "zai-org/glm-4v-9b", "method": "lora", "micro_batch": 1, "seq_len": 2048, "counter": "max_allocated"}
    text, tower = (ask(**asked, trainable_modules=words)["per_gpu_bytes"] for words in (None, "query_key_value, vision too"))
    assert tower["expected"] - text["expected"] > 30 << 30
    assert text["high"] > tower["expected"] - (6 << 30)


@pytest.mark.parametrize(("offload", "offloaded"), [
    pytest.param("params+optimizer cpu", (True, True, False), id="both"),
    pytest.param("activations cpu", (False, False, True), id="activations"),
    pytest.param("cpu", (True, True, False), id="offload of whatever there is"),
    pytest.param("no", (False, False, False), id="none"),
])  # fmt: skip
def test_what_is_offloaded(offload: str, offloaded: tuple[bool, bool, bool]) -> None:
    found = made(model="Qwen/Qwen-7B", method="full", strategy="zero3", gpus=4, offload=offload)
    assert (found.offload_params, found.offload_optimizer, found.offload_activations) == offloaded


def test_a_fused_loss_and_the_logits_of_whole_prompts_are_sayable() -> None:
    trained = {"model": "Qwen/Qwen3-0.6B", "method": "full", "micro_batch": 8, "seq_len": 4096, "gradient_checkpointing": True}
    plain, fused = (ask(**trained, fused_loss=said)["per_gpu_bytes"]["expected"] for said in (None, True))
    assert plain - fused > 20 << 30
    served = {"model": "Qwen/Qwen2-7B", "task": "infer", "seq_len": 16384}
    last, whole = (ask(**served, prompt_logits=said)["per_gpu_bytes"]["expected"] for said in (None, True))
    assert whole - last > 3 << 30


def test_autocast_in_full_training_means_fp32_weights() -> None:
    assert made(model="Qwen/Qwen-7B", method="full", weights_dtype="bf16", compute_dtype="bf16 (autocast)").weights.name == "fp32"
    assert made(model="Qwen/Qwen-7B", method="full", weights_dtype="bf16", compute_dtype="bf16").weights.name == "bf16"


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(line: bytes) -> None:
    for answer in answer_lines([line]):
        assert "refused" in json.loads(answer)


@given(
    st.fixed_dictionaries(
        {"id": st.text(max_size=5)},
        optional={
            name: st.text(max_size=30)
            for name in (
                "model",
                "method",
                "strategy",
                "trainable_modules",
                "weights_dtype",
                "optimizer",
                "offload",
                "packing",
                "counter",
                "framework",
            )
        }
        | {name: st.integers(-5, 10**12) for name in ("params", "lora_rank", "gpus", "micro_batch", "grad_accum", "seq_len")},
    )
)
def test_any_words_and_numbers_are_answered(question: dict[str, Any]) -> None:
    answer = ask(**question)
    assert answer["id"] == question["id"]
    assert (answer["refused"] is None) == (answer["per_gpu_bytes"] is not None)


@pytest.mark.parametrize(("told", "each"), [
    pytest.param({}, 2.0, id="nothing said"),
    pytest.param({"kv_dtype": "q8_0"}, 34 / 32, id="keys and values in eight bits"),
    pytest.param({"kv_dtype": "q8_0", "value_dtype": "f16"}, (34 / 32 + 2) / 2, id="keys alone"),
    pytest.param({"kv_dtype": "q8_0", "framework": "transformers"}, 2.0, id="a type that others do not have"),
    pytest.param({"kv_dtype": "fp8", "framework": None}, 1.0, id="a server's type"),
])  # fmt: skip
def test_the_type_of_the_cache_is_sayable(told: dict[str, Any], each: float) -> None:
    assert made(**{"model": "Qwen/Qwen3-8B", "task": "infer", "framework": "llama.cpp", **told}).cache_bytes == each


def test_layers_and_experts_on_the_host_are_sayable() -> None:
    run = made(model="Qwen/Qwen3-30B-A3B", task="infer", framework="llama.cpp", gpu_layers=20, host_experts=99).ggml
    assert run is not None
    assert (run.layers, run.host_experts) == (20, 48.0)
