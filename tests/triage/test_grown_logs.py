"""A log that grew is read on from where it was, and its rows are those of one reading; one that was cut or written anew is read anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.triage.listing import list_folders
from oomdoctor.triage.log_file import PlacedFile
from oomdoctor.triage.placing import Layouts
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.quiet_logs import LEAST, QuietLog, QuietLogs
from oomdoctor.triage.texts import LARGE
from oomdoctor.triage.work import Worker

STEP = b"{'loss': 0.71, 'learning_rate': 2e-05, 'epoch': 0.4}\n"
FAILURE = (
    b'Traceback (most recent call last):\n  File "/home/u/train.py", line 31, in step\n    loss.backward()\n'
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.12 GiB "
    b"is free. Of the allocated memory 71.10 GiB is allocated by PyTorch, and 2.60 GiB is reserved by PyTorch but unallocated.\n"
)
PIECES = [
    STEP, STEP * 2000, FAILURE, FAILURE[:300], FAILURE[300:], FAILURE[-60:-20], b"\n", b"\0\0\0", b"KeyError: 'input_ids'\n", b"Killed\n",
    b"slurmstepd: error: *** JOB 123 ON node1 CANCELLED AT 2025-06-03T01:02:03 ***\n", b"RuntimeError: not enough memory for this\n",
    b"MA 8.1 GB         Max_MA 9.2 GB         CA 12.5 GB         Max_CA 12 GB \n", b"2025-06-03T01:02:03.5Z stderr P half of ", b"\xff\xfeA\0",
    b"W0603 01:02:03.000000 17 allocator.cc:51] out of memory while trying to allocate 2.0GiB\n", b"Warning: an allocation of 2GiB was refused",
]  # fmt: skip
LARGE_BEGINNING = STEP * (LARGE // len(STEP) + 1)


@cache
def worker() -> Worker:
    return Worker(load_pack(), str, tool="", rules="")


def rows(folder: Path, quiet: QuietLogs) -> list[JobRow]:
    layouts = Layouts(list(load_pack().records(LAYOUTS)))
    families: dict[str, list[PlacedFile]] = {}
    for listed in list_folders([str(folder)]):
        for family, placed in layouts.place(listed):
            families.setdefault(family, []).append(placed)
    return [replace(row, scanned_at=0) for family, files in sorted(families.items()) for row, _ in worker().rows(family, files, quiet)]


def grown(beginning: bytes, appended: Iterable[bytes]) -> None:
    """Append one piece after the other to a log, and hold the rows of reading on against those of reading all."""
    with TemporaryDirectory() as name:
        log = Path(name, "job-771234.out")
        log.write_bytes(beginning)
        Path(name, "job-771234.err").write_bytes(STEP * (LEAST // len(STEP) + 1))
        kept: list[QuietLog] = []
        for piece in (b"", *appended):
            with log.open("ab") as file:
                file.write(piece)
            quiet = QuietLogs(kept)
            assert rows(Path(name), quiet) == rows(Path(name), QuietLogs())
            kept = quiet.now


pieces = st.lists(st.sampled_from(PIECES), max_size=5)


@settings(max_examples=40, deadline=None)
@given(pieces.map(b"".join), pieces)
def test_appending_gives_the_rows_of_one_reading(beginning: bytes, appended: list[bytes]) -> None:
    grown(beginning + STEP * (LEAST // len(STEP)), appended)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(PIECES), pieces)
def test_appending_to_a_large_log_gives_the_rows_of_one_reading(beginning: bytes, appended: list[bytes]) -> None:
    grown(beginning + LARGE_BEGINNING, appended)


@settings(max_examples=8, deadline=None)
@given(pieces)
def test_a_log_that_becomes_large_gives_the_rows_of_one_reading(appended: list[bytes]) -> None:
    grown(LARGE_BEGINNING[: LARGE - 100], appended)


def overwritten(log: Path) -> None:
    """Write a failure into the middle of what was read, which nobody does to a log: only a second reading of all shows it."""
    with log.open("r+b") as file:
        file.seek(LEAST // 2)
        file.write(FAILURE)


def unchanged(log: Path) -> None:
    """Leave a log as it is."""


def shortened(log: Path) -> None:
    log.write_bytes(FAILURE)


def written_anew(log: Path) -> None:
    size = log.stat().st_size
    log.write_bytes((b"another run\n" + FAILURE + STEP * (size // len(STEP)))[:size])


@pytest.mark.parametrize(("beginning", "change", "failed"), [
    pytest.param(STEP * (2 * LEAST // len(STEP)), unchanged, "no", id="a log that only grew"),
    pytest.param(STEP * (2 * LEAST // len(STEP)), overwritten, "no", id="what was read is not read again"),
    pytest.param(STEP * (LEAST // len(STEP) // 2) + FAILURE, unchanged, "yes", id="a small log is read again"),
    pytest.param(STEP * (2 * LEAST // len(STEP)), shortened, "yes", id="a log that was cut"),
    pytest.param(STEP * (2 * LEAST // len(STEP)), written_anew, "yes", id="a log that was written anew"),
    pytest.param(LARGE_BEGINNING, unchanged, "no", id="a large log that only grew"),
    pytest.param(LARGE_BEGINNING, overwritten, "no", id="what was read of a large log is not read again"),
    pytest.param(LARGE_BEGINNING, written_anew, "yes", id="a large log that was written anew"),
])  # fmt: skip
def test_what_is_read_of_a_log_that_changed(beginning: bytes, change: Callable[[Path], None], failed: str, tmp_path: Path) -> None:
    log = tmp_path / "job-771234.out"
    log.write_bytes(beginning)
    quiet = QuietLogs()
    rows(tmp_path, quiet)
    change(log)
    with log.open("ab") as file:
        file.write(STEP)
    (row,) = rows(tmp_path, QuietLogs(quiet.now))
    assert row.memory_failure == failed
