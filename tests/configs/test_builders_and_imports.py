"""What names say: builders of torchtune, and the packages that a script imports."""

from __future__ import annotations

import pytest
from config_files import read

from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.from_settings import setup_from_settings

TUNE = "model:\n  _component_: {}\nbatch_size: 2\nenable_activation_checkpointing: True\noptimizer:\n  _component_: torch.optim.AdamW\n"
SCRIPT = '{}\nmodel = Fast.from_pretrained(model_name="unsloth/Qwen3-14B", max_seq_length=1024, load_in_4bit=True)\nargs = SFTConfig(per_device_train_batch_size=2)\n'


@pytest.mark.parametrize(("builder", "model", "finetuning"), [
    pytest.param("torchtune.models.llama3_1.llama3_1_8b", "llama3_1_8b", "full", id="the whole model"),
    pytest.param("torchtune.models.llama3_1.lora_llama3_1_8b", "llama3_1_8b", "lora", id="adapters"),
    pytest.param("torchtune.models.qwen2_5.qlora_qwen2_5_7b_base", "qwen2_5_7b_base", "qlora", id="adapters on packed weights"),
    pytest.param("my.models.lora_tiny", "my.models.lora_tiny", None, id="a builder of one's own says nothing"),
])  # fmt: skip
def test_a_builder_names_model_and_method(builder: str, model: str, finetuning: str | None) -> None:
    settings = read({"tune.yaml": TUNE.format(builder)}).settings
    assert (settings.model, settings.finetuning) == (model, finetuning)


LORA = "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_rank: 16\n  lora_alpha: 32\n{}batch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n"
AXOLOTL = "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 16\nlora_alpha: 32\n{}micro_batch_size: 2\nsequence_len: 512\n"


@pytest.mark.parametrize(("text", "more", "targets"), [
    pytest.param(LORA, "  lora_attn_modules: [q_proj, v_proj, output_proj]\n", "q v o", id="torchtune, matrices of the attention"),
    pytest.param(LORA, "  lora_attn_modules: [q_proj]\n  apply_lora_to_mlp: True\n", "q gate up down", id="torchtune, the MLP too"),
    pytest.param(LORA, "  lora_attn_modules: [q_proj]\n  apply_lora_to_mlp: False\n  apply_lora_to_output: True\n", "q head", id="torchtune, the head"),
    pytest.param(AXOLOTL, "lora_target_modules: [q_proj, v_proj]\n", "q v", id="axolotl, a list"),
    pytest.param(AXOLOTL, "lora_target_modules: [q_proj]\nlora_target_linear: true\n", "q k v o gate up down", id="axolotl, every linear layer"),
    pytest.param(AXOLOTL, "lora_target_modules: [q_proj]\nlora_target_linear: false\n", "q", id="axolotl, not every linear layer"),
])  # fmt: skip
def test_what_adapters_are_made_of(text: str, more: str, targets: str) -> None:
    run = read({"tune.yaml": text.format(more)})
    shape = model_shape("meta-llama/Llama-3.1-8B")
    assert shape is not None
    adapters = setup_from_settings(run.settings, shape, run.framework, 1)[0].adapters
    assert adapters is not None
    assert (adapters.rank, adapters.targets) == (16, frozenset(targets.split()))


@pytest.mark.parametrize(("imports", "framework"), [
    pytest.param("import torch\nfrom unsloth import FastLanguageModel as Fast\nfrom trl import SFTConfig", "unsloth", id="unsloth"),
    pytest.param("from transformers import TrainingArguments as SFTConfig", "transformers", id="not by the name of a model"),
])  # fmt: skip
def test_a_script_is_that_of_what_it_imports(imports: str, framework: str) -> None:
    run = read({"train.py": SCRIPT.format(imports)})
    assert run.framework == framework
    assert (run.settings.load_bits, run.settings.sequence_length) == (4, 1024) or framework == "transformers"
