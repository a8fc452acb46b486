"""What the unpickler gives -> a recording.

Nothing in the file is trusted: whatever lacks a number where one must stand is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.pickled.values import StackNumber
from oomdoctor.snapshots.recording import (
    ACTIONS,
    MOST,
    Action,
    Annotation,
    Device,
    Recording,
    Row,
    SavedBlock,
    Segment,
    Trace,
    profiled,
)
from oomdoctor.snapshots.stacks import PythonFrame, Stacks

_MOST_DEVICES = 1024
_WAITING = ("active_pending_free", "active_awaiting_free")
"""The docstring of torch has the second, every release writes the first."""
_LIVE = ("active_allocated", *_WAITING)
_OF_CPP, _OF_BACKWARD = "", "\0"
"""What stands for frames that are not of Python."""
_BACKWARD = ("torch::autograd::Engine::", "torch::autograd::python::PythonEngine::")
"""Functions of C++ that only the backward pass runs in."""
_SINCE = (("2.14", "host_traces"), ("2.5", "external_annotations"), ("2.3", "allocator_settings"))
_SETTING_SINCE = (("2.13", "max_round_threshold"), ("2.9", "graph_capture_record_stream_reuse"))
_ENTRY_SINCE = (("2.11", "pool_id"), ("2.10", "user_metadata"), ("2.8", "compile_context"), ("2.2", "time_us"))
_BLOCK_SINCE = (("2.1", "address"), ("2.0", "history"))
"""Keys of the file, its settings, an entry and a block, each with the release whose snapshots had it first."""

Fields = Mapping[object, object]


class NotASnapshot(Exception):
    """The values are no snapshot; the message says what they are."""


def recording(value: object, file_size: int, reader: SnapshotReader | None = None, gaps: tuple[Gap, ...] = ()) -> Recording:
    """Return what a snapshot's value holds: the dict of `_snapshot`, or the list of segments of `memory_snapshot`.

    `reader` took in what was read while the value was made. Raise NotASnapshot where it is neither, or has more entries than the
    bytes of the file can tell apart.
    """
    if isinstance(value, list):
        return _recording({"segments": value}, "list", file_size, reader or SnapshotReader(), gaps)
    if isinstance(value, dict) and isinstance(value.get("segments"), list):
        return _recording(value, "dict", file_size, reader or SnapshotReader(), gaps)
    raise NotASnapshot("it has no segments, which every snapshot of PyTorch's allocator has")


def _recording(value: Fields, form: str, file_size: int, reader: SnapshotReader, gaps: tuple[Gap, ...]) -> Recording:
    listed = [_list(entries) for entries in _list(value.get("device_traces"))[:_MOST_DEVICES]]
    segments = reader.segments(_list(value.get("segments")))
    if reader.count + sum(map(_entries, listed)) > file_size:  # an entry takes a byte at least
        raise NotASnapshot("it repeats its entries more often than a file of its size can")
    traces = [reader.trace(entries) for entries in listed]
    indexes = sorted({*segments, *(index for index, trace in enumerate(traces) if len(trace))})
    if form == "list" and value["segments"] and not segments:
        raise NotASnapshot("it is a list, but its items are not segments of PyTorch's allocator")
    devices = tuple(Device(at, tuple(segments.get(at, ())), traces[at] if at < len(traces) else Trace()) for at in indexes)
    annotations = tuple(reader.annotations(_list(value.get("external_annotations"))))
    settings = _settings(value.get("allocator_settings"))
    reader.stacks.finish()
    return Recording(form, _torch(value, reader), devices, reader.stacks, annotations, settings, reader.unreadable, gaps=gaps)


def _entries(listed: list[object]) -> int:
    """Return how many entries a trace has."""
    trace = getattr(listed, "trace", None)
    return len(listed) + (0 if trace is None else len(trace))


class PlacedSegment(NamedTuple):
    """A segment, and the device that it is of."""

    device: int
    segment: Segment


class SnapshotReader:
    """Takes in what stands in a snapshot, while it is read or when it is there; the frames and stacks met so far."""

    def __init__(self) -> None:
        self.stacks = Stacks()
        self.count = 0
        """Segments and blocks."""
        self.unreadable = 0
        self.keys: set[object] = set()
        self.block_keys: set[object] = set()
        self._by_identity: dict[int, int] = {}
        self._frames: dict[int, str] = {}
        self._kept: list[object] = []

    def trace(self, entries: list[object]) -> Trace:
        """Return the columns of one device's trace."""
        trace = Trace() if (taken := getattr(entries, "trace", None)) is None else taken
        for entry in entries:
            if (row := self.row(entry)) is not None:
                trace.append(*row)
        return trace

    def row(self, entry: object) -> Row | None:
        """Return the columns of an entry; None where it lacks what it must have."""
        if not isinstance(entry, dict):
            self.unreadable += 1
            return None
        if len(self.keys) < len(entry):
            self.keys.update(entry)
        name = entry.get("action")
        action = ACTIONS.get(name, Action.OTHER) if isinstance(name, str) else Action.OTHER
        address = entry.get("device_free" if action is Action.OOM else "addr", 0)
        numbers = (address, entry.get("size"), entry.get("stream", 0), entry.get("time_us", 0))
        for number in numbers:
            if type(number) is not int or not 0 <= number < MOST:
                self.unreadable += 1
                return None
        address, size, stream, time = cast("tuple[int, int, int, int]", numbers)
        return action, address, size, stream, time, self.stack(entry.get("frames"), entry.get("category"))

    def segments(self, listed: list[object]) -> dict[int, list[Segment]]:
        """Return the segments of each device, by address."""
        out: dict[int, list[Segment]] = {}
        for value in listed:
            placed = value if isinstance(value, PlacedSegment) else self.segment(value)
            if placed is not None:
                self.count += 1 + len(placed.segment.blocks)
                out.setdefault(placed.device, []).append(placed.segment)
        return {device: sorted(here, key=lambda segment: segment.address) for device, here in out.items()}

    def segment(self, value: object) -> PlacedSegment | None:
        """Return a segment; None where it lacks what it must have."""
        device, segment = (None, None) if not isinstance(value, dict) else (value.get("device", 0), self._segment(value))
        if segment is None or type(device) is not int or not 0 <= device < _MOST_DEVICES:
            self.unreadable += 1
            return None
        return PlacedSegment(device, segment)

    def _segment(self, value: Fields) -> Segment | None:
        address, size, stream = _whole(value.get("address", 0)), _whole(value.get("total_size")), _whole(value.get("stream", 0))
        if address is None or size is None or stream is None:
            return None
        blocks = tuple(self._blocks(_list(value.get("blocks")), address))
        kind = value.get("segment_type") == "small"
        return Segment(address, size, stream, _pool(value.get("segment_pool_id")), kind, value.get("is_expandable") is True, blocks)

    def _blocks(self, listed: list[object], address: int) -> Iterable[SavedBlock]:
        """Yield the blocks of a segment. Before torch 2.1 they have no address: one stands behind the other."""
        for value in listed:
            size = _whole(value.get("size")) if isinstance(value, dict) else None
            if size is None or not isinstance(value, dict):
                self.unreadable += 1
                continue
            self.block_keys.update(value)
            at = _whole(value.get("address"))
            state = value.get("state")
            is_live = state in _LIVE
            requested = _whole(value.get("requested_size"))
            frames = value.get("frames", _newest(value.get("history")))
            stack = self.stack(frames) if is_live else 0
            start = address if at is None else at
            yield SavedBlock(start, size, (size if requested is None else requested) if is_live else 0, is_live, state in _WAITING, stack)
            address = start + size

    def annotations(self, listed: Sequence[object]) -> Iterable[Annotation]:
        """Yield the ends of the ranges that were named."""
        for value in listed:
            if isinstance(value, dict):
                name, time, stage = value.get("name"), _whole(value.get("time_us")), value.get("stage")
                if isinstance(name, str) and time is not None and stage in ("START", "END"):
                    yield Annotation(name, stage == "START", _whole(value.get("device")) or 0, time)

    def stack(self, frames: object, category: object = None) -> int:
        """Return the number of a list of frames. Lists are shared objects, so each is looked at once."""
        if category is not None:
            return self.stacks.with_category(self.stack(frames), profiled(category))
        if type(frames) is StackNumber:
            return frames
        if not isinstance(frames, list):
            return 0
        known = self._by_identity.get(id(frames))
        if known is None:
            known = self._by_identity[id(frames)] = self.stack_of("".join(map(self.frame, frames)))
            self._kept.append(frames)  # the identity is its only as long as it lives
            frames.clear()
        return known

    def stack_of(self, frames: str) -> int:
        """Return the number of the stack of frames by their characters; those of C++ tell whether it is of the backward pass."""
        if _OF_BACKWARD not in frames:
            return self.stacks.add(frames)
        python = frames.replace(_OF_BACKWARD, "")
        return self.stacks.add(python, in_backward=not python)

    def frame(self, value: object) -> str:
        """Return the character of a frame."""
        known = self._frames.get(id(value))
        if known is None:
            known = self._frames[id(value)] = self._frame(value)
            self._kept.append(value)
        return known

    def _frame(self, value: object) -> str:
        if isinstance(value, dict):
            file, line, name = value.get("filename"), _whole(value.get("line", 0)), value.get("name")
            if isinstance(file, str) and isinstance(name, str) and line is not None:
                if _is_python(file):
                    return self.stacks.frame(PythonFrame(file, line, name))
                return _OF_BACKWARD if name.startswith(_BACKWARD) else _OF_CPP
        return _OF_CPP


def _is_python(file: str) -> bool:
    """Return whether a frame is of Python: a file of C++ is `??`, nothing, or ends otherwise."""
    return file.endswith(".py") or (file.startswith("<") and file.endswith(">"))


def _newest(history: object) -> object:
    """Return the frames of a block of torch 2.0 and before: those of its last owner."""
    first = _list(history)[:1]
    return first[0].get("frames") if first and isinstance(first[0], dict) else None


def _torch(value: Fields, reader: SnapshotReader) -> str | None:
    """Return the first release whose snapshots have all these keys."""
    settings = value.get("allocator_settings")
    tables = ((_SINCE, value), (_SETTING_SINCE, settings), (_ENTRY_SINCE, reader.keys), (_BLOCK_SINCE, reader.block_keys))
    releases = [release for table, keys in tables if isinstance(keys, dict | set) for release, key in table if key in keys]
    return max(releases, key=lambda release: [int(number) for number in release.split(".")], default=None)


def _settings(value: object) -> dict[str, str]:
    """Return the settings of the allocator that are plain values."""
    items = value.items() if isinstance(value, dict) else ()
    return {key: str(setting) for key, setting in items if isinstance(key, str) and isinstance(setting, str | int | float)}


def _pool(value: object) -> tuple[int, int]:
    if isinstance(value, tuple | list) and len(value) == 2 and all(type(number) is int for number in value):
        return (value[0], value[1])  # JSON has no pairs
    return (0, 0)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < MOST else None
