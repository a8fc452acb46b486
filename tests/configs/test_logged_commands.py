"""Commands in a log: whose options they are, and what is in force by them."""

from __future__ import annotations

import pytest

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.settings import RunConfig
from oomdoctor.knowledge.pack import load_pack

GGML = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 2913.25 MiB on device 0: cudaMalloc failed: out of memory\n"
VLLM = "INFO 06-02 11:40:02 [gpu_model_runner.py:2100] Starting to load model /models/demo...\n"
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a total capacity of 22.36 GiB of which 120.88 MiB is free.\n"


def settings(log: str) -> RunConfig | None:
    return diagnose_logs(["run.log"], load_pack(), text=log.encode()).case.training


@pytest.mark.parametrize(
    ("log", "name", "value", "line"),
    [
        pytest.param("build: 6011\n-ub 4096 -c 8192\n" + GGML, "max_batched_tokens", 4096, 2, id="options alone"),
        pytest.param("$ ./llama-server -m a.gguf -ub 2048\n" + GGML, "max_batched_tokens", 2048, 1, id="behind a prompt"),
        pytest.param(".\\bin\\llama-cli.exe -m a.gguf -ub 1024\n" + GGML, "max_batched_tokens", 1024, 1, id="a command of Windows"),
        pytest.param("$ llama-server \\\n  -m a.gguf \\\n  -ub 512\n" + GGML, "max_batched_tokens", 512, 1, id="over several lines"),
        pytest.param("$ llama-server -ub 4096\n" + GGML + "$ llama-server -ub 256\n" + GGML, "max_batched_tokens", 256, 3, id="the last one"),
        pytest.param("+ srun launch.sh --nodes 1 --gpu-memory-utilization 0.93 --max-num-seqs 48\n" + VLLM + FULL, "max_num_seqs", 48, 1,
                     id="behind somebody's launcher"),
        pytest.param("--gpu-memory-utilization 0.98\n" + FULL, "memory_share", 0.98, 1, id="options show the program where nothing else does"),
    ],
)  # fmt: skip
def test_a_setting_of_a_command(log: str, name: str, value: float, line: int) -> None:
    run = settings(log)
    assert run is not None
    assert getattr(run.settings, name) == value
    assert (run.places[name].file, run.places[name].line) == ("run.log", line)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("- tried with -ub 4096 and it works\n" + GGML, id="a sentence with an option in it"),
        pytest.param("$ tar -x -c 5\n" + GGML, id="short options of anything"),
        pytest.param("$ ls -la -c 5\n" + GGML, id="a command that runs no model"),
    ],
)
def test_no_setting(log: str) -> None:
    run = settings(log)
    assert run is None or run.settings.known().keys().isdisjoint(("max_batched_tokens", "max_num_seqs", "max_model_len"))


def test_a_command_in_the_log_is_the_value_in_force_of_the_step() -> None:
    log = "$ llama-server -m a.gguf -ub 4096\n" + GGML + "graph_reserve: failed to allocate compute buffers\n"
    diagnosis = diagnose_logs(["run.log"], load_pack(), text=log.encode())
    first = diagnosis.findings[0].fixes[0]
    assert [(setting.key, setting.before, setting.to, setting.line) for setting in first.settings] == [("-ub", "4096", "2048", 1)]
