"""Where model, card and settings are told, the first thing to do is what makes the run fit, with values from the memory model."""

from __future__ import annotations

import pytest

import oomdoctor
from oomdoctor.case.diagnosis import Fix
from oomdoctor.planning.told.smallest_plan import PLAN

COMMAND = (
    "$ llamafactory-cli train --stage sft --do_train true --model_name_or_path Qwen/Qwen2.5-7B-Instruct --finetuning_type {method} --lora_target all "
    "--cutoff_len {length} --per_device_train_batch_size {batch} --gradient_accumulation_steps 4 --bf16 true --output_dir out\n"
)
FRAMES = (
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.11/site-packages/transformers/trainer.py", line 3782, in training_step\n'
    "    self.accelerator.backward(loss, **kwargs)\n"
    '  File "/opt/conda/lib/python3.11/site-packages/torch/autograd/graph.py", line 823, in _engine_run_backward\n'
    "    return Variable._execution_engine.run_backward(\n"
)


def run(total: float, allocated: float, asked: str, *, method: str = "lora", length: int = 8192, batch: int = 4) -> str:
    return (
        COMMAND.format(method=method, length=length, batch=batch)
        + FRAMES
        + f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total:.2f} GiB of which "
        f"{total - allocated - 0.9:.2f} GiB is free. Including non-PyTorch memory, this process has {allocated + 0.9:.2f} GiB memory in use. Of the "
        f"allocated memory {allocated:.2f} GiB is allocated by PyTorch, and 430.11 MiB is reserved by PyTorch but unallocated.\n"
    )


def first(log: str) -> Fix:
    return oomdoctor.diagnose(log.encode()).findings[0].fixes[0]


@pytest.mark.parametrize("log", [
    pytest.param(run(79.15, 69.11, "18.56 GiB"), id="LoRA with long samples on a card of 80 GB"),
    pytest.param(run(23.65, 21.10, "4.64 GiB", length=2048), id="LoRA on a card of 24 GB"),
    pytest.param(run(23.65, 21.90, "2.00 GiB", length=4096, batch=2), id="LoRA with longer samples on a card of 24 GB"),
    pytest.param(run(79.15, 76.20, "2.10 GiB", method="full", length=2048, batch=1), id="full tuning on one card"),
])  # fmt: skip
def test_the_first_thing_to_do_is_enough(log: str) -> None:
    fix = first(log)
    assert fix.fits == "yes" and fix.frees_bytes
    assert all(setting.to != setting.before for setting in fix.settings)


def test_several_changes_are_one_step_with_the_keys_of_the_program() -> None:
    fix = first(run(23.65, 21.10, "4.64 GiB", length=2048))
    assert fix.id == PLAN
    assert len(fix.settings) > 1 and {setting.framework for setting in fix.settings} <= {
        "llamafactory",
        "deepspeed",
        "accelerate",
        "environment",
    }


@pytest.mark.parametrize("log", [
    pytest.param(run(79.15, 69.11, "18.56 GiB").replace(" --cutoff_len 8192", ""), id="the length is not told"),
    pytest.param(run(79.15, 77.00, "20.00 MiB", length=512, batch=1), id="the estimate does not explain what was seen"),
    pytest.param(run(79.15, 69.11, "18.56 GiB").replace("Qwen/Qwen2.5-7B-Instruct", "models/of-our-own"), id="the model is not known"),
])  # fmt: skip
def test_nothing_is_promised_where_the_estimate_says_nothing(log: str) -> None:
    assert first(log).id != PLAN
