"""Configs as people write them, and what is proposed first, in their own keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli

LLAMAFACTORY = """\
model_name_or_path: {model}
stage: {stage}
finetuning_type: {method}
lora_target: all
dataset: ours
cutoff_len: {length}
per_device_train_batch_size: {batch}
gradient_accumulation_steps: 8
bf16: true
{more}
"""
AXOLOTL = """\
base_model: Qwen/Qwen2.5-7B
sequence_len: 65536
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 4
gradient_checkpointing: true
optimizer: adamw_torch_fused
bf16: true
flash_attention: true
deepspeed: deepspeed_configs/zero3_bf16.json
"""
SWIFT = (
    "swift sft --model Qwen/Qwen2.5-14B-Instruct --train_type lora --torch_dtype bfloat16 --max_length 65536 --per_device_train_batch_size 1 "
    "--gradient_accumulation_steps 2 --deepspeed zero3 --use_liger_kernel true --attn_impl flash_attn\n"
)
TORCHTUNE = """\
model:
  _component_: torchtune.models.llama3_1.llama3_1_8b
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048
optimizer:
  _component_: torch.optim.AdamW
batch_size: 2
gradient_accumulation_steps: 1
enable_activation_checkpointing: True
dtype: bf16
"""
QLORA = """\
base_model: meta-llama/Llama-3.1-70B
load_in_4bit: true
adapter: qlora
lora_r: 16
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 8
gradient_checkpointing: true
bf16: true
flash_attention: true
"""


def llamafactory(
    model: str = "Qwen/Qwen2.5-7B", method: str = "lora", length: int = 2048, batch: int = 2, stage: str = "sft", more: str = ""
) -> str:
    return LLAMAFACTORY.format(model=model, method=method, length=length, batch=batch, stage=stage, more=more)


@pytest.mark.parametrize(("name", "text", "options", "settings"), [
    pytest.param(
        "a.yaml", llamafactory(length=4096), ["--gpu", "RTX 4090"],
        {"enable_liger_kernel": "true", "per_device_train_batch_size": "1", "gradient_accumulation_steps": "16"},
        id="LoRA on one 24 GiB card: no logits, and one sample at a time",
    ),
    pytest.param(
        "a.yaml", llamafactory(batch=4, stage="dpo"), ["--gpu", "RTX 4090"],
        {"quantization_bit": "4", "quantization_method": "bnb", "per_device_train_batch_size": "1", "gradient_accumulation_steps": "32"},
        id="a preference loss needs the logits, so Liger's loss is not proposed",
    ),
    pytest.param(
        "a.yaml", llamafactory("Qwen/Qwen2.5-7B", "full", length=4096, batch=1), ["--gpu", "RTX 4090", "--gpus", "8"],
        {"deepspeed": "examples/deepspeed/ds_z3_offload_config.json"},
        id="full training on small cards is sharded, and waits on the host",
    ),
    pytest.param(
        "a.yaml", llamafactory("Qwen/Qwen2.5-32B-Instruct", length=4096, batch=1), ["--gpu", "RTX 4090", "--gpus", "4"],
        {"quantization_bit": "4", "quantization_method": "bnb", "deepspeed": "examples/deepspeed/ds_z3_config.json", "enable_liger_kernel": "true"},
        id="three changes come before one that makes every step four times as long",
    ),
    pytest.param(
        "a.yaml", llamafactory("Qwen/Qwen3-30B-A3B", length=4096, batch=1), ["--gpu", "RTX 4090", "--gpus", "4"],
        {"deepspeed": "examples/deepspeed/ds_z3_offload_config.json"},
        id="four bits do not help where the experts stay as they are",
    ),
    pytest.param(
        "a.yml", AXOLOTL, ["--gpu", "A100-80GB", "--gpus", "4"],
        {"liger_fused_linear_cross_entropy": "true", "plugins": "[axolotl.integrations.liger.LigerPlugin]", "context_parallel_size": "2",
         "gradient_accumulation_steps": "8"},
        id="long samples are spread over two cards, and accumulation makes up for it",
    ),
    pytest.param(
        "a.sh", SWIFT, ["--gpu", "A100-40GB", "--gpus", "8"], {"--sequence_parallel_size": "4", "--gradient_accumulation_steps": "8"},
        id="the same in the words of ms-swift",
    ),
    pytest.param(
        "a.yaml", TORCHTUNE, ["--gpu", "24GB"],
        {"enable_activation_offloading": "True", "optimizer._component_": "bitsandbytes.optim.PagedAdamW8bit", "optimizer_in_bwd": "True",
         "clip_grad_norm": "null", "loss._component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
        id="a whole model of 8B on one small card, as torchtune's own recipe has it",
    ),
    pytest.param(
        "a.yml", QLORA, ["--gpu", "RTX 3090", "--gpus", "2"], {"fsdp_version": "2", "fsdp_config.offload_params": "true"},
        id="70B in four bits on two small cards: FSDP with the weights on the host",
    ),
])  # fmt: skip
def test_the_first_plan(name: str, text: str, options: list[str], settings: dict[str, str], tmp_path: Path) -> None:
    answer = planned(name, text, [*options, "--model", "meta-llama/Llama-3.1-8B"] if text is TORCHTUNE else options, tmp_path)
    assert {setting["key"]: setting["to"] for measure in answer["plans"][0]["measures"] for setting in measure["settings"]} == settings


@pytest.mark.parametrize(("named", "first"), [
    pytest.param("examples/deepspeed/ds_z2_config.json", "examples/deepspeed/ds_z3_config.json", id="stage 2 becomes 3 by its file"),
    pytest.param("configs/of_our_own.json", "examples/deepspeed/ds_z3_config.json", id="a file of one's own that is not available says nothing"),
])  # fmt: skip
def test_a_shipped_file_that_is_not_at_hand_is_known_by_its_name(named: str, first: str, tmp_path: Path) -> None:
    text = llamafactory("meta-llama/Llama-3.1-8B", "full", batch=1, more=f"deepspeed: {named}")
    plans = planned("a.yaml", text, ["--gpu", "A100-40GB", "--gpus", "8", "--top", "50"], tmp_path)["plans"]
    written = [one for plan in plans for measure in plan["measures"] for one in measure["settings"] if one["key"] == "deepspeed"]
    assert (written[0]["from"], first in {one["to"] for one in written}) == (named, True)


def test_where_nothing_fits_the_cards_that_would_do_come_with_a_plan(tmp_path: Path) -> None:
    text = llamafactory("Qwen/Qwen2.5-32B", batch=1, more="quantization_bit: 4")
    wall = planned("a.yaml", text, ["--gpu", "RTX 4090"], tmp_path)["wall"]
    assert wall["fits"] in ("close", "no")
    assert wall["card"] and wall["card_as_it_is"]
    assert wall["gpus"] >= 2 and wall["on_gpus"]["measures"]


def planned(name: str, text: str, options: list[str], tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / name
    path.write_text(text)
    answer: dict[str, Any] = json.loads(CliRunner().invoke(cli, ["plan", str(path), *options, "--format", "json"]).output)
    return answer
