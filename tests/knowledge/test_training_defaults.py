"""What type trained weights, gradients and states have where a config says nothing, by hand for each framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from defaults_page import page

from oomdoctor.case.settings import RunSettings
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.knowledge.tables.training_defaults import framework_records
from oomdoctor.memory.model import parameters
from oomdoctor.memory.model.trained import adapters
from oomdoctor.memory.model.weights import weights
from oomdoctor.memory.optimizer import gradients, states
from oomdoctor.setups.from_settings import setup_from_settings

PAGE = Path(__file__).parents[2] / "docs" / "defaults.md"


def made(framework: str, cards: int = 1, version: str | None = None, **settings: Any) -> Setup:
    shape = model_shape("Qwen/Qwen3-8B")
    assert shape is not None
    said = {"finetuning": "full", "precision": "bf16", "method": "sft", **settings}
    versions = {framework: version} if version else {}
    return setup_from_settings(RunSettings().with_values(said), shape, framework, cards, versions)[0]


def each(run: Setup) -> float:
    """Bytes of one parameter on all cards together: weights, gradients, states."""
    parts = (weights(run), adapters(run), gradients(run), states(run))
    return sum(part.bytes for part in parts if part is not None) / parameters.total(run.shape)


@pytest.mark.parametrize(("framework", "version", "settings", "cards", "expected"), [
    pytest.param("llamafactory", None, {}, 1, 4 + 4 + 8, id="LLaMA-Factory casts what it trains"),
    pytest.param("llamafactory", None, {"weights": "bf16"}, 1, 2 + 2 + 4, id="LLaMA-Factory with pure_bf16"),
    pytest.param("llamafactory", None, {"zero_stage": 2}, 4, 2 + 2 / 4 + 12 / 4, id="LLaMA-Factory under ZeRO-2, which casts back"),
    pytest.param("llamafactory", None, {"zero_stage": 3}, 4, (2 + 2 + 12) / 4, id="LLaMA-Factory under ZeRO-3"),
    pytest.param("llamafactory", None, {"fsdp": True}, 4, (4 + 4 + 8) / 4, id="LLaMA-Factory under FSDP"),
    pytest.param("llamafactory", None, {"fsdp": True, "weights": "bf16"}, 4, (2 + 2 + 4) / 4, id="LLaMA-Factory under FSDP with pure_bf16"),
    pytest.param("transformers", "4.57.6", {}, 1, 4 + 4 + 8, id="a Trainer before transformers 5 loads fp32"),
    pytest.param("transformers", "5.0.0", {}, 1, 2 + 2 + 4, id="since then what the checkpoint has"),
    pytest.param("transformers", None, {}, 1, 2 + 2 + 4, id="without a version the newest counts"),
    pytest.param("transformers", None, {"weights": "fp32"}, 1, 4 + 4 + 8, id="a type that is given goes before"),
    pytest.param("transformers", None, {"fsdp": True, "weights": "bf16"}, 4, (4 + 4 + 8) / 4, id="but accelerate widens it for FSDP"),
    pytest.param("transformers", None, {"fsdp": True, "fsdp_version": 2}, 4, (4 + 4 + 8) / 4, id="and for FSDP2"),
    pytest.param("transformers", None, {"zero_stage": 1}, 4, 2 + 2 + 12 / 4, id="a Trainer under ZeRO-1"),
    pytest.param("trl", None, {}, 1, 4 + 4 + 8, id="TRL loads fp32 by name"),
    pytest.param("trl", "0.24.0", {}, 1, 2 + 2 + 4, id="before 0.27 what transformers loads"),
    pytest.param("trl", None, {"weights": "bf16"}, 1, 2 + 2 + 4, id="TRL with dtype bfloat16"),
    pytest.param("axolotl", None, {"attention": "flash_attention_2"}, 1, 2 + 2 + 4, id="Axolotl loads bf16"),
    pytest.param("axolotl", None, {}, 1, 8 + 8 * 2 * 151936 * 4096 / 8_190_735_360, id="but for embedding and head without flash attention"),
    pytest.param("axolotl", None, {"zero_stage": 1}, 4, 2 + 2 + 12 / 4, id="which DeepSpeed casts back"),
    pytest.param("axolotl", None, {"fsdp": True, "fsdp_version": 2}, 4, (2 + 2 + 4) / 4, id="and leaves it under FSDP2"),
    pytest.param("ms-swift", None, {}, 1, 2 + 2 + 4, id="ms-swift keeps the type of config.json"),
    pytest.param("ms-swift", None, {"weights": "fp32"}, 1, 4 + 4 + 8, id="or what torch_dtype says"),
    pytest.param("unsloth", None, {}, 1, 2 + 2 + 2, id="Unsloth has states of 8 bit"),
    pytest.param("torchtune", None, {"optimizer": "adamw"}, 1, 2 + 2 + 4, id="torchtune is all bf16"),
    pytest.param("torchtune", None, {"fsdp": True, "fsdp_version": 2}, 4, (2 + 2 + 4) / 4, id="torchtune under FSDP2"),
    pytest.param("megatron-lm", None, {}, 8, 2 + 4 + 12, id="Megatron has fp32 gradients and masters"),
    pytest.param("megatron-lm", None, {"shards_states": True}, 8, 6 + 12 / 8, id="Megatron's distributed optimizer"),
    pytest.param("megatron-lm", None, {"main_gradients": "bf16"}, 8, 2 + 2 + 12, id="Megatron's gradients in bf16"),
    pytest.param("megatron-lm", None, {"precision": "fp16"}, 8, 2 + 2 + 12, id="Megatron sums fp16 as it is"),
    pytest.param("megatron-lm", None, {"precision": "fp16", "main_gradients": "fp32"}, 8, 2 + 4 + 12, id="unless it is told otherwise"),
    pytest.param("megatron-lm", None, {"main_weights": "remainder"}, 8, 2 + 4 + 2 + 8, id="Megatron keeps what bf16 lacks of fp32"),
    pytest.param("megatron-lm", None, {"main_weights": "fp16", "first_moment": "fp8", "second_moment": "bf16"}, 8, 2 + 4 + 2 + 1 + 2,
                 id="Megatron's copies and moments in types of their own"),
    pytest.param("torchtitan", None, {"fsdp": True, "fsdp_version": 2}, 8, (4 + 4 + 8) / 8, id="torchtitan shards fp32"),
    pytest.param("torchtitan", None, {"fsdp": True, "fsdp_version": 2, "sharded_copies": 2}, 8, (4 + 4 + 8) / 4, id="among the cards of a copy"),
    pytest.param("torchtitan", None, {"fsdp": True, "fsdp_version": 2, "weights": "bf16"}, 8, (2 + 2 + 4) / 8, id="or training.dtype"),
])  # fmt: skip
def test_bytes_of_a_parameter(framework: str, version: str | None, settings: dict[str, Any], cards: int, expected: float) -> None:
    assert each(made(framework, cards, version, **settings)) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(("framework", "version", "settings", "base", "adapter"), [
    pytest.param("llamafactory", None, {}, "bf16", 4, id="LLaMA-Factory"),
    pytest.param("llamafactory", None, {"weights": "bf16"}, "bf16", 2, id="LLaMA-Factory with pure_bf16"),
    pytest.param("transformers", None, {}, "bf16", 4, id="peft"),
    pytest.param("trl", None, {}, "fp32", 4, id="TRL loads the base in fp32 too"),
    pytest.param("trl", None, {"load_bits": 4}, "nf4", 2, id="TRL above packed weights"),
    pytest.param("trl", "0.24", {}, "bf16", 4, id="TRL before 0.27"),
    pytest.param("axolotl", None, {}, "bf16", 4, id="Axolotl"),
    pytest.param("ms-swift", None, {}, "bf16", 4, id="ms-swift"),
    pytest.param("unsloth", None, {}, "bf16", 4, id="Unsloth"),
    pytest.param("torchtune", None, {}, "bf16", 2, id="torchtune"),
])  # fmt: skip
def test_types_of_adapters_and_what_is_below(
    framework: str, version: str | None, settings: dict[str, Any], base: str, adapter: int
) -> None:
    run = made(framework, 1, version, **{"finetuning": "lora", **settings})
    assert (run.weights.name, run.stack.adapter_bytes) == (base, adapter)


@pytest.mark.parametrize(("framework", "settings", "rank"), [
    pytest.param("trl", {}, 16, id="TRL's ModelConfig"),
    pytest.param("trl", {"lora_rank": 32}, 32, id="what is given goes before"),
    pytest.param("transformers", {}, 8, id="peft"),
    pytest.param("llamafactory", {}, 8, id="LLaMA-Factory"),
    pytest.param("ms-swift", {}, 8, id="ms-swift"),
    pytest.param("unsloth", {}, 16, id="Unsloth"),
    pytest.param("axolotl", {}, 8, id="Axolotl has none of its own"),
])  # fmt: skip
def test_the_rank_of_adapters(framework: str, settings: dict[str, Any], rank: int) -> None:
    run = made(framework, 1, None, **{"finetuning": "lora", **settings})
    assert run.adapters is not None
    assert run.adapters.rank == rank


def test_a_rank_that_is_taken_is_named() -> None:
    shape = model_shape("Qwen/Qwen3-8B")
    assert shape is not None
    for rank, told in ((None, True), (8, False)):
        taken = setup_from_settings(RunSettings(finetuning="lora", lora_rank=rank), shape, "trl", 1)[1]
        assert any(each.id == "lora_rank" and "rank 16, the TRL" in each.text.en for each in taken) is told


@pytest.mark.parametrize(("accelerate", "base"), [
    pytest.param("1.5.2", "bf16", id="before"), pytest.param("1.7.0", "fp32", id="widened"), pytest.param("1.13.0", "bf16", id="after"),
])  # fmt: skip
def test_releases_of_accelerate_that_widen_a_frozen_base(accelerate: str, base: str) -> None:
    shape = model_shape("Qwen/Qwen3-8B")
    assert shape is not None
    settings = RunSettings(finetuning="lora", precision="bf16", fsdp=True, fsdp_version=2)
    assert setup_from_settings(settings, shape, "transformers", 4, {"accelerate": accelerate})[0].weights.name == base


@pytest.mark.parametrize(("framework", "version", "settings", "expected"), [
    pytest.param("llamafactory", None, {}, ("full", False, 8, 2048), id="LLaMA-Factory"),
    pytest.param("llamafactory", "0.9.0", {}, ("full", False, 8, 1024), id="LLaMA-Factory 0.9.0"),
    pytest.param("transformers", None, {}, ("none", False, 8, 2048), id="a Trainer; nothing cuts the samples"),
    pytest.param("trl", None, {}, ("full", True, 8, 1024), id="TRL"),
    pytest.param("trl", "1.6.0", {}, ("full", False, 8, 1024), id="TRL before its loss was chunked"),
    pytest.param("trl", "1.9.2", {"method": "dpo"}, ("full", False, 8, 1024), id="which came to DPO later"),
    pytest.param("trl", "0.21.0", {}, ("none", False, 8, 1024), id="TRL before it checkpointed"),
    pytest.param("axolotl", None, {}, ("none", False, 1, 512), id="Axolotl"),
    pytest.param("ms-swift", None, {}, ("full", False, 1, 2048), id="ms-swift; the model's own length cuts"),
    pytest.param("unsloth", None, {}, ("full", True, 4, 2048), id="Unsloth"),
    pytest.param("torchtune", None, {}, ("full", False, 2, 2048), id="torchtune"),
    pytest.param("megatron-lm", None, {}, ("none", False, 1, 2048), id="Megatron; batch and length must be given"),
    pytest.param("torchtitan", None, {}, ("selective", False, 8, 2048), id="torchtitan"),
    pytest.param("torchtitan", "0.3.0", {}, ("selective", True, 8, 2048), id="torchtitan since its loss is chunked"),
])  # fmt: skip
def test_what_else_decides(framework: str, version: str | None, settings: dict[str, Any], expected: tuple[object, ...]) -> None:
    run = made(framework, 1, version, **settings)
    assert (run.checkpointing, run.fused_loss, run.batch, run.length) == expected


def test_every_row_that_can_hold_without_a_version_is_open_at_its_end() -> None:
    """The newest release counts where none is known: a name whose rows all end would then have no default."""
    for record in framework_records().values():
        for name in () if record.defaults is None else record.defaults.__struct_fields__:
            rows = [] if name == "release" else getattr(record.defaults, name)
            anywhere = [row for row in rows if not row.methods and not row.engines]
            assert not anywhere or any(row.until is None for row in anywhere), (record.framework, name)


@pytest.mark.parametrize(("cards", "finetuning", "optimizer"), [
    pytest.param(1, "full", "adamw-8bit-in-backward", id="all weights on one card"),
    pytest.param(1, "lora", "adamw-fused", id="adapters on one card"),
    pytest.param(4, "full", "adamw-fused", id="all weights on several"),
])  # fmt: skip
def test_a_default_can_depend_on_what_is_trained(cards: int, finetuning: str, optimizer: str) -> None:
    assert made("torchtune", cards, finetuning=finetuning).optimizer.name == optimizer


@pytest.mark.parametrize(("framework", "packed", "checkpointing"), [
    pytest.param("transformers", True, "full", id="peft turns it on for packed models"),
    pytest.param("transformers", False, "none", id="a Trainer leaves it off"),
    pytest.param("axolotl", True, "none", id="Axolotl passes its own setting to peft"),
    pytest.param("nobody", True, "full", id="an unknown framework, packed"),
    pytest.param("nobody", False, "full", id="an unknown framework"),
])  # fmt: skip
def test_checkpointing_as_people_run(framework: str, packed: bool, checkpointing: str) -> None:
    assert made(framework, finetuning="qlora" if packed else "lora").checkpointing == checkpointing


@pytest.mark.parametrize(("framework", "version", "targets"), [
    pytest.param("transformers", None, "q v", id="what peft takes for the usual families"),
    pytest.param("trl", None, "q v", id="TRL leaves it to peft"),
    pytest.param("litgpt", None, "q v", id="LitGPT"),
    pytest.param("ms-swift", "2.6.1", "q k v", id="the attention projections of ms-swift 2"),
    pytest.param("ms-swift", None, "q k v o gate up down", id="every linear layer since ms-swift 3"),
    pytest.param("llamafactory", None, "q k v o gate up down", id="LLaMA-Factory"),
    pytest.param("torchtune", None, "q v o gate up down", id="torchtune"),
    pytest.param("nobody", None, "q k v o gate up down", id="an unknown framework"),
])  # fmt: skip
def test_what_gets_adapters(framework: str, version: str | None, targets: str) -> None:
    adapters_ = made(framework, version=version, finetuning="lora").adapters
    assert adapters_ is not None
    assert adapters_.targets == frozenset(targets.split())


def test_the_page_of_the_documents_is_made_of_the_rules(bless: bool) -> None:
    made_now = page()
    if bless:
        PAGE.write_text(made_now, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made_now, "python -m pytest tests/knowledge/test_training_defaults.py --bless"
