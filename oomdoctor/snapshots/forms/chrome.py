"""Chrome traces of torch's profiler (Kineto): its `[memory]` events, failed requests and steps, read as a stream.

torch/csrc/profiler/collection.cpp names the events. Such traces have up to several gigabytes, and the rest of them is left alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.forms.ledger import Ledger
from oomdoctor.snapshots.opcodes import NotReadable
from oomdoctor.snapshots.phases import OPTIMIZER_STEP, PROFILER_STEP
from oomdoctor.snapshots.pickled.window import ByteSource
from oomdoctor.snapshots.recording import Annotation, Device, Recording
from oomdoctor.snapshots.stacks import Stacks

_CHUNK = 4 << 20
_LONGEST = 8192
"""No event of these kinds has as many bytes."""
_RANGES = (PROFILER_STEP, OPTIMIZER_STEP)
_NAMES = (b'"[memory]"', b'"[OutOfMemory]"', *(f'"{name}'.encode() for name in _RANGES))
_ON_THE_CARD = "gpu_user_annotation"
"""The same range again, when its kernels ran."""
_CPU = 0
_MOST = 1 << 62
_MOST_DEVICES = 1024
_SIGNS = (b'"traceEvents"', b'"deviceProperties"', b'"schemaVersion"', b'"ph"')
_LACKS = Gap(
    "the requesting lines, and the location of free memory",
    "a profiler trace contains only sizes and addresses of blocks",
    'torch.cuda.memory._record_memory_history(stacks="python"), then torch.cuda.memory._dump_snapshot("memory.pickle")',
)

Event = Mapping[str, object]


def is_chrome_trace(first: bytes) -> bool:
    """Return whether JSON begins as a Chrome trace."""
    return any(sign in first for sign in _SIGNS) and b'"segments"' not in first


def chrome_trace(source: ByteSource) -> Recording:
    """Return what the memory events of a trace tell. Raise NotReadable where it has none."""
    reader = _MemoryEvents()
    for event in _events(source):
        reader.add(event)
    return reader.recording()


class _MemoryEvents:
    """The devices met so far."""

    def __init__(self) -> None:
        self._ledgers: dict[int, Ledger] = {}
        self._allocated: dict[int, int] = {}
        self._rows: Counter[int] = Counter()
        self._steps: list[tuple[str, int, int]] = []
        self._has_memory = False
        self._unreadable = 0

    def add(self, event: Event) -> None:
        """Take one event in."""
        name, time = event.get("name"), _microseconds(event.get("ts"))
        if time is None or not isinstance(name, str):
            self._unreadable += 1
        elif name.startswith(_RANGES):
            if event.get("cat") != _ON_THE_CARD:
                self._steps.append((name, time, time + (_microseconds(event.get("dur")) or 0)))
        else:
            self._memory(name, event.get("args"), time)

    def _memory(self, name: str, values: object, time: int) -> None:
        self._has_memory = True
        fields = values if isinstance(values, dict) else {}
        kind, device, size = fields.get("Device Type"), fields.get("Device Id"), fields.get("Bytes")
        if kind == _CPU:
            return
        if type(device) is not int or type(size) is not int or not 0 <= device < _MOST_DEVICES or abs(size) >= _MOST:
            self._unreadable += 1
            return
        ledger, row = self._ledgers.setdefault(device, Ledger()), self._rows[device]
        self._rows[device] += 1
        reserved, allocated = _whole(fields.get("Total Reserved")), _whole(fields.get("Total Allocated"))
        if reserved is not None:
            ledger.reserve(reserved, time=time, row=row)
        if name == "[OutOfMemory]":
            ledger.fail(abs(size), time=time, row=row)
            return
        address = _whole(fields.get("Addr")) or 0
        if size >= 0:
            ledger.allocate(address, size, time=time, row=row)
        else:
            ledger.free(address, -size, time=time, row=row)
        if allocated is not None:
            self._allocated[device] = allocated

    def recording(self) -> Recording:
        """Return all of it."""
        if not self._has_memory:
            raise NotReadable("it is a trace without memory events: record it with profile_memory=True")
        devices = tuple(self._device(index, ledger) for index, ledger in sorted(self._ledgers.items()))
        if not devices:
            raise NotReadable("its memory events cover only the host")
        steps = [
            Annotation(name, is_start, device.index, time)
            for name, begin, end in self._steps
            for device in devices
            for is_start, time in ((True, begin), (False, end))
        ]
        return Recording("chrome-trace", None, devices, Stacks(), tuple(steps), {}, self._unreadable, gaps=(_LACKS,))

    def _device(self, index: int, ledger: Ledger) -> Device:
        return ledger.device(index, self._allocated.get(index))


def _events(source: ByteSource) -> Iterator[Event]:
    """Yield the events of the kinds that tell something, each once."""
    held = b""
    while True:
        piece = source.read(_CHUNK)
        held += piece
        known_until = len(held) if not piece else max(0, len(held) - _LONGEST)
        begun = 0
        for at in _hits(held, known_until):
            event, end = _event(held, at) if at >= begun else (None, 0)
            if event is not None:
                begun = end
                yield event
        if not piece:
            return
        held = held[max(begun, known_until - _LONGEST) :] if begun <= known_until else held[begun:]


def _hits(data: bytes, until: int) -> list[int]:
    """Return where a name of these kinds stands."""
    hits = []
    for name in _NAMES:
        at = data.find(name, 0, until)
        while at >= 0:
            hits.append(at)
            at = data.find(name, at + 1, until)
    return sorted(hits)


def _event(data: bytes, at: int) -> tuple[Event | None, int]:
    """Return the object that has a name at an offset, and where it ends."""
    begin = at
    for _ in range(2):  # where the name comes last, the nearest brace is that of its args
        begin = data.rfind(b"{", max(0, begin - _LONGEST), begin)
        if begin < 0:
            break
        text = data[begin : begin + _LONGEST].decode("utf-8", "replace")
        try:
            event, length = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and "ph" in event and begin + length > at:
            return event, begin + len(text[:length].encode())
    return None, 0


_DECODER = json.JSONDecoder()


def _microseconds(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST else None
