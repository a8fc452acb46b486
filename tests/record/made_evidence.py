"""Evidence folders made by hand, in the form of docs/evidence-folder.md: what a recorder leaves of a card whose allocator is simulated."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from oomdoctor.simulation.allocator import CachingAllocator, OutOfMemory
from oomdoctor.simulation.blocks import Block
from oomdoctor.simulation.requests import Frame, RequestLog, Site
from oomdoctor.simulation.settings import AllocatorSettings, segment_size
from oomdoctor.simulation.snapshot import snapshot

MIB, GIB = 1 << 20, 1 << 30
BEGIN = 1_790_000_000.0
NAMES = ("t", "device", "allocated", "allocated_peak", "reserved", "inactive_split", "step")
SITE = "/opt/venv/lib/python3.12/site-packages/torch"
FORWARD = (f"{SITE}/nn/modules/linear.py:125:forward", f"{SITE}/nn/modules/module.py:1775:_call_impl", "/srv/fit.py:40:main")
LOSS = (f"{SITE}/nn/functional.py:3494:cross_entropy", f"{SITE}/nn/modules/loss.py:1297:forward", "/srv/fit.py:42:main")
COLLECT = (
    "/opt/venv/lib/python3.12/site-packages/transformers/trainer_pt_utils.py:120:nested_concat",
    "/opt/venv/lib/python3.12/site-packages/transformers/trainer.py:4400:evaluation_loop",
    "/srv/fit.py:50:main",
)
STATES = (f"{SITE}/optim/adamw.py:152:_init_group", f"{SITE}/optim/optimizer.py:500:wrapper", "/srv/fit.py:44:main")
MASKED = (
    'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1016, please report a bug to PyTorch.'
)


class Card:
    """A process with a card of 16 GiB, second by second. `others` is what somebody else holds of it."""

    def __init__(
        self, folder: Path, *, total: int = 16 * GIB, allowed: int | None = None, others: int = 0, rank: int | None = None
    ) -> None:
        self.folder, self.total, self.others = folder, total, others
        self.limit = total if allowed is None else allowed
        self.allocator = CachingAllocator(AllocatorSettings(), min(self.limit, total - others))
        self.time, self.step = BEGIN, 0
        self.records: list[tuple[float, ...]] = []
        self._stacks: list[tuple[str, ...]] = [()]
        self._key = f"{'' if rank is None else f'rank-{rank}.'}pid-{4000 + (rank or 0)}"
        (folder / "ranks").mkdir(parents=True, exist_ok=True)

    def ask(self, size: int, *stack: str) -> Block:
        """Ask for bytes, where the frames are recorded (level 1) at `stack`, innermost first."""
        if stack not in self._stacks:
            self._stacks.append(stack)
        return self.allocator.allocate(size, self._stacks.index(stack))

    def give(self, *blocks: Block) -> None:
        """Free blocks."""
        for block in blocks:
            self.allocator.free(block)

    def tick(self, *, step: bool = True) -> None:
        """Let a second pass, in which the recorder counts; a step ends with it."""
        self.step += step
        self.time += 1
        card = self.allocator
        self.records.append((self.time, 0, card.allocated, card.most_allocated, card.reserved, card.reserved - card.allocated, self.step))

    def steps(self, number: int, size: int = GIB, *, kept: int = 0) -> None:
        """Train for so many steps: each asks for a batch of `size` and frees it, and keeps `kept` bytes."""
        for _ in range(number):
            batch = self.ask(size)
            self.tick(step=False)
            if kept:
                self.ask(kept)
            self.give(batch)
            self.tick()

    def dies(
        self,
        size: int,
        stack: Sequence[str] = FORWARD,
        *,
        message: str | None = None,
        went_on: bool = False,
        gradients: bool | None = None,
    ) -> Path:
        """Ask for bytes that are refused, and write the folder."""
        try:
            self.ask(size)
        except OutOfMemory as refused:
            self._write(refused.size, stack, message, went_on=went_on, gradients=gradients)
            return self.folder
        raise AssertionError("the request was served")

    def _write(self, size: int, stack: Sequence[str], message: str | None, *, went_on: bool, gradients: bool | None) -> None:
        card = self.allocator
        free = self.total - self.others - card.reserved
        figures = {
            "allocated_bytes": card.allocated,
            "reserved_bytes": card.reserved,
            "inactive_split_bytes": card.reserved - card.allocated,
        }
        refused = {
            "time": self.time + 0.5,
            "device": 0,
            "driver_request_bytes": segment_size(size),
            "total_bytes": self.limit,
            "free_bytes": free,
            "stats": {name: {"all": {"current": figure, "peak": figure}} for name, figure in figures.items()},
            "stack": list(stack),
            "gradients": gradients,
            "step": self.step,
        }
        exception = {
            "time": self.time + 0.6,
            "type": "RuntimeError",
            "text": message or "CUDA out of memory.",
            "traceback": f"{_traceback(stack)}\n{message or _message(size, self.total, free, card)}\n",
        }
        if went_on:
            self._json("end.json", {"time": self.time + 9, "ooms": 1})
        else:
            self._json("exception.json", exception)
        self._json("hello.json", {"pid": 4000, "torch": "2.13.0", "backend": "cuda", "level": 1})
        self._json("oom-1.json", refused)
        (self.folder / "ranks" / f"{self._key}.oom-1.pickle").write_bytes(self._snapshot())
        (self.folder / "ranks" / f"{self._key}.ring").write_bytes(ring(self.records))
        used = card.reserved + self.others + 500 * MIB
        lines = [{"t": at, "rss": 3 * GIB, "available": 40 * GIB, "total": 64 * GIB, "processes": {"4000": 3 * GIB},
                  "cards": [{"index": 0, "used": min(used, self.total), "total": self.total, "ours": card.reserved + 500 * MIB}]}
                 for at in (self.time - 1, self.time)]  # fmt: skip
        (self.folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        code = 0 if went_on else 1
        run = {"schema": "oomdoctor/evidence/v1", "command": ["python", "fit.py"], "start": BEGIN, "end": self.time + 10, "exit_code": code, "level": 1,
               "counters": {"version": 2, "oom_kill": 0}, "host_oom_kills": 0}  # fmt: skip
        (self.folder / "run.json").write_text(json.dumps(run))

    def _snapshot(self) -> bytes:
        """Return the state as torch saves it where no history is kept: blocks with the frames that asked for them."""
        sites = tuple(Site("", tuple(Frame(*_place(place)) for place in stack)) for stack in self._stacks)
        state = snapshot(self.allocator, RequestLog(requests=(), sites=sites))
        for segment in cast("list[dict[str, list[dict[str, list[object]]]]]", state["segments"]):
            for block in segment["blocks"]:
                # The first frame of a simulated request is the operation itself.
                block["frames"] = block["frames"][1:]
        return pickle.dumps({**state, "device_traces": [[]]}, protocol=4)

    def _json(self, name: str, value: object) -> None:
        (self.folder / "ranks" / f"{self._key}.{name}").write_text(json.dumps(value))


def ring(records: Sequence[Sequence[float]]) -> bytes:
    """Return the file of a ring that holds records."""
    head = json.dumps({"names": NAMES, "pid": 4000, "rank": None}).encode()
    first = struct.pack("<8sIIII", b"OOMRING1", len(head), max(1, len(records)), len(NAMES), 0)
    body = b"".join(struct.pack(f"<{len(NAMES)}d", *record) for record in records) or bytes(8 * len(NAMES))
    return first + head + struct.pack("<Q", len(records)) + body


def _place(place: str) -> tuple[str, int, str]:
    file, line, name = place.rsplit(":", 2)
    return file, int(line), name


def _traceback(stack: Sequence[str]) -> str:
    frames = [frame.rsplit(":", 2) for frame in reversed(stack)]
    return "Traceback (most recent call last):\n" + "\n".join(f'  File "{file}", line {line}, in {name}' for file, line, name in frames)


def _message(size: int, total: int, free: int, card: CachingAllocator) -> str:
    """Return torch's message as it is without NVML (c10/cuda/CUDACachingAllocator.cpp of 2.13)."""
    asked, whole, left, live, unused = (
        f"{part / GIB:.2f} GiB" for part in (size, total, free, card.allocated, card.reserved - card.allocated)
    )
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {whole} of which {left} is free. "
        f"Of the allocated memory {live} is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated."
    )
