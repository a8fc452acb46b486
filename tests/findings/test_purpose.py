"""Advice for programs that only answer: who they are, and that nothing is said to them about training."""

from __future__ import annotations

from functools import cache

import pytest

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import Pack, builtin_rules, load_pack

FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 58.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 33.06 MiB is"
    " free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 23.01 GiB is allocated by"
    " PyTorch, and 187.44 MiB is reserved by PyTorch but unallocated.\n"
)
SITE = "/opt/env/lib/python3.11/site-packages"
TRACE = "Traceback (most recent call last):\n"
GENERATE = f'{TRACE}  File "{SITE}/transformers/generation/utils.py", line 2215, in generate\n{FULL}'
OF_TRAINING = {
    "gradient-checkpointing", "zero2-zero3", "fsdp-full-shard", "optimizer-8bit-paged", "fused-cross-entropy", "activation-offload",
    "packing-and-length-grouping", "longest-sample-first", "offload-optimizer",
}  # fmt: skip


@cache
def pack() -> Pack:
    return load_pack(builtin_rules())


def read(log: str) -> Diagnosis:
    return diagnose_logs(["run.log"], pack(), text=log.encode())


def fixes(diagnosis: Diagnosis) -> set[str]:
    return {fix.id for finding in diagnosis.findings for fix in finding.fixes}


MLX = "RuntimeError: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n"
ANSWERING = [
    pytest.param("ggml_vulkan: Device memory allocation of size 226492416 failed.\n", id="llama.cpp says it itself"),
    pytest.param("RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /src/turbomind/utils/memory_utils.cu:48\n", id="lmdeploy"),
    pytest.param(f"!!! Exception during processing !!! {FULL}", id="torch below ComfyUI"),
    pytest.param(
        f'{TRACE}  File "{SITE}/diffusers/pipelines/flux/pipeline_flux.py", line 889, in __call__\n{FULL}', id="a pipeline of diffusers"
    ),
    pytest.param(GENERATE, id="generate of transformers"),
    pytest.param(f'{TRACE}  File "/srv/app/inference.py", line 81, in <module>\n{FULL}', id="a script named after what it does"),
    pytest.param(f'{TRACE}  File "{SITE}/gradio/queueing.py", line 625, in process_events\n{FULL}', id="a request to a web page"),
    pytest.param(f'{TRACE}  File "{SITE}/vllm/v1/worker/gpu_worker.py", line 312, in compile_or_warm_up_model\n{FULL}', id="a server"),
    pytest.param(MLX, id="MLX, which mostly answers"),
]
TRAINING = [
    pytest.param(FULL, id="nothing says what the run is for"),
    pytest.param(f"***** Running training *****\n{GENERATE}", id="a trainer that generates"),
    pytest.param(f'{TRACE}  File "{SITE}/trl/trainer/grpo_trainer.py", line 1101, in _generate\n{GENERATE}', id="samples of a policy"),
    pytest.param(f"{TRACE}    loss.backward()\n{FULL}", id="a loop of one's own"),
    pytest.param(f'{TRACE}  File "{SITE}/torch/autograd/__init__.py", line 347, in backward\n{FULL}', id="a backward pass"),
    pytest.param(f"$ python -m mlx_lm.lora --train --model local/model-4bit\n{MLX}", id="MLX that trains"),
    pytest.param(f"Trainable parameters 2.310M\nTraining\n{MLX}", id="MLX that says how much it trains"),
]


@pytest.mark.parametrize("log", ANSWERING)
def test_a_program_that_only_answers_hears_nothing_of_training(log: str) -> None:
    diagnosis = read(log)
    assert diagnosis.findings
    assert not fixes(diagnosis) & OF_TRAINING
    assert "per_device_train_batch_size" not in str(diagnosis.findings)


@pytest.mark.parametrize("log", TRAINING)
def test_all_others_hear_of_checkpointing(log: str) -> None:
    assert "gradient-checkpointing" in fixes(read(log))


def test_a_printed_setting_of_training_outweighs_frames_of_generation() -> None:
    diagnosis = read(f"per_device_train_batch_size: 4\n{GENERATE}")
    assert "inference-fills-card" not in {finding.id for finding in diagnosis.findings}


@pytest.mark.parametrize("log", [
    pytest.param("Out of memory error on GPU 0. Cannot allocate 1.250000GB memory on GPU 0, available memory is only 317.750000MB.\n", id="Paddle"),
    pytest.param("ResourceExhaustedError: OOM when allocating tensor with shape[48,112,112,96] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n", id="TensorFlow"),
])  # fmt: skip
def test_what_only_pytorch_has_is_not_told_to_others(log: str) -> None:
    ids = fixes(read(log))
    assert "smaller-batch" in ids
    assert "per_device_train_batch_size" not in str(read(log).findings)
    assert not ids & {"zero2-zero3", "fsdp-full-shard", "optimizer-8bit-paged", "quantise-4bit-8bit"}
