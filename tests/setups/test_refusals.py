"""What programs refuse before they start: the message that comes, and nothing for settings that they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oomdoctor
from oomdoctor.api.refusals import run_refusals
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.knowledge.tables.shapes import model_shape

HEADS = {
    "vllm": "Total number of attention heads ({}) must be divisible by tensor parallel size ({})",
    "sglang": "total_num_heads % attn_tp_size",
    "text-generation-inference": "`num_heads`: {} and `num_shards`: {}",
    "tensorrt-llm": "num_attention_heads must be divisible by tp_size",
    "megatron-lm": "num_attention_heads ({}) must be a multiple of tensor_model_parallel_size ({})",
}
MODELS = {"Qwen/Qwen3-14B": 40, "Qwen/Qwen2.5-7B": 28, "meta-llama/Llama-3.1-8B": 32, "Qwen/Qwen3-32B": 64}
ODD = {"Qwen/Qwen3-14B": 3, "Qwen/Qwen2.5-7B": 8, "meta-llama/Llama-3.1-8B": 6, "Qwen/Qwen3-32B": 12}
EVEN = {"Qwen/Qwen3-14B": 4, "Qwen/Qwen2.5-7B": 4, "meta-llama/Llama-3.1-8B": 8, "Qwen/Qwen3-32B": 8}
TRAINERS = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl", "torchtune", "torchtitan", "megatron-lm")
SERVED = {"method": "serve"}


def said(
    framework: str, model: str, settings: dict[str, Any], gpus: int | None = None, gpu: str | None = None
) -> tuple[StartupRefusal, ...]:
    shape = model_shape(model)
    assert shape is not None
    card = None if gpu is None else card_named(gpu)
    return run_refusals(RunSettings().with_values(settings), shape, framework, model, gpus, card, load_pack())


OTHERS: dict[str, tuple[str, str, dict[str, Any], int | None, str | None, str | None, dict[str, Any]]] = {
    # framework, model, settings, cards, card, what the message has, what makes them good.
    "a length above the model's in vLLM": ("vllm", "Qwen/Qwen3-14B", {**SERVED, "max_model_len": 65536}, 1, None, "max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=40960", {"max_model_len": 40960}),
    "one token too many in vLLM": ("vllm", "meta-llama/Llama-3.1-8B", {**SERVED, "max_model_len": 131073}, 1, None, "(131073) is greater", {"max_model_len": 131072}),
    "a length above the model's in SGLang": ("sglang", "Qwen/Qwen3-32B", {**SERVED, "max_model_len": 131072}, 1, None, "context_length (131072) is greater than the derived context_length (40960)", {"max_model_len": 32768}),
    "more cards than there are in vLLM": ("vllm", "Qwen/Qwen3-32B", {**SERVED, "tensor_parallel": 8}, 4, None, "World size (8) is larger than the number of available GPUs (4)", {"tensor_parallel": 4}),
    "tensor and pipeline parallel on too few cards": ("vllm", "Qwen/Qwen3-32B", {**SERVED, "tensor_parallel": 4, "pipeline_parallel": 2}, 4, None, "World size (8)", {"pipeline_parallel": 1}),
    "copies on too few cards": ("vllm", "Qwen/Qwen3-32B", {**SERVED, "tensor_parallel": 2, "data_parallel": 4}, 4, None, "World size (8)", {"data_parallel": 2}),
    "more cards than there are in SGLang": ("sglang", "Qwen/Qwen3-32B", {**SERVED, "tensor_parallel": 8}, 4, None, "invalid device ordinal", {"tensor_parallel": 4}),
    "key and value heads that neither divide nor copy": ("vllm", "Qwen/Qwen2.5-7B", {**SERVED, "tensor_parallel": 7}, 7, None, "total_num_kv_heads", {"tensor_parallel": 4}),
    "the same in SGLang": ("sglang", "Qwen/Qwen2.5-7B", {**SERVED, "tensor_parallel": 14}, 14, None, "total_num_kv_heads", {"tensor_parallel": 2}),
    "query groups of Megatron": ("megatron-lm", "Qwen/Qwen2.5-7B", {"tensor_parallel": 7, "world_size": 7}, 7, None, "num_query_groups (4) must be a multiple or divisor of tensor_model_parallel_size (7)", {"tensor_parallel": 1}),
    "a step below the requests": ("vllm", "Qwen/Qwen3-14B", {**SERVED, "max_batched_tokens": 128, "max_num_seqs": 256}, 1, None, "max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256)", {"max_batched_tokens": 256}),
    "a step below the length without chunks": ("vllm", "Qwen/Qwen3-14B", {**SERVED, "max_batched_tokens": 2048, "max_model_len": 8192, "chunked_prefill": False}, 1, None, "max_num_batched_tokens (2048) is smaller than max_model_len (8192)", {"chunked_prefill": True}),
    "AWQ on a V100": ("vllm", "Qwen/Qwen2.5-7B", {**SERVED, "quantization": "awq"}, 1, "V100-32GB", "The quantization method awq is not supported for the current GPU", {"quantization": "gptq"}),
    "FP8 on a V100": ("vllm", "Qwen/Qwen2.5-7B", {**SERVED, "quantization": "fp8"}, 1, "V100-32GB", "The quantization method fp8 is not supported for the current GPU", {"quantization": None}),
    "bf16 on a T4": ("vllm", "Qwen/Qwen2.5-7B", {**SERVED, "precision": "bf16"}, 1, "T4", "Bfloat16 is only supported on GPUs with compute capability of at least 8.0", {"precision": "fp16"}),
    "bf16 on a V100": ("vllm", "Qwen/Qwen2.5-7B", {**SERVED, "precision": "bf16"}, 1, "V100-16GB", "has compute capability 7.0", {"precision": None}),
    "processes that no groups are made of": ("megatron-lm", "meta-llama/Llama-3.1-8B", {"tensor_parallel": 4, "pipeline_parallel": 2, "world_size": 12}, None, None, "world_size (12) is not divisible by 8", {"world_size": 16}),
    "context parallel that leaves a rest": ("megatron-lm", "meta-llama/Llama-3.1-8B", {"context_parallel": 4, "world_size": 6}, None, None, "world_size (6) is not divisible by 4", {"world_size": 8}),
    "layers that stages do not divide": ("megatron-lm", "Qwen/Qwen2.5-7B", {"pipeline_parallel": 8, "world_size": 8}, None, None, "num_layers: 28", {"pipeline_parallel": 4}),
    "experts that cards do not divide": ("megatron-lm", "Qwen/Qwen3-30B-A3B", {"expert_parallel": 3, "world_size": 6}, None, None, "num_moe_experts % ep_size", {"expert_parallel": 2}),
    "samples of an update in Megatron": ("megatron-lm", "meta-llama/Llama-3.1-8B", {"global_batch": 100, "micro_batch": 3, "world_size": 8, "tensor_parallel": 4}, None, None, "global batch size (100) is not divisible by micro batch size (3) times data parallel size (2)", {"global_batch": 96}),
    "train_batch_size of DeepSpeed": ("deepspeed", "meta-llama/Llama-3.1-8B", {"zero_stage": 2, "global_batch": 32, "micro_batch": 4, "accumulation": 2, "world_size": 8}, None, None, "32 != 4 * 2 * 8", {"global_batch": 64}),
    "train_batch_size beside a Trainer": ("transformers", "meta-llama/Llama-3.1-8B", {"zero_stage": 3, "global_batch": 32, "micro_batch": 4, "accumulation": 2, "world_size": 8}, None, None, "train_batch_size=32 vs hf train_batch_size (calculated)=64", {"accumulation": 1}),
    "train_batch_size beside LLaMA-Factory": ("llamafactory", "meta-llama/Llama-3.1-8B", {"zero_stage": 2, "global_batch": 16, "micro_batch": 1, "accumulation": 4, "world_size": 8}, None, None, "calculated)=32", {"global_batch": 32}),
    "packed weights that are trained whole": ("llamafactory", "Qwen/Qwen3-14B", {"finetuning": "full", "load_bits": 4}, None, None, "Quantization is only compatible with the LoRA or OFT method", {"finetuning": "lora"}),
    "packed weights that are frozen in part": ("llamafactory", "Qwen/Qwen3-14B", {"finetuning": "freeze", "load_bits": 8}, None, None, "Quantization is only compatible", {"load_bits": None}),
    "a rank without a card of a Trainer on eight": ("accelerate", "Qwen/Qwen3-14B", {"world_size": 8}, 4, None, "invalid device ordinal", {"world_size": 4}),
    "two nodes have cards for all": ("deepspeed", "Qwen/Qwen3-14B", {"world_size": 16}, 8, None, "invalid device ordinal", {"nodes": 2}),
    "copies of the attention share its cards": ("sglang", "Qwen/Qwen3-14B", {**SERVED, "tensor_parallel": 6}, 6, None, "attn_tp_size", {"attention_copies": 3, "splits_attention": True}),
    "a length that --length gives": ("vllm", "Qwen/Qwen3-32B", {**SERVED, "sequence_length": 50_000}, 1, None, "(50000) is greater", {"sequence_length": 40_000}),
    "three cards of Llama in TGI": ("text-generation-inference", "meta-llama/Llama-3.1-8B", {**SERVED, "tensor_parallel": 3}, 4, None, "`num_heads`: 32 and `num_shards`: 3", {"tensor_parallel": 2}),
    "five cards of Llama in TensorRT-LLM": ("tensorrt-llm", "meta-llama/Llama-3.1-8B", {**SERVED, "tensor_parallel": 5}, 8, None, "num_attention_heads must be divisible by tp_size", {"tensor_parallel": 4}),
}  # fmt: skip


def cases() -> list[Any]:
    """Every refused run, with the same run as the program takes it."""
    heads = [
        pytest.param(framework, model, {**SERVED, "tensor_parallel": ODD[model]} if framework != "megatron-lm" else {"tensor_parallel": ODD[model]},
                     None, None, text.format(number, ODD[model]), {"tensor_parallel": EVEN[model]}, id=f"{model} on {ODD[model]} cards of {framework}")
        for framework, text in HEADS.items() for model, number in MODELS.items()
    ]  # fmt: skip
    crowded = [
        pytest.param(framework, "Qwen/Qwen2.5-7B", {"processes_per_node": 8}, 4, None, "invalid device ordinal", {"processes_per_node": 4},
                     id=f"eight processes of {framework} on four cards")
        for framework in TRAINERS
    ]  # fmt: skip
    return [*heads, *crowded, *(pytest.param(*values, id=name) for name, values in OTHERS.items())]


@pytest.mark.parametrize(("framework", "model", "settings", "gpus", "gpu", "message", "good"), cases())
def test_what_is_refused_is_named_and_what_is_taken_is_not(
    framework: str, model: str, settings: dict[str, Any], gpus: int | None, gpu: str | None, message: str, good: dict[str, Any]
) -> None:
    assert any(message in refusal.message for refusal in said(framework, model, settings, gpus, gpu))
    assert said(framework, model, {**settings, **good}, gpus, gpu) == ()


def test_there_are_sixty_of_them() -> None:
    assert len(cases()) >= 60


def test_values_that_pass_are_named_the_nearest_first() -> None:
    (refusal,) = said("vllm", "Qwen/Qwen3-14B", {**SERVED, "tensor_parallel": 3})
    assert refusal.instead == (2, 4, 1)
    for tensor in refusal.instead:
        assert said("vllm", "Qwen/Qwen3-14B", {**SERVED, "tensor_parallel": tensor}) == ()


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "serve.sh"
    path.write_text("vllm serve Qwen/Qwen3-14B --tensor-parallel-size 3\n")
    return str(path)


def test_estimate_check_and_plan_say_the_same(script: str) -> None:
    estimated: RunEstimate = oomdoctor.estimate(script, gpu="A100-80GB", gpus=4)
    checked = oomdoctor.check(script, gpu="A100-80GB", gpus=4)
    planned = oomdoctor.plan(script, gpu="A100-80GB", gpus=4)
    assert [refusal.id for refusal in estimated.refusals] == [refusal.id for refusal in planned.refusals] == ["heads"]
    assert estimated.fits == "no"
    assert [issue.id for issue in checked.config.issues] == ["refused-heads"]
    assert checked.config.issues[0].line == 1
    assert checked.is_wrong()


def test_without_a_card_a_check_names_it_too(script: str) -> None:
    assert [issue.id for issue in oomdoctor.check(script).config.issues] == ["refused-heads"]
