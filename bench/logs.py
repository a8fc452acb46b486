"""Generate logs of training runs with planted failures; the same arguments give the same bytes, whatever the number of processes.

    python bench/logs.py --size 1GiB --output train.log --truth train.truth
    python bench/logs.py --size 64MiB --shape nearmiss --failures none --output nearmiss.log
    python bench/logs.py --folder many --files 10000 --size 100KiB --failures random --truth many.truth

A log is a head, a body of blocks and an ending with the failures. Each block is drawn from the seed and its number, so that blocks can be
made by several processes, and a longer log begins like a shorter one. The truth holds one JSON object a line for each failure: `file`,
`kind`, `rank`, `offset` of the line of the message (in bytes of the text as UTF-8, without a byte order mark) and `fields` as printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, NamedTuple, TypeVar

Item = TypeVar("Item")
BLOCK = 4 << 20
STEPS = 20_000
"""Steps of training that a block stands for."""
SHAPES = {
    "mixed": "what trainers, launchers and libraries print, with redrawn progress bars",
    "clean": "the same without any warning about memory",
    "tqdm": "nearly only progress bars, redrawn by carriage returns: lines of many kilobytes",
    "jsonl": "one JSON object of metrics a line",
    "nearmiss": "every line has words of messages, and none says that something failed",
    "dense": "every line is a failure",
    "oneline": "mixed, in one line",
    "nul": "mixed, with holes of NUL as a file system leaves them",
    "crlf": "mixed, with CR LF",
    "utf16": "mixed, in UTF-16 with a byte order mark",
    "ansi": "mixed, with colours",
    "binary": "random bytes",
}
PREFIXES = ("none", "default", "srun", "cri")


class Dice(Random):
    """Random choices by `random()` alone, whose numbers are the same in all versions of Python."""

    def below(self, end: int) -> int:
        """Return a whole number from 0 to end - 1."""
        return int(self.random() * end)

    def between(self, low: float, high: float) -> float:
        """Return a number from low to high."""
        return low + (high - low) * self.random()

    def one_of(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]


class Planted(NamedTuple):
    """A failure: the line of its message, the values in it as printed, and whether a Python program raised it."""

    line: str
    fields: dict[str, Any]
    raised: bool = True


@dataclass(frozen=True)
class Form:
    """How a log looks."""

    shape: str
    prefix: str
    ranks: int
    seed: str


# ---- what a run prints while all is well

LOGGERS = ("trainer", "data.loader", "checkpoint.writer", "launch", "models.loader", "tokenizer", "eval.harness")
SENTENCES = (
    "resumed the data stream at shard {} of {}",
    "wrote shard {} of {} of the checkpoint",
    "learning rate warm-up ends at step {} (total {})",
    "gradient checkpointing is on for {} of {} layers",
    "packed {} samples into {} sequences",
    "validation starts with {} batches, {} workers",
    "tokenised {} documents, {} left",
    "sequence {} was cut to {} tokens",
    "all ranks reached the barrier after {} ms (limit {} ms)",
    "rotary table extended from {} to {} positions",
    "deleted the checkpoint of step {}, {} are kept",
)
WARNED = (
    ("torch/utils/data/dataloader.py:{}: UserWarning: this loader starts {} worker processes", "  warnings.warn("),
    ("torch/nn/parallel/distributed.py:{}: UserWarning: {} parameters had no gradient in the first step", "  self._check_buckets()"),
    ("transformers/generation/configuration.py:{}: UserWarning: `temperature` is set but sampling is off ({})", "  warnings.warn("),
)
LINKS = (
    "NCCL INFO Connected all rings, {} channels, {} us",
    "NCCL INFO Ring {:02} : 3 -> 4 via P2P/IPC, buffer {}",
    "NCCL INFO Using network IB, {} of {} ports up",
    "NCCL INFO comm {:#x} with {} channels: setup done",
)
NEAR = (
    "an OutOfMemoryError handler is installed on rank {} (attempt {} of {})",
    "memory of CUDA device {}: {} MiB allocated by PyTorch, {} MiB free",
    "NVML sees device {}: {} MiB used, {} MiB total, no process was killed",
    "oom_kill 0 and oom 0 in memory.events of cgroup {} after {} checks of {}",
    "kv blocks: {} on the GPU, {} on the CPU, block size {}, none out of reach",
    "torch.cuda.memory_reserved on rank {}: {} MiB, tried {} cached sizes",
    "the allocator served {} requests, {} from its cache, {} by cudaMalloc",
    "failures so far: RuntimeError {}, CUDA error {}, bus error {}",
)


def moment(step: int) -> str:
    """Return the time of a step, for a line."""
    return f"2026-03-{1 + step // 40_000 % 28:02} {step // 1700 % 24:02}:{step // 29 % 60:02}:{step * 7 % 60:02}"


def json_line(dice: Dice, step: int) -> str:
    """Return metrics as a JSON object."""
    return (
        f'{{"iteration": {step}, "lm_loss": {dice.between(0.7, 3.1):.5f}, "grad_norm": {dice.between(0.1, 2.0):.4f}, '
        f'"tokens": {step * 65_536}, "lr": {dice.between(1e-6, 3e-4):.4e}, "seconds": {dice.between(0.4, 2.2):.3f}, '
        f'"allocated_gib": {dice.between(20, 60):.2f}, "at": "{moment(step)}"}}'
    )


def dict_line(dice: Dice, step: int) -> str:
    """Return metrics as a trainer prints a dict."""
    loss, norm, rate = dice.between(0.7, 3.1), dice.between(0.1, 2.0), dice.between(1e-6, 3e-4)
    return f"{{'loss': {loss:.4f}, 'grad_norm': {norm:.6f}, 'learning_rate': {rate:.6e}, 'epoch': {step / 50_000:.3f}}}"


def table_line(dice: Dice, step: int) -> str:
    """Return metrics between bars."""
    return (
        f" [{moment(step)}] iteration {step:8}/  900000 | consumed samples: {step * 256:12} | elapsed time per iteration (ms): "
        f"{dice.between(700, 2100):.1f} | lm loss: {dice.between(0.7, 3.1):.6E} | grad norm: {dice.between(0.1, 2.0):.3f} | skipped: 0 |"
    )


def memory_line(dice: Dice, step: int) -> str:
    """Return how much memory is in use."""
    used = dice.between(20, 60)
    return (
        f"{moment(step)},{dice.below(1000):03} - root - INFO - step: {step}  loss: {dice.between(0.7, 3.1):7.4f}  memory: "
        f"{used:5.2f}GiB({used / 0.791:.2f}%)  tps: {dice.below(9000):,}  mfu: {dice.between(20, 50):.2f}%"
    )


def flush_line(dice: Dice, step: int) -> str:
    """Return DeepSpeed's warning that memory gets scarce."""
    return (
        f"[{moment(step)},{dice.below(1000):03}] [WARNING] [stage3.py:{2000 + dice.below(100)}:step] {1 + dice.below(4)} pytorch allocator "
        "cache flushes since last step. this happens when there is high memory pressure and is detrimental to performance."
    )


def logged_line(dice: Dice, step: int) -> str:
    """Return a line of the logging module."""
    sentence = dice.one_of(SENTENCES).format(dice.below(9000), dice.below(9000))
    return f"{moment(step)} | {dice.one_of(('INFO', 'INFO', 'WARNING'))} | {dice.one_of(LOGGERS)} | {sentence}"


def link_line(dice: Dice, rank: int) -> str:
    """Return what NCCL says while it connects."""
    return f"node{dice.below(40):02}:{dice.below(60_000)}:{dice.below(60_000)} [{rank}] " + dice.one_of(LINKS).format(
        dice.below(64), dice.below(9000)
    )


def bar(dice: Dice, step: int, redraws: int) -> str:
    """Return a progress bar that is drawn again and again in one line."""
    out = []
    for now in range(step, step + redraws):
        percent = now % 1000 // 10
        out.append(
            f"\rTrain: {percent:3}%|{'█' * (percent // 4):25}| {now}/900000 [{now // 3600}:{now // 60 % 60:02}:{now % 60:02}, "
            f"{dice.between(0.5, 3):5.2f}it/s]"
        )
    return "".join(out)


def near_line(dice: Dice) -> str:
    """Return a line with words of messages that says nothing of a failure."""
    return dice.one_of(NEAR).format(dice.below(80_000), dice.below(80_000), dice.below(80_000))


def prefixed(dice: Dice, form: Form, rank: int) -> str:
    """Return what a launcher writes before each line."""
    if form.prefix == "default":
        return f"[default{rank}]:"
    if form.prefix == "srun":
        return f"{rank:{len(str(form.ranks - 1))}}: "
    if form.prefix == "cri":
        clock = f"{dice.below(24):02}:{dice.below(60):02}:{dice.below(60):02}.{dice.below(10**9):09}"
        return f"2026-03-{1 + dice.below(28):02}T{clock}Z stdout F "
    return ""


def mixed_lines(dice: Dice, form: Form, step: int) -> Iterator[str]:
    """Yield lines of several sources in turn, without end."""
    bars = (0.96, 800) if form.shape == "tqdm" else (0.08, 15)
    while True:
        kind, rank, step = dice.random(), dice.below(form.ranks), step + 1
        if kind < bars[0]:
            redraws = 1 + dice.below(bars[1])
            step += redraws
            yield bar(dice, step, redraws)
            continue
        before, kind = prefixed(dice, form, rank), dice.random()
        if kind < 0.22:
            yield before + json_line(dice, step)
        elif kind < 0.42:
            yield before + dict_line(dice, step)
        elif kind < 0.54:
            yield before + table_line(dice, step)
        elif kind < 0.62:
            yield before + memory_line(dice, step)
        elif kind < 0.65:
            yield before + (logged_line(dice, step) if form.shape == "clean" else flush_line(dice, step))
        elif kind < 0.82:
            yield before + logged_line(dice, step)
        elif kind < 0.93:
            yield before + link_line(dice, rank)
        elif kind < 0.97:
            first, second = dice.one_of(WARNED)
            yield before + "/opt/venv/lib/python3.11/site-packages/" + first.format(dice.below(2000), dice.below(64))
            yield before + second
        else:
            yield before + f"第 {step} 步，损失 {dice.between(0.7, 3.1):.4f}，每秒 {dice.below(9000)} 个词元"


def lines(dice: Dice, form: Form, step: int) -> Iterator[str]:
    """Yield the lines of a body, without end."""
    if form.shape == "jsonl":
        while True:
            step += 1
            yield json_line(dice, step)
    if form.shape == "nearmiss":
        while True:
            yield prefixed(dice, form, dice.below(form.ranks)) + near_line(dice)
    if form.shape == "dense":
        while True:
            rank = dice.below(form.ranks)
            yield f"{prefixed(dice, form, rank)}[rank{rank}]: {cuda_oom(dice, rank).line}"
    yield from mixed_lines(dice, form, step)


# ---- failures


def gib(size: float) -> str:
    """Print GiB as torch does."""
    return f"{size:.2f} GiB" if size >= 1 else f"{size * 1024:.2f} MiB"


def cuda_oom(dice: Dice, rank: int) -> Planted:
    """Plant the message of PyTorch 2.1 and later."""
    total, requested = dice.one_of((11.76, 22.06, 44.52, 79.25, 93.1, 139.81)), dice.one_of((0.0625, 0.31, 0.98, 2.33, 5.25, 17.5))
    free, other = min(1.9, requested) * dice.random(), dice.one_of((0.0, 0.0, 0.73))
    process = total - free - other - 0.05
    values = (requested, total, free, process, process * 0.88, process * 0.09)
    names = ("requested", "capacity", "free", "used", "allocated", "reserved_unallocated")
    fields: dict[str, Any] = {name: gib(value) for name, value in zip(names, values)}
    beside = f"Process {2000 + dice.below(60_000)} has {gib(other)} memory in use. " if other else ""
    line = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {fields['requested']}. GPU {rank} has a total capacity of "
        f"{fields['capacity']} of which {fields['free']} is free. {beside}Including non-PyTorch memory, this process has {fields['used']} "
        f"memory in use. Of the allocated memory {fields['allocated']} is allocated by PyTorch, and {fields['reserved_unallocated']} is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )
    return Planted(line, fields | {"device": rank})


def cuda_oom_1x(dice: Dice, rank: int) -> Planted:
    """Plant the message of PyTorch 1."""
    total, requested = dice.one_of((7.79, 10.92, 15.78, 23.65, 39.59)), dice.one_of((0.0488, 0.38, 1.75, 3.11))
    values = (requested, total, total * 0.81, min(requested, 1.1) * 0.7, total * 0.9)
    fields: dict[str, Any] = {name: gib(value) for name, value in zip(("requested", "capacity", "allocated", "free", "reserved"), values)}
    line = (
        f"RuntimeError: CUDA out of memory. Tried to allocate {fields['requested']} (GPU {rank}; {fields['capacity']} total capacity; "
        f"{fields['allocated']} already allocated; {fields['free']} free; {fields['reserved']} reserved in total by PyTorch)"
    )
    return Planted(line, fields | {"device": rank})


def nvml_symbol(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant the assert that hides a failed allocation where the driver lacks a function."""
    name = "nvmlDeviceGetNvLinkRemoteDeviceType"
    line = (
        f'RuntimeError: r.{name}_ INTERNAL ASSERT FAILED at "../c10/cuda/driver_api.cpp":{20 + dice.below(20)}, please report a bug to '
        f"PyTorch. Can't find {name}: /usr/lib64/libnvidia-ml.so.1: undefined symbol: {name}"
    )
    return Planted(line, {"symbol": name})


def nvml_success(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant the assert of the allocator when NVML answers with an error."""
    number = 800 + dice.below(300)
    where = f'"/pytorch/c10/cuda/CUDACachingAllocator.cpp":{number}'
    return Planted(f"RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at {where}, please report a bug to PyTorch.", {"line": number})


def kernel_oom(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant what the Linux kernel says of a process that it ended."""
    pid, resident = 2000 + dice.below(60_000), 50_000_000 + dice.below(300_000_000)
    line = (
        f"[{dice.below(900_000)}.{dice.below(10**6):06}] Out of memory: Killed process {pid} (python3) total-vm:{resident * 3}kB, "
        f"anon-rss:{resident}kB, file-rss:{dice.below(90_000)}kB, shmem-rss:{dice.below(90_000)}kB, UID:1000 pgtables:{resident // 500}kB "
        "oom_score_adj:0"
    )
    return Planted(line, {"pid": pid, "anon_rss_kb": resident}, raised=False)


def slurm_oom(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant what Slurm says when the kernel ended tasks of a step."""
    job, events = 400_000 + dice.below(500_000), 1 + dice.below(3)
    line = (
        f"slurmstepd: error: Detected {events} oom_kill event{'s' if events > 1 else ''} in StepId={job}.0. Some of the step tasks have "
        "been OOM Killed."
    )
    return Planted(line, {"job": job, "events": events}, raised=False)


def loader_shm(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant a loader worker that found /dev/shm full."""
    pid = 2000 + dice.below(60_000)
    line = (
        f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Bus error. It is possible that dataloader's workers are out of "
        "shared memory. Please try to raise your shared memory limit."
    )
    return Planted(line, {"pid": pid})


def cublas_handle(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant a cuBLAS handle for which there was no memory."""
    return Planted("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", {})


def nccl_oom(dice: Dice, rank: int) -> Planted:
    """Plant NCCL's warning that a buffer was refused."""
    where = f"include/alloc.h:{90 + dice.below(200)}"
    line = f"node{dice.below(40):02}:{dice.below(60_000)}:{dice.below(60_000)} [{rank}] {where} NCCL WARN Cuda failure 'out of memory'"
    return Planted(line, {"device": rank}, raised=False)


def vllm_cache(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant a server whose share leaves nothing for its cache."""
    line = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    return Planted(line, {})


def cpu_allocator(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant a request for host memory that torch could not serve."""
    size = (1 + dice.below(90)) << 29
    line = (
        f"RuntimeError: [enforce fail at alloc_cpu.cpp:{90 + dice.below(40)}] err == 0. DefaultCPUAllocator: can't allocate memory: you "
        f"tried to allocate {size} bytes. Error code 12 (Cannot allocate memory)"
    )
    return Planted(line, {"bytes": size})


def numpy_array(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant a NumPy array for which there was no memory."""
    rows, columns = 30_000 + dice.below(60_000), 30_000 + dice.below(60_000)
    line = (
        f"numpy.core._exceptions._ArrayMemoryError: Unable to allocate {rows * columns * 4 / 2**30:.2f} GiB for an array with shape "
        f"({rows}, {columns}) and data type float32"
    )
    return Planted(line, {"shape": [rows, columns]})


def xla_oom(dice: Dice, rank: int) -> Planted:  # noqa: ARG001 - the same signature for all
    """Plant XLA's refusal of a request."""
    size = 1 << (27 + dice.below(9))
    line = f"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {size} bytes."
    return Planted(line, {"bytes": size})


def killed_worker(dice: Dice, rank: int) -> Planted:
    """Plant a worker of torchrun that SIGKILL ended, which may or may not mean memory."""
    pid = 2000 + dice.below(60_000)
    line = (
        f"E0302 04:11:57.204000 {pid - 7} torch/distributed/elastic/multiprocessing/api.py:{800 + dice.below(90)}] failed (exitcode: -9) "
        f"local_rank: {rank} (pid: {pid}) of binary: /opt/venv/bin/python3"
    )
    return Planted(line, {"pid": pid, "exitcode": -9}, raised=False)


FAILURES: dict[str, Callable[[Dice, int], Planted]] = {
    "cuda-oom": cuda_oom, "cuda-oom-1x": cuda_oom_1x, "nvml-symbol": nvml_symbol, "nvml-success": nvml_success, "kernel-oom": kernel_oom,
    "slurm-oom": slurm_oom, "loader-shm": loader_shm, "cublas-handle": cublas_handle, "nccl-oom": nccl_oom, "vllm-cache": vllm_cache,
    "cpu-allocator": cpu_allocator, "numpy-array": numpy_array, "xla-oom": xla_oom, "killed-worker": killed_worker,
}  # fmt: skip
COMMON = ("cuda-oom", "cuda-oom-1x", "nvml-symbol", "kernel-oom", "loader-shm")
"""What is planted where nothing is said."""
CALLS = (
    ("/data/run/finetune.py", "<module>", "run(parse_arguments())"),
    ("/data/run/finetune.py", "run", "loop.step(batch)"),
    ("/data/run/loop.py", "step", "output = self.model(**batch)"),
    ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)"),
    ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight, self.bias)"),
)
AFTERWARDS = (
    "E0302 04:11:58.113000 2001 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0 (pid: 2044) of "
    "binary: /opt/venv/bin/python3",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "============================================================",
    "finetune.py FAILED",
    "------------------------------------------------------------",
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2026-03-02_04:11:58",
    "  rank      : 0 (local_rank: 0)",
    "  exitcode  : 1 (pid: 2044)",
    "  error_file: <N/A>",
    "============================================================",
)


def ending(form: Form, kinds: Sequence[str], first_rank: int) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the last lines of a log, each with the truth of the failure that it holds."""
    dice = Dice(f"{form.seed}/ending")
    for number, kind in enumerate(kinds):
        rank = (first_rank + number) % form.ranks
        planted, before = FAILURES[kind](dice, rank), prefixed(dice, form, rank)
        if planted.raised:
            before += f"[rank{rank}]: " if form.ranks > 1 else ""
            yield before + "Traceback (most recent call last):", None
            for path, function, code in CALLS[: 2 + dice.below(len(CALLS) - 1)]:
                yield f'{before}  File "{path}", line {1 + dice.below(900)}, in {function}', None
                yield f"{before}    {code}", None
        yield before + planted.line, {"kind": kind, "rank": rank, "fields": planted.fields}
    if kinds:
        yield from ((line, None) for line in AFTERWARDS)


# ---- bytes


def head(form: Form) -> str:
    """Return the first lines of a run, which name its versions and its model by the number of parameters."""
    return (
        f"torch 2.8.0+cu128, transformers 4.56.1, deepspeed 0.17.5, world size {form.ranks}\n"
        "NCCL version 2.27.3+cuda12.9\n"
        "trainable params: 40,370,176 || all params: 7,655,986,688 || trainable%: 0.5273\n"
    )


def reshaped(text: str, form: Form) -> str:
    """Return a piece of text in the shape of a log; what changes bytes only is done by `encoded`."""
    if form.shape == "oneline":
        return text.replace("\n", " ")
    if form.shape == "crlf":
        return text.replace("\n", "\r\n")
    if form.shape == "ansi":
        text = re.sub(r"\b(INFO|WARNING)\b", "\x1b[33m\\1\x1b[0m", text)
        return re.sub(r"(loss)\b", "\x1b[1m\\1\x1b[22m", text)
    return text


def encoded(text: str, form: Form) -> bytes:
    """Return a piece of text as it stands in the file."""
    return text.encode("utf-16-le" if form.shape == "utf16" else "utf-8")


def block(form: Form, number: int, size: int) -> bytes:
    """Return one block of a body: `size` bytes before it is reshaped."""
    dice = Dice(f"{form.seed}/{number}")
    if form.shape == "binary":
        return dice.getrandbits(8 * size).to_bytes(size, "little") if size else b""
    out: list[str] = []
    length = 0
    for line in lines(dice, form, number * STEPS):
        length += len(line.encode()) + 1
        if length > size:
            break
        out.append(line)
    text = "".join(f"{line}\n" for line in out)
    rest = size - len(text.encode())
    text += " " * (rest - 1) + "\n" if rest else ""
    data = encoded(reshaped(text, form), form)
    return with_holes(data, dice) if form.shape == "nul" else data


def with_holes(data: bytes, dice: Dice) -> bytes:
    """Return data of the same length with a hole of NUL in each quarter of a mebibyte."""
    out = bytearray(data)
    for start in range(0, len(out) - 8192, 1 << 18):
        at, length = start + dice.below(4096), 512 + dice.below(3584)
        out[at : at + length] = bytes(length)
    return bytes(out)


def write_log(file: BinaryIO, form: Form, size: int, kinds: Sequence[str], first_rank: int = 0, jobs: int = 1) -> list[dict[str, Any]]:
    """Write a log of `size` bytes before it is reshaped; returns the truths, with offsets into its text as UTF-8."""
    text = "" if form.shape == "binary" else head(form)
    last = [] if form.shape == "binary" else list(ending(form, kinds, first_rank))
    body = max(0, size - len(text.encode()) - sum(len(line.encode()) + 1 for line, _ in last))
    if form.shape == "utf16":
        file.write(b"\xff\xfe")
    file.write(encoded(reshaped(text, form), form))
    offset = len(reshaped(text, form).encode())
    sizes = [min(BLOCK, body - start) for start in range(0, body, BLOCK)]
    with ProcessPoolExecutor(jobs) if jobs > 1 and len(sizes) > 1 else nullcontext() as pool:
        for start in range(0, len(sizes), 4 * jobs):  # so that no more than this waits to be written
            part = sizes[start : start + 4 * jobs]
            for data in (pool.map if pool else map)(partial(block, form), range(start, start + len(part)), part):
                file.write(data)
                offset += len(data.decode("utf-16-le").encode()) if form.shape == "utf16" else len(data)
    truths = []
    for line, truth in last:
        if truth is not None:
            truths.append({**truth, "offset": offset})
        piece = reshaped(f"{line}\n", form)
        file.write(encoded(piece, form))
        offset += len(piece.encode())
    return truths


def chosen(failures: str, form: Form) -> tuple[str, ...]:
    """Return the kinds of failures that `--failures` asks for."""
    if failures == "none" or form.shape == "binary":
        return ()
    if failures == "random":
        return (Dice(f"{form.seed}/kind").one_of(tuple(FAILURES)),)
    return tuple(FAILURES) if failures == "all" else tuple(failures.split(","))


def write_small(folder: str, form: Form, size: int, failures: str, share: float, number: int) -> list[dict[str, Any]]:
    """Write one of many small logs, a `share` of which has one failure."""
    own = replace(form, seed=f"{form.seed}/file {number}")
    dice = Dice(own.seed)
    kinds = chosen(failures, own) if dice.random() < share else ()
    kinds = (dice.one_of(kinds),) if kinds else ()
    name = f"{number // 1000:03}/run-{number:06}.log"
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        truths = write_log(file, own, int(size * dice.between(0.5, 1.5)), kinds, dice.below(form.ranks))
    return [{"file": name, **truth} for truth in truths]


def parse_size(text: str) -> int:
    """Return the bytes of `100KiB`, `1GiB` or a bare number."""
    found = re.fullmatch(r"(\d+)([KMG]iB)?", text)
    if found is None:
        raise argparse.ArgumentTypeError("a size such as 4096, 100KiB, 64MiB or 1GiB")
    return int(found[1]) << {None: 0, "KiB": 10, "MiB": 20, "GiB": 30}[found[2]]


def parse_failures(text: str) -> str:
    """Return what `--failures` asks for, if it is known."""
    unknown = [name for name in text.split(",") if name not in FAILURES]
    if text not in ("all", "none", "random") and unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among all, none, random, {', '.join(FAILURES)}")
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one log, or a folder of small ones, and the truth about them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default="64MiB", help="bytes before reshaping; with --folder the mean of all files")
    parser.add_argument("--shape", choices=SHAPES, default="mixed", help="; ".join(f"{name}: {what}" for name, what in SHAPES.items()))
    parser.add_argument("--prefix", choices=PREFIXES, default="none", help="what stands before each line: torchrun, srun, a container")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--failures", type=parse_failures, default=",".join(COMMON), help="kinds with commas between, all, none, random")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--output", help="the log, or - for standard output")
    parser.add_argument("--folder", help="write --files small logs below this folder instead")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.2, help="of the files with a failure")
    parser.add_argument("--truth", help="the file for what was planted, one JSON object a line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; the bytes are the same with any number")
    options = parser.parse_args(arguments)
    if bool(options.output) == bool(options.folder) or options.ranks < 1:
        parser.error("give either --output or --folder, and at least one rank")
    form = Form(options.shape, options.prefix, options.ranks, options.seed)
    if options.folder:
        write = partial(write_small, options.folder, form, options.size, options.failures, options.share)
        with ProcessPoolExecutor(options.jobs) as pool:
            truths = [truth for found in pool.map(write, range(options.files), chunksize=64) for truth in found]
    else:
        name = "-" if options.output == "-" else Path(options.output).name
        with nullcontext(sys.stdout.buffer) if name == "-" else open(options.output, "wb") as file:
            found = write_log(file, form, options.size, chosen(options.failures, form), jobs=options.jobs)
        truths = [{"file": name, **truth} for truth in found]
    if options.truth:
        Path(options.truth).write_text("".join(json.dumps(truth) + "\n" for truth in truths))


if __name__ == "__main__":
    main()
