"""A pickle is read the same whether its entries look alike or not, whoever wrote it, and in pieces of any size."""

from __future__ import annotations

import io
import pickle
import random

import pytest
from snapshots.made_forms import from_cpp
from snapshots.made_snapshots import fragmented, leaking, pickled, survived, training

from oomdoctor.snapshots.convert import recording
from oomdoctor.snapshots.opcodes import get_of, memo_numbers
from oomdoctor.snapshots.pickled.pattern import pattern_of
from oomdoctor.snapshots.pickled.values import PickledList
from oomdoctor.snapshots.read import read_pickle
from oomdoctor.snapshots.recording import Recording
from oomdoctor.snapshots.stacks import PythonFrame, Stacks

PROGRAMS = {"a leak": leaking(), "free pieces": fragmented(), "survived": survived(), "steps": training(steps=6)}


def told(read: Recording) -> tuple[object, ...]:
    """What a recording holds, with the frames in the place of their numbers."""
    traces = [
        [
            (*row, read.stacks[stack])
            for *row, stack in zip(trace.actions, trace.addresses, trace.sizes, trace.streams, trace.times, trace.stacks, strict=True)
        ]
        for trace in (device.trace for device in read.devices)
    ]
    blocks = [
        [(block, read.stacks[block.stack].frames) for segment in device.segments for block in segment.blocks] for device in read.devices
    ]
    shapes = [
        [(segment.address, segment.size, segment.pool, len(segment.blocks)) for segment in device.segments] for device in read.devices
    ]
    sizes = [[(block.address, block.size, block.requested, block.is_live, frames) for block, frames in listed] for listed in blocks]
    return traces, shapes, sizes, read.annotations, read.settings, read.torch_at_least, read.unreadable


class Pieces(io.BytesIO):
    """A source that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self._most, size if size is not None and size >= 0 else self._most))


def with_new_texts(value: object) -> object:
    """The same with every text an object of its own, which a pickler does not know again, and fields that nobody asks for."""
    if isinstance(value, dict):
        more = {"compile_context": "".join(("N", "/A")), "pool_id": (0, 0)} if "action" in value else {}
        return {key: with_new_texts(inner) for key, inner in {**value, **more}.items()}
    if isinstance(value, list):
        return [with_new_texts(inner) for inner in value]
    return "".join(list(value)) if isinstance(value, str) else value


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_what_the_values_give(name: str, protocol: int) -> None:
    data = pickled(PROGRAMS[name])
    value = pickle.loads(data)  # noqa: S301 - made here
    again = pickle.dumps(value, protocol=protocol)
    assert told(read_pickle(io.BytesIO(again), len(again))) == told(recording(value, len(data)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_that_stand_there_again_and_again_change_nothing(name: str) -> None:
    data = pickle.dumps(with_new_texts(pickle.loads(pickled(PROGRAMS[name]))), protocol=4)  # noqa: S301 - made here
    assert told(read_pickle(io.BytesIO(data), len(data))) == told(recording(pickle.loads(data), len(data)))  # noqa: S301


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_memo_each_opcode_is_read_by_itself(name: str) -> None:
    value = pickle.loads(pickled(PROGRAMS[name]))  # noqa: S301 - made here
    data = from_cpp(value)
    assert told(read_pickle(io.BytesIO(data), len(data))) == told(recording(value, len(data)))


@pytest.mark.parametrize("most", [1, 7, 4096])
def test_pieces_of_any_size_are_read(most: int) -> None:
    data = pickled(training(steps=3))
    assert told(read_pickle(Pieces(data, most), len(data))) == told(read_pickle(io.BytesIO(data), len(data)))


def test_numbers_of_the_memo_are_read_from_both_opcodes() -> None:
    numbers = [random.Random(1).randrange(1 << 20) >> shift for shift in (0, 4, 8, 12, 16, 19) for _ in range(9)]
    assert list(memo_numbers(b"".join(map(get_of, numbers)))) == numbers


def test_frames_without_an_end_are_given_up_at_once() -> None:
    keys = {"action": 1, "addr": 2, "size": 3, "frames": 4}
    pattern = pattern_of({"action": "alloc", "addr": 7, "size": 8, "frames": PickledList()}, keys)
    assert pattern is not None
    begin = b"}(h\x01\x8c\x05alloch\x02K\x07h\x03K\x08h\x04](" + get_of(999) * 5000
    match = pattern.expression.match(begin + b"eu")
    assert match is not None and match["gets"] == get_of(999) * 5000
    assert pattern.expression.match(begin + b"Nu") is None


def test_stacks_of_many_frames_stay_apart() -> None:
    stacks = Stacks()
    frames = [stacks.frame(PythonFrame("a.py", line, "call")) for line in range(70_000)]
    numbers = [stacks.add(frame + frames[0]) for frame in frames]
    assert len(set(numbers)) == len(frames)
    assert [stacks[number].frames[0].line for number in numbers] == list(range(70_000))
    assert {stacks.from_outside(number, 0) for number in numbers} == {PythonFrame("a.py", 0, "call")}
    assert stacks.from_outside(numbers[-1], 2) is None
    assert stacks.first(numbers[-1], lambda frame: frame.line < 9) == PythonFrame("a.py", 0, "call")
    assert stacks.first(numbers[-1], lambda frame: frame.line > 69_990) == PythonFrame("a.py", 69_999, "call")
    assert stacks.first(numbers[0], lambda frame: frame.line > 69_990) is None
