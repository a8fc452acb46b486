"""Steps are those of the program, the machine and the way of running that a log shows: each a positive and a near miss."""

from __future__ import annotations

import pytest

import oomdoctor
from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.findings.platform import card, is_native

REFUSED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 84.00 MiB. GPU 0 has a total capacity of {total} GiB of which 51.31 MiB is free. "
    "Including non-PyTorch memory, this process has {held} GiB memory in use. Of the allocated memory {held} GiB is allocated by PyTorch, and "
    "{idle} MiB is reserved by PyTorch but unallocated.\n"
)
FULL = REFUSED.format(total="23.65", held="23.20", idle="112.40")
NODE = (
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 10.0.0.7, ID: 51aa) where "
    "the task (task ID: b2, name=parse, pid=771, memory used={used}GB) was running was 59.40GB / 62.00GB (0.958065), which exceeds the memory "
    "usage threshold of 0.95.\n"
)


def steps(log: str) -> list[str]:
    """Return the ids of all steps, in their order."""
    return [fix.id for fix in unique_fixes(oomdoctor.diagnose(log.encode()).findings)]


CARDS = [
    ("a 5090 in a sentence without blanks", "之前用4070的时候能正常跑，换成5090就不行了", "blackwell"),
    ("an architecture of Blackwell", "nvcc fatal: compute_120, sm_120", "blackwell"),
    ("the graphics of a processor", "AMD Radeon 8060S Graphics (sm_115)", "amd-apu"),
    ("a desktop with one memory", "NVIDIA GB10", "spark"),
    ("a port is no card", "listening on 15090", None),
    ("a card for which nothing differs", "NVIDIA A100-SXM4-80GB", None),
]
NATIVE = [
    ("a line of a C++ source", "CUDA error at /src/ggml/src/ggml-cuda/ggml-cuda.cu:2338", True),
    ("a program of ggml", "ggml_vulkan: Device memory allocation of size 3959422976 failed.", True),
    ("a script", 'File "train.py", line 3, in <module>', False),
    ("prose", "the accelerator ran out of memory", False),
]


@pytest.mark.parametrize(("line", "name"), [pytest.param(line, name, id=says) for says, line, name in CARDS])
def test_the_card_is_known_by_what_people_write(line: str, name: str | None) -> None:
    assert card([line]) == name


@pytest.mark.parametrize(("line", "native"), [pytest.param(line, native, id=says) for says, line, native in NATIVE])
def test_a_program_of_cpp_is_known_by_its_sources(line: str, native: bool) -> None:
    assert is_native([line]) is native


FIRST = [
    ("a program that nobody knows is told no key of a trainer", "arena: device allocation of 1792.00 MiB failed: out of memory\n", "less-at-a-time"),
    ("a script in Python is told of its batch", "arena.py: device allocation of 1792.00 MiB failed: out of memory\n", "smaller-batch"),
    ("a processor with graphics has a limit of its own", "backend on AMD Radeon 8060S\nallocation of 1792.00 MiB failed: device out of memory\n",
     "raise-gtt-limit"),
    ("a server of GGUF files takes another build", "ggml_cuda_compute_forward: MUL_MAT failed\nCUDA error: no kernel image is available for "
     "execution on the device\n", "build-of-the-program-for-this-card"),
    ("a wheel is replaced", "RuntimeError: CUDA error: no kernel image is available for execution on the device\n", "install-matching-torch"),
    ("the old cuBLAS of a new card", "Floating point exception (core dumped)\n", "newer-cublas"),
    ("a card of Turing has no such cuBLAS", "on a Tesla T4:\nFloating point exception (core dumped)\n", "locate-native-crash"),
    ("a rank that ended by SIGFPE", "E0124 api.py:833] failed (exitcode: -8) local_rank: 2 (pid: 1541) of binary: /opt/env/bin/python3.10\n",
     "newer-cublas"),
    ("a kernel's report without figures is read first", "[812.1] Out of memory: Killed process 6203 (python3)\n", "read-who-held-the-memory"),
    ("a mask of one long sample", '  File "/opt/venv/lib/python3.11/site-packages/transformers/masking_utils.py", line 52, in and_mask\n'
     "    result = result & mask(b, h, q, k)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 GiB.\n",
     "cap-the-length-of-a-sample"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "first"), [pytest.param(log, first, id=says) for says, log, first in FIRST])
def test_the_first_step_is_of_this_world(log: str, first: str) -> None:
    assert steps(log)[0] == first


NEVER = [
    ("one process holds the node, so the number of tasks is no lever", NODE.format(used="51.90"), "ray-memory-settings"),
    ("a framework starts its actors itself", "verl/trainer/ppo/ray_trainer.py\n" + 'File "/opt/verl/trainer/ppo/ray_trainer.py", line 3, in fit\n'
     + NODE.format(used="6.90"), "ray-memory-settings"),
    ("pictures that are made have no batch of training", "Wan2.1 t2v-14B, vae tiling off\n" + FULL, "gradient-checkpointing"),
    ("a server above its share does not gain by a smaller one", "vllm serve models/demo --gpu-memory-utilization 0.6\nINFO 10-02 11:02:10 "
     "[gpu_model_runner.py:2602] Starting to load model models/demo...\n" + FULL, "lower-serving-share"),
]  # fmt: skip
STILL = [
    ("several tasks share the node", NODE.format(used="6.90"), "ray-memory-settings"),
    ("pictures that a run trains on have one", "Wan2.1 lora, train_batch_size 4\n" + FULL, "gradient-checkpointing"),
    ("a server within its share lowers it", "vllm serve models/demo --gpu-memory-utilization 0.95\nINFO 10-02 11:02:10 "
     "[gpu_model_runner.py:2602] Starting to load model models/demo...\n" + FULL, "lower-serving-share"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "step"), [pytest.param(log, step, id=says) for says, log, step in NEVER])
def test_a_step_of_another_world_is_left_out(log: str, step: str) -> None:
    assert step not in steps(log)


@pytest.mark.parametrize(("log", "step"), [pytest.param(log, step, id=says) for says, log, step in STILL])
def test_a_step_of_this_world_stays(log: str, step: str) -> None:
    assert step in steps(log)


SERVED = [
    ("a small card: the model is too large more often", REFUSED.format(total="15.58", held="15.20", idle="20.00"), "server-loading"),
    ("a large card", REFUSED.format(total="79.19", held="74.90", idle="20.00"), "server-after-loading"),
]


@pytest.mark.parametrize(("log", "first"), [pytest.param(log, first, id=says) for says, log, first in SERVED])
def test_a_server_that_left_one_line_has_two_times_to_die(log: str, first: str) -> None:
    phases = oomdoctor.diagnose(
        ("[2026-11-20 16:41:57] Received sigquit from a child process. It usually means the child failed.\n" + log).encode()
    ).open_phase
    assert phases is not None
    assert phases.phases[0].id == first
