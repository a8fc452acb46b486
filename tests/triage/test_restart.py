"""What a restart needs, from the logs themselves: `stop` only where the same thing would happen again, and a near miss for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.api.fleet.verdict import exit_code, restart_verdict
from oomdoctor.errors import UsageError

LOADING = '  File "/home/me/fit.py", line 12, in main\n    model = AutoModelForCausalLM.from_pretrained(path).to("cuda")\n'
BACKWARD = '  File "/home/me/fit.py", line 31, in step\n    loss.backward()\n'
EVALUATING = '  File "/opt/venv/lib/python3.11/site-packages/transformers/trainer.py", line 4307, in evaluation_loop\n    outputs = model(**inputs)\n'
OWN = "Including non-PyTorch memory, this process has 38.20 GiB memory in use. "
BATCH = "{{'per_device_train_batch_size': {n}}}\n"


def bar(step: int) -> str:
    return f"{step // 10:3}%|          | {step}/1000 [01:00<09:00,  1.20it/s]\n"


def failure(
    frames: str, *, asked: str = "3.00", free: str = "1.12", used: str = OWN, unused: str = "1.10", allocated: str = "36.60"
) -> str:
    return (
        f"Traceback (most recent call last):\n{frames}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. "
        f"GPU 0 has a total capacity of 39.39 GiB of which {free} GiB is free. {used}Of the allocated memory {allocated} GiB is allocated "
        f"by PyTorch, and {unused} GiB is reserved by PyTorch but unallocated.\n"
    )


NO_FIGURES = f"Traceback (most recent call last):\n{LOADING}RuntimeError: CUDA error: out of memory\n"
ANOTHER = "Process 48213 has 22.10 GiB memory in use. Including non-PyTorch memory, this process has 16.10 GiB memory in use. "
OF_HOST = "slurmstepd: error: Detected 1 oom_kill event in StepId=771234.0. Some of the step tasks have been OOM Killed.\n"

ONE_START = {
    "while the model is loaded": (failure(LOADING), "stop"),
    "while a model is loaded again after a training": (bar(640) + failure(LOADING), "unknown"),
    "while the model is loaded, without figures: somebody else may hold the card": (NO_FIGURES, "unknown"),
    "at the first step": (bar(0) + failure(BACKWARD), "stop"),
    "at the step after the first update": (bar(1) + failure(BACKWARD), "stop"),
    "at the first step, with a batch that can be smaller": (BATCH.format(n=8) + bar(0) + failure(BACKWARD), "smaller"),
    "at the first step, with a batch of one": (BATCH.format(n=1) + bar(0) + failure(BACKWARD), "stop"),
    "at a step that no counter shows": (failure(BACKWARD), "unknown"),
    "early, and not at the first step": (bar(4) + failure(BACKWARD), "unknown"),
    "late": (bar(640) + failure(BACKWARD), "retry"),
    "at the first step of a later epoch, whose bar begins anew": (bar(640) + bar(1000) + bar(0) + failure(BACKWARD), "unknown"),
    "after other bars, at the first step": (
        "Map: 100%|##########| 640/640 [00:01<00:00, 500.00 examples/s]\n" + bar(0) + failure(BACKWARD),
        "stop",
    ),
    "while a model is loaded again, after losses without a counter": ("loss: 2.31\nloss: 2.02\n" + failure(LOADING), "unknown"),
    "late, in an evaluation": (bar(640) + failure(EVALUATING), "unknown"),
    "at the first step, while another process holds the card": (
        bar(0) + failure(BACKWARD, used=ANOTHER, allocated="14.50"),
        "other-node",
    ),
    "at the first step, and nobody says who holds the rest of the card": (
        bar(0) + failure(BACKWARD, used="", allocated="14.50"),
        "unknown",
    ),
    "at the first step, though there is room: a limit, or somebody else in between": (
        bar(0) + failure(BACKWARD, asked="1.00"),
        "unknown",
    ),
    "more than the whole card, at a step that no counter shows": (failure(BACKWARD, asked="41.00"), "stop"),
    "a server whose cache cannot hold one request": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
        "stop",
    ),
    "a server that finds its card taken": (
        "ValueError: Free memory on device (21.4/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.19 GiB).\n",
        "other-node",
    ),
    "a server that asks for more than a free card has": (
        "ValueError: Free memory on device (71.0/79.1 GiB) on startup is less than desired GPU memory utilization (0.95, 75.1 GiB).\n",
        "stop",
    ),
    "a server that runs out while it serves": ("RuntimeError: Prefill out of memory. Try to lower your batch size.\n", "unknown"),
    "at the first step, of a card in pieces": (bar(0) + failure(BACKWARD, unused="6.30", allocated="31.40"), "retry"),
    "at the first step, and what is reserved would not be enough": (
        bar(0) + failure(BACKWARD, asked="9.00", unused="6.30", allocated="31.40"),
        "stop",
    ),
    "of host memory": (bar(0) + OF_HOST, "more-memory"),
    "killed, and nobody says by whom": (bar(0) + "Killed\n", "unknown"),
    "of something else": (bar(0) + "Traceback (most recent call last):\nKeyError: 'loss'\n", "unknown"),
}


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("text", "retry"), ONE_START.values(), ids=ONE_START)
def test_a_job_that_failed(tmp_path: Path, text: str, retry: str) -> None:
    assert restart_verdict([written(tmp_path / "run.log", text)], redact=str).retry == retry


TWO_STARTS = {
    "at the same step as before": (bar(640) + failure(BACKWARD), bar(640) + failure(BACKWARD), "stop"),
    "at another step": (bar(320) + failure(BACKWARD), bar(640) + failure(BACKWARD), "retry"),
    "at the same step, for another request": (bar(640) + failure(BACKWARD, asked="7.00"), bar(640) + failure(BACKWARD), "retry"),
    "in the same evaluation": (bar(640) + failure(EVALUATING), bar(640) + failure(EVALUATING), "stop"),
    "at no step that a counter shows": (failure(BACKWARD), failure(BACKWARD), "unknown"),
    "of something else after a failure of memory": (failure(LOADING), "KeyError: 'loss'\n", "unknown"),
}


@pytest.mark.parametrize(("before", "text", "retry"), TWO_STARTS.values(), ids=TWO_STARTS)
def test_a_job_that_failed_twice(tmp_path: Path, before: str, text: str, retry: str) -> None:
    earlier, log = written(tmp_path / "cycle0.log", before), written(tmp_path / "cycle1.log", text)
    assert restart_verdict([log], before=[earlier], redact=str).retry == retry


def test_attempts_in_the_folder_of_a_job_are_told_apart(tmp_path: Path) -> None:
    for attempt in (0, 1):
        folder = tmp_path / f"none_ab12_x9q/attempt_{attempt}/0"
        folder.mkdir(parents=True)
        written(folder / "stderr.log", bar(640) + failure(BACKWARD))
    assert restart_verdict([str(tmp_path)], redact=str).retry == "stop"


def test_all_ranks_of_a_job_are_one_job(tmp_path: Path) -> None:
    ranks = [
        written(tmp_path / f"rank{n}.log", bar(0) + (failure(BACKWARD) if n == 1 else "NCCL WARN Call to connect returned\n"))
        for n in range(3)
    ]
    row = restart_verdict(ranks, redact=str)
    assert (row.retry, row.first_rank) == ("stop", 1)


def test_a_folder_of_many_jobs_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "sft-771234.out", failure(LOADING))
    written(tmp_path / "sft-771235.out", failure(LOADING))
    with pytest.raises(UsageError, match="2 jobs"):
        restart_verdict([str(tmp_path)], redact=str)


CODES = {
    "the same thing would happen": (failure(LOADING), {"plain": 1, "nvrx": 93, "job": 42}),
    "a smaller batch would do": (BATCH.format(n=8) + bar(0) + failure(BACKWARD), {"plain": 1, "nvrx": 93, "job": 42}),
    "more memory would do, which the scheduler can give": (OF_HOST, {"plain": 1, "nvrx": 0, "job": 0}),
    "another node would do": (bar(0) + failure(BACKWARD, used=ANOTHER, allocated="14.50"), {"plain": 0, "nvrx": 0, "job": 0}),
    "a restart may work": (bar(640) + failure(BACKWARD), {"plain": 0, "nvrx": 0, "job": 0}),
    "nobody knows": (failure(BACKWARD), {"plain": 3, "nvrx": 0, "job": 0}),
    "no memory failure": ("Training completed.\n", {"plain": 0, "nvrx": 0, "job": 0}),
    "an empty log": ("", {"plain": 2, "nvrx": 0, "job": 0}),
}


@pytest.mark.parametrize(("text", "codes"), CODES.values(), ids=CODES)
def test_launchers_get_their_codes(tmp_path: Path, text: str, codes: dict[str, int]) -> None:
    row = restart_verdict([written(tmp_path / "run.log", text)], redact=str)
    assert {scheme: exit_code(row, scheme) for scheme in codes} == codes
