"""The same log gives the same events, however it is cut into blocks, parts and threads, and whichever engine looks.

The limits that only large files reach are made small here, so that a log of some hundred kilobytes reaches them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oomdoctor.api import pipeline
from oomdoctor.case.event import Event
from oomdoctor.ingest import prefilter, windows
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.parse import reading

MIB_BITS = 14
"""What a mebibyte is to the code under test: 16 KiB."""
OOM = (
    "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {rank} has a total capacity of 23.69 GiB of which "
    "1.02 GiB is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated memory 21.40 GiB is allocated "
    "by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.\n"
)
TRACE = 'Traceback (most recent call last):\n  File "/x/train.py", line 3, in forward\n    loss.backward()\n'
MESSAGES = [
    OOM.format(rank=0), OOM.format(rank=3), TRACE + OOM.format(rank=1), "Killed\n", "RuntimeError: CUDA error: out of memory\n",
    "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n", "RuntimeError: NCCL error: unhandled cuda error\n",
    "[ 512.100000] Out of memory: Killed process 93 (python) total-vm:900000kB, anon-rss:800000kB, file-rss:4kB, shmem-rss:0kB, UID:0\n",
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 7.20 GiB already allocated; 17.56 MiB free; 46.25 MiB cached)\n",
    "max memory allocated: 21.40 GiB\n", " 41%|####      | 41/900 [10:00<12:00,  1.50s/it]\r",
]  # fmt: skip
NOISE = [
    "step 1 loss 2.1\n",
    "a line of a log that says nothing\n",
    " 42%|####2     | 42/900 [10:00<12:00,  1.50s/it]\r",
    "x" * 400 + "\n",
    "no end of line ",
]


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_MIB", MIB_BITS)
        for module in (windows, reading):
            patch.setattr(module, "TAIL", 4 << MIB_BITS)
            patch.setattr(module, "CLOSELY", 8 << MIB_BITS)
        patch.setattr(reading, "_SPLIT", 6 << MIB_BITS)
        patch.setattr(windows, "STREAM_TAIL", 2 << MIB_BITS)
        patch.setattr(windows, "_CLOSE", 4)
        yield


@cache
def pack() -> Pack:
    return load_pack()


PARTS = st.lists(
    st.tuples(st.integers(0, len(MESSAGES) - 1), st.integers(0, len(NOISE) - 1), st.integers(0, 25_000)), min_size=1, max_size=30
)
REPEATED, DENSE = (([(4, 1, 300)], 900), ([(4, 1, 0)], 5000))
"""The same message far more often than any limit allows, in a file far above the split size."""
LOGS = st.tuples(PARTS, st.sampled_from([1, 1, 2, 4]))
SETTINGS = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


Log = tuple[list[tuple[int, int, int]], int]


def log(made_of: Log) -> bytes:
    """So many times: noise, a message, noise, a message."""
    parts, times = made_of
    out = []
    for message, noise, size in parts * times:
        out.append((NOISE[noise] * (size // len(NOISE[noise]) + 1))[:size])
        out.append("\n" + MESSAGES[message])
    return "".join(out).encode()


def read(path: Path, *, jobs: int = 1) -> list[tuple[Any, ...]]:
    return [key(event) for event in pipeline.diagnose_logs([str(path)], pack(), jobs=jobs).case.events]


def key(event: Event) -> tuple[Any, ...]:
    return (
        event.place.offset, event.place.line, event.signature, event.text, tuple(sorted(map(str, event.fields.items()))), event.rank, event.phase,
        event.frame, event.caught,
    )  # fmt: skip


@SETTINGS
@example(made_of=REPEATED, block=48 << 10)
@example(made_of=DENSE, block=100_003)
@given(made_of=LOGS, block=st.sampled_from([48 << 10, 64 << 10, 100_003, 1 << 20]))
def test_any_block_size(made_of: Log, block: int, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(log(made_of))
    wanted = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "BLOCK", block)
        assert read(path) == wanted


@SETTINGS
@example(made_of=REPEATED, jobs=3)
@example(made_of=DENSE, jobs=2)
@given(made_of=LOGS, jobs=st.integers(2, 5))
def test_any_number_of_jobs(made_of: Log, jobs: int, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(log(made_of))
    assert read(path, jobs=jobs) == read(path, jobs=1)


@SETTINGS
@example(made_of=REPEATED)
@example(made_of=([(0, 0, 7003), (2, 0, 25_000)], 4))  # context in a MiB where none is looked for: one engine finds it all the same
@given(made_of=LOGS)
def test_any_engine(made_of: Log, tmp_path: Path) -> None:
    pytest.importorskip("hyperscan")
    path = tmp_path / "run.log"
    path.write_bytes(log(made_of))
    found = []
    for small in (0, 1 << 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prefilter, "SMALL", small)
            found.append(read(path))
    assert found[0] == found[1]


@SETTINGS
@example(made_of=([(0, 0, 0)] * 11, 4))  # more failures than a MiB may show: the last of them count
@example(made_of=([(0, 0, 0), (2, 0, 3425)], 4))  # context in the last MiB
@example(made_of=([(0, 0, 0), (0, 0, 1973), (2, 2, 1107)], 4))  # a message cut by the start of a window
@example(
    made_of=([(0, 0, 0)] * 7 + [(0, 0, 285), (0, 0, 635), (0, 0, 2352), (9, 1, 503), (4, 3, 2081), (0, 0, 0), (2, 0, 0)], 2)
)  # its frames
@given(made_of=LOGS.map(lambda one: ([(message, noise, size % 4000) for message, noise, size in one[0]], one[1])))
def test_a_compressed_log_and_a_pasted_one_give_what_the_file_gives(made_of: Log, tmp_path: Path) -> None:
    data = log(made_of)
    (tmp_path / "run.log").write_bytes(data)
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(data, 1))
    wanted = read(tmp_path / "run.log")
    assert [key(event) for event in pipeline.diagnose_logs(["pasted"], pack(), text=data).case.events] == wanted
    if len(data) <= windows.TAIL:
        assert read(tmp_path / "run.log.gz") == wanted


@SETTINGS
@given(made_of=LOGS)
def test_a_compressed_log_above_the_limits_ends_and_begins_as_the_file_does(made_of: Log, tmp_path: Path) -> None:
    """A stream's end is not known ahead, so less of its end is read closely than of a file's."""
    data = log(made_of)
    (tmp_path / "run.log").write_bytes(data)
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(data, 1))
    head, tail = 4 << MIB_BITS, len(data) - (1 << MIB_BITS)
    plain, packed = (
        [
            (event.place.offset, event.signature, event.text)
            for event in pipeline.diagnose_logs([str(tmp_path / name)], pack()).case.events
            if event.is_failure and (event.place.offset < head or event.place.offset >= tail)
        ]
        for name in ("run.log", "run.log.gz")
    )
    assert packed == plain


@pytest.mark.parametrize("jobs", [2, 3, 8])
def test_many_sources_at_once_give_what_they_give_one_by_one(jobs: int, tmp_path: Path) -> None:
    names = []
    for number in range(40):
        path = tmp_path / f"rank{number}.log"
        path.write_bytes(log(([(number % len(MESSAGES), number % len(NOISE), number * 397)], 1)))
        names.append(str(path))
    one_by_one, at_once = (pipeline.diagnose_logs(names, pack(), jobs=count) for count in (1, jobs))
    assert [key(event) for event in at_once.case.events] == [key(event) for event in one_by_one.case.events]
    assert at_once.case.verdict == one_by_one.case.verdict


def test_the_logs_here_reach_the_limits() -> None:
    assert len(log(REPEATED)) > 2 * reading._SPLIT
    assert len(log(DENSE)) > 2 * reading._SPLIT
