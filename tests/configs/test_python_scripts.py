"""Scripts in Python say their settings in calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.configs.readers.read import read_config

TRL = """\
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="o", per_device_train_batch_size=4, max_length=2048, bf16=True)
trainer = SFTTrainer(model="Qwen/Qwen3-8B", args=args, train_dataset=rows)
"""
LORA = """\
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer
MODEL, length = "mistralai/Mistral-7B-v0.3", 4096
name = "mistralai/Mistral-7B-v0.3"
tokenizer = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
config = LoraConfig(r=24, target_modules="all-linear")
trainer = SFTTrainer(model, args=SFTConfig(per_device_train_batch_size=8, max_length=1024), peft_config=config)
"""
UNSLOTH = """\
from unsloth import FastLanguageModel
from trl import SFTConfig, SFTTrainer
max_seq_length = 8192
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Qwen3-14B", max_seq_length=max_seq_length, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
trainer = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2))
"""


@pytest.mark.parametrize(("script", "framework", "said"), [
    pytest.param(TRL, "trl", {"model": "Qwen/Qwen3-8B", "sequence_length": 2048, "micro_batch": 4}, id="a trainer that is given a name"),
    pytest.param(LORA, "trl", {"model": "mistralai/Mistral-7B-v0.3", "finetuning": "lora", "lora_rank": 24, "weights": "bf16"},
                 id="a model by a variable, an adapter; the tokenizer is none"),
    pytest.param(UNSLOTH, "unsloth", {"model": "unsloth/Qwen3-14B", "sequence_length": 8192, "lora_rank": 32, "load_bits": 4},
                 id="Unsloth, a length by its variable"),
])  # fmt: skip
def test_what_calls_say(script: str, framework: str, said: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(script, encoding="utf-8")
    run = oomdoctor.check(file).config
    assert run.framework == framework
    assert {name: getattr(run.settings, name) for name in said} == said


def test_a_script_of_vllm_is_a_server(tmp_path: Path) -> None:
    file = tmp_path / "serve.py"
    file.write_text('from vllm import LLM\nllm = LLM(model="Qwen/Qwen2.5-14B-Instruct", max_model_len=32768)\n', encoding="utf-8")
    assert oomdoctor.estimate(file, gpu="RTX 4090").estimate.setup.task == "infer"


def test_a_model_in_the_same_process_has_longer_steps_and_says_options_in_dictionaries(tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    said = 'limit_mm_per_prompt={"image": 4, "video": 0}, speculative_config={"method": "ngram", "more": {"depth": 1}}'
    file.write_text(f'from vllm import LLM\nllm = LLM(model="Qwen/Qwen2.5-VL-7B-Instruct", {said})\n', encoding="utf-8")
    settings = oomdoctor.check(file).config.settings
    assert (settings.offline, settings.images_per_prompt, settings.videos_per_prompt, settings.draft_method) == (True, 4, 0, "ngram")


def test_what_is_worked_out_is_not_known() -> None:
    configs = read_config("train.py", b"args = SFTConfig(bf16=supported(), max_length=2 * base, seed=1)\n") or []
    assert [(setting.key, setting.value) for config in configs for setting in config.written] == [("seed", 1)]


def test_plans_of_a_script_are_offered(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(UNSLOTH.replace("load_in_4bit=True", "load_in_4bit=False"), encoding="utf-8")
    assert oomdoctor.plan(file, gpu="RTX 4090").plans
