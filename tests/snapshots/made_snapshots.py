"""Snapshots made by hand: what a program does, request by request, in the form that torch writes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MIB = 1 << 20
_BASE = 0x7F00_0000_0000
_FAR = 1 << 40
Fields = dict[str, object]


def frames(*places: str) -> list[Fields]:
    """Return frames of `file:line:function`, innermost first."""
    out: list[Fields] = []
    for place in places:
        file, line, name = place.rsplit(":", 2)
        out.append({"filename": file, "line": int(line), "name": name})
    return out


class Program:
    """One card: requests one after another, each segment of its own size unless a hole is reused."""

    def __init__(self, *, device: int = 0) -> None:
        self.device = device
        self.trace: list[Fields] = []
        self.annotations: list[Fields] = []
        self._live: dict[int, tuple[int, list[Fields], int]] = {}
        self._segments: dict[int, tuple[int, int]] = {}
        self._next = _BASE
        self._time = 1_700_000_000_000_000

    def ask(self, size: int, *places: str, at: int | None = None, stream: int = 0) -> int:
        """Ask for bytes in a segment of their own, or at an address that is reserved; return the address."""
        address = self.reserve(size, stream=stream) if at is None else at
        stack = frames(*places)
        self._live[address] = (size, stack, stream)
        self._add("alloc", addr=address, size=size, frames=stack, stream=stream)
        return address

    def reserve(self, size: int, *, stream: int = 0) -> int:
        """Get a segment of the driver; return its address."""
        address = self._next
        self._next += _FAR >> 10
        self._segments[address] = (size, stream)
        self._add("segment_alloc", addr=address, size=size, frames=[], stream=stream)
        return address

    def free(self, address: int) -> None:
        """Free a block."""
        size, _, stream = self._live.pop(address)
        for action in ("free_requested", "free_completed"):
            self._add(action, addr=address, size=size, frames=[], stream=stream)

    def give_back(self, address: int) -> None:
        """Give a segment back to the driver."""
        self._add("segment_free", addr=address, size=self._segments.pop(address)[0], frames=[], stream=0)

    def fail(self, size: int, *places: str, free: int = 0) -> None:
        """Record a request that failed, with what the driver had free."""
        self._add("oom", device_free=free, size=size, frames=frames(*places), stream=0)

    @contextmanager
    def optimizer_step(self) -> Iterator[None]:
        """Annotate what happens inside as torch annotates a step of AdamW."""
        for stage in ("START", "END"):
            self._time += 1
            self.annotations.append({"name": "Optimizer.step#AdamW.step", "stage": stage, "device": self.device, "time_us": self._time})
            self._time += 1
            if stage == "START":
                yield

    def segments(self) -> list[Fields]:
        """Return the state when the snapshot is taken."""
        return [self._segment(address, *kept) for address, kept in sorted(self._segments.items())]

    def _segment(self, address: int, size: int, stream: int) -> Fields:
        inside = sorted((at, *block) for at, block in self._live.items() if address <= at < address + size)
        blocks: list[Fields] = []
        end = address
        for at, asked, stack, _ in [*inside, (address + size, 0, [], 0)]:
            if at > end:
                blocks.append({"address": end, "size": at - end, "requested_size": 0, "state": "inactive", "frames": []})
            if asked:
                blocks.append({"address": at, "size": asked, "requested_size": asked, "state": "active_allocated", "frames": stack})
            end = at + asked
        return {
            "device": self.device,
            "address": address,
            "total_size": size,
            "stream": stream,
            "segment_type": "large" if size > 2 * MIB else "small",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "blocks": blocks,
        }

    def _add(self, action: str, **fields: object) -> None:
        self._time += 10
        self.trace.append({"action": action, "time_us": self._time, **fields})


def pickled(*programs: Program) -> bytes:
    """Return the file that holds what programs did on their cards."""
    traces: list[list[Fields]] = [[] for _ in range(max(program.device for program in programs) + 1)]
    for program in programs:
        traces[program.device] = program.trace
    value: Fields = {
        "segments": [segment for program in programs for segment in program.segments()],
        "device_traces": traces,
        "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
        "external_annotations": [annotation for program in programs for annotation in program.annotations],
    }
    return pickle.dumps(value, protocol=4)


TRAIN = "/home/ann/app/fit.py"
_MODULE = "/opt/env/lib/python3.12/site-packages/torch/nn/modules/module.py"
WEIGHT = (f"{_MODULE}:1355:convert", f"{TRAIN}:20:main")
LAYER = ("/home/ann/app/net.py:44:forward", f"{_MODULE}:1775:_call_impl", f"{TRAIN}:70:main")
LOSS = ("/opt/env/lib/python3.12/site-packages/torch/nn/functional.py:3494:cross_entropy", f"{TRAIN}:71:main")
STATE = ("/opt/env/lib/python3.12/site-packages/torch/optim/adamw.py:152:_init_group", f"{TRAIN}:77:main")
METRIC = ("/home/ann/app/scores.py:52:add", f"{TRAIN}:80:main")
TABLE = ("/home/ann/app/tables.py:12:grow", f"{TRAIN}:69:main")
COPY = ("/home/ann/app/prefetch.py:8:ahead", f"{TRAIN}:65:main")


def training(
    *, steps: int = 8, leak: int = 0, weights: int = 400, activations: int = 300, loss: int = 50, states: int = 200, device: int = 0
) -> Program:
    """Return a run of steps, sizes in MiB: weights, states from the first step on, activations and loss that come and go."""
    program = Program(device=device)
    program.ask(weights * MIB, *WEIGHT)
    layer, logits = program.reserve(activations * MIB), program.reserve(loss * MIB)
    for step in range(steps):
        held = [program.ask(activations * MIB, *LAYER, at=layer), program.ask(loss * MIB, *LOSS, at=logits)]
        for address in held:
            program.free(address)
        with program.optimizer_step():
            if step == 0 and states:
                program.ask(states * MIB, *STATE)
        if leak:
            program.ask(leak * MIB, *METRIC)
    return program


def leaking() -> Program:
    """Return a run in which a metric keeps its inputs until a layer fails."""
    program = training(steps=9, leak=60)
    program.fail(300 * MIB, *LAYER)
    return program


def leaking_unmarked() -> Program:
    """Return the same without marks of steps, as before torch 2.5: rounds of the loop are all there is."""
    program = leaking()
    program.annotations.clear()
    return program


def filling() -> Program:
    """Return a run that fills the card in a loop and frees nothing: it has no steps of a run."""
    program = Program()
    program.ask(100 * MIB, *WEIGHT)
    for _ in range(12):
        program.ask(2 * MIB, *TABLE)
        program.ask(90 * MIB, *COPY)
    program.fail(90 * MIB, *COPY)
    return program


def fragmented() -> Program:
    """Return a run whose free memory lies between blocks of a table."""
    program = Program()
    program.ask(600 * MIB, *WEIGHT)
    segment = program.reserve(800 * MIB)
    held = []
    for hole in range(8):
        start = segment + hole * 100 * MIB
        held.append(program.ask(96 * MIB, *LAYER, at=start))
        program.ask(4 * MIB, *TABLE, at=start + 96 * MIB)
    for address in held:
        program.free(address)
    program.fail(400 * MIB, *LAYER, free=10 * MIB)
    return program


def filled(places: Sequence[str], *, size: int = 2000, request: int = 200, asking: Sequence[str] = LAYER, free: int = 0) -> Program:
    """Return a run in which one line holds nearly all, until a request fails; sizes in MiB."""
    program = Program()
    program.ask(300 * MIB, *WEIGHT)
    for _ in range(4):
        program.ask(size // 4 * MIB, *places)
    program.fail(request * MIB, *asking, free=free * MIB)
    return program


def other_stream() -> Program:
    """Return a run whose free memory belongs to a stream that copies ahead."""
    program = Program()
    program.ask(900 * MIB, *WEIGHT)
    for _ in range(3):
        block = program.ask(200 * MIB, *COPY, stream=7)
        program.free(block)
    program.ask(2 * MIB, *COPY, stream=7)
    program.fail(300 * MIB, *LAYER, free=10 * MIB)
    return program


def masked() -> Program:
    """Return a run whose failure was never recorded: the cache goes back to the driver, and nothing follows."""
    program = training(steps=3)
    program.ask(700 * MIB, *LAYER)
    spare = program.ask(20 * MIB, *LOSS)
    program.free(spare)
    program.give_back(spare)
    return program


def survived() -> Program:
    """Return a run that fails, frees something and goes on."""
    program = training(steps=3)
    program.fail(900 * MIB, *LAYER, free=40 * MIB)
    program.ask(450 * MIB, *LAYER)
    return program


def without_history() -> Program:
    """Return a run of which only the state was saved."""
    program = training(steps=2)
    program.trace.clear()
    program.annotations.clear()
    return program
