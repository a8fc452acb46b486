"""What names say: builders of torchtune, and the packages that a script imports."""

from __future__ import annotations

import pytest
from config_files import read

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


@pytest.mark.parametrize(("imports", "framework"), [
    pytest.param("import torch\nfrom unsloth import FastLanguageModel as Fast\nfrom trl import SFTConfig", "unsloth", id="unsloth"),
    pytest.param("from transformers import TrainingArguments as SFTConfig", "transformers", id="not by the name of a model"),
])  # fmt: skip
def test_a_script_is_that_of_what_it_imports(imports: str, framework: str) -> None:
    run = read({"train.py": SCRIPT.format(imports)})
    assert run.framework == framework
    assert (run.settings.load_bits, run.settings.sequence_length) == (4, 1024) or framework == "transformers"
