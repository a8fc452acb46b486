"""What is no log, or no whole one: named in the row or the summary, never a stop, and nothing beside it is lost."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoctor.api.fleet.triage import triage
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.triage import archives, exports, listing
from oomdoctor.triage.job import Attempt, JobFile
from oomdoctor.triage.listing import list_folders
from oomdoctor.triage.log_file import LogFile
from oomdoctor.triage.outcome import JobReader
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
HEALTHY = "step 10 loss 2.1\nstep 20 loss 1.9\n"
BESIDE = "beside-770001.out"
"""A job beside the bad input, which died of memory."""
NOISE = random.Random(1).randbytes(20_000)


def rows(folder: Path) -> dict[str, JobRow]:
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    (logs / BESIDE).write_text(OOM)
    result = triage([str(logs)], redact=str, store=str(folder / "store"))
    found = {row.native: row for row in Parts(result.folder).rows()}
    assert found.pop("770001").memory_failure == "yes"
    return found


def tar_of(members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return held.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return held.getvalue()


FILES: dict[str, tuple[str, bytes, str, str]] = {
    "an empty log": ("fit-770002.out", b"", "unread", ""),
    "a packed log that is cut off": ("fit-770002.out.gz", gzip.compress(OOM.encode() * 200)[:-9], "yes", "truncated"),
    "nothing behind the head of a packed log": ("fit-770002.out.gz", gzip.compress(b"")[:8], "unread", "truncated"),
    "noise": ("fit-770002.out", NOISE, "unread", "not text"),
    "noise with a message in it": ("fit-770002.out", NOISE + b"\n" + OOM.encode(), "yes", "not text"),
    "holes of NUL around a message": ("fit-770002.out", b"\0" * 5000 + OOM.encode() + b"\0" * 5000, "yes", ""),
    "a log that is called packed": ("fit-770002.out.gz", OOM.encode(), "yes", ""),
    "Chinese text in an encoding of its own": ("fit-770002.out", "显存不足\n".encode("gb18030") * 50 + OOM.encode(), "yes", ""),
    "very much of nothing in a packed log": ("fit-770002.out.gz", gzip.compress(b"\0" * (64 << 20)), "no", ""),
    "a line of many MiB": ("fit-770002.out", b"x" * (9 << 20) + b"\n" + OOM.encode(), "yes", ""),
    "a name with a line end": ("new\nline-770002.out", OOM.encode(), "yes", ""),
    "a name with an escape": ("red\x1b[31m-770002.out", OOM.encode(), "yes", ""),
    "a name that is not UTF-8": ("caf\udce9-770002.out", OOM.encode(), "unread", "not UTF-8"),
}


@pytest.mark.parametrize(("name", "data", "failed", "why"), FILES.values(), ids=FILES)
def test_a_bad_file_is_named_in_its_row(tmp_path: Path, name: str, data: bytes, failed: str, why: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(data)
    row = rows(tmp_path)["770002"]
    assert row.memory_failure == failed
    assert [why in problem.why for problem in row.unreadable] == ([True] if why else [])


def circle(logs: Path) -> None:
    (logs / "up").symlink_to("..", target_is_directory=True)
    (logs / "self-770002.out").symlink_to("self-770002.out")


def nowhere(logs: Path) -> None:
    (logs / "fit-770002.out").symlink_to("gone.out")


def a_link_to_such_a_link(logs: Path) -> None:
    nowhere(logs)
    (logs / "containers").mkdir()
    (logs / "containers" / "fit.log").symlink_to("../fit-770002.out")


def forbidden(logs: Path) -> None:
    (logs / "fit-770002.out").write_text(OOM)
    (logs / "fit-770002.out").chmod(0)


PLACES: dict[str, Callable[[Path], None]] = {
    "links in a circle": circle,
    "a link to nothing": nowhere,
    "a link to a link to nothing": a_link_to_such_a_link,
}
if os.geteuid():
    PLACES["a file that nobody may read"] = forbidden


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_what_cannot_be_opened_is_named_in_its_row(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "logs").mkdir()
    make(tmp_path / "logs")
    (row,) = rows(tmp_path).values()
    assert (row.native, row.memory_failure, len(row.unreadable)) == ("770002", "unread", 1)


def test_pipes_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "pipe-770002.out")
    assert rows(tmp_path) == {}


def test_a_path_that_no_file_can_have_is_named() -> None:
    (folder,) = list_folders(["logs/fit\0.out"])
    assert [(file.path, file.problem) for file in folder.files] == [("logs/fit\0.out", "embedded null byte")]


def test_a_file_that_is_gone_when_it_is_read() -> None:
    gone = JobFile(file=LogFile("logs/fit-770002.out", 100, 1))
    read = JobReader(load_pack()).outcome(Attempt(number=0, streams=((gone,),)))
    assert (read.is_unread, [file.problem for file in read.reads]) == (True, ["no such file or directory"])


def test_a_folder_of_very_many_entries_with_line_ends_in_their_names_is_never_held_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_BATCH", 50)
    for number in range(4000):
        (tmp_path / f"fit\n{number}-770002.out").touch()
    tracemalloc.start()
    listed = sum(len(folder.files) for folder in list_folders([str(tmp_path)]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert listed == 4000
    assert peak < 300_000  # all at once take more than a million


def test_a_folder_of_many_files_is_listed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_BATCH", 7)
    (tmp_path / "none_ab12_x9q").mkdir()
    for number in range(40):
        (tmp_path / f"fit-{770100 + number}.out").write_text(HEALTHY)
    top = [folder for folder in list_folders([str(tmp_path)]) if folder.path == str(tmp_path)]
    assert {folder.folders for folder in top} == {("none_ab12_x9q",)}
    assert sorted(file.path for folder in top for file in folder.files) == [str(tmp_path / f"fit-{770100 + n}.out") for n in range(40)]
    assert max(len(folder.files) for folder in top) <= 7


ARCHIVES: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "no archive": ("logs.zip", b"hello", {"logs.zip!": "unread"}),
    "an empty archive": ("logs.tar.gz", b"", {"logs.tar.gz!": "unread"}),
    "an archive that is cut off": (
        "logs.tar.gz",
        gzip.compress(gzip.decompress(tar_of({"a-770002.out": OOM.encode(), "b-770003.out": NOISE}))[:3000]),
        {"770002": "yes", "logs.tar.gz!": "unread"},
    ),
    "names that lead out of the archive": (
        "logs.zip",
        zip_of({"../../a-770002.out": OOM.encode(), "/etc/b-770003.out": HEALTHY.encode()}),
        {"770002": "yes", "770003": "no"},
    ),
    "a name that is not UTF-8 in an archive": ("logs.tar.gz", tar_of({"caf\udce9-770002.out": OOM.encode()}), {"770002": "yes"}),
    "much of nothing in an archive": (
        "logs.zip",
        zip_of({"a-770002.out": b"\0" * (30 << 20), "b-770003.out": OOM.encode()}),
        {"770002": "no", "770003": "yes"},
    ),
    "a long member that fails at its end": (
        "logs.tar.gz",
        tar_of({"a-770002.out": HEALTHY.encode() * 300_000 + OOM.encode()}),
        {"770002": "yes"},
    ),
}


@pytest.mark.parametrize(("name", "data", "told"), ARCHIVES.values(), ids=ARCHIVES)
def test_a_bad_archive_gives_what_it_holds(tmp_path: Path, name: str, data: bytes, told: dict[str, str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(data)
    assert {native: row.memory_failure for native, row in rows(tmp_path).items()} == told


@pytest.mark.parametrize("pack", [tar_of, zip_of], ids=["tar", "zip"])
def test_an_archive_that_holds_more_than_fits_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    monkeypatch.setattr(archives, "_HELD", 5000)
    (tmp_path / "logs").mkdir()
    members = {f"u/fit-{770100 + number}.out": HEALTHY.encode() * 50 + OOM.encode() for number in range(12)}
    (tmp_path / "logs" / ("a.zip" if pack is zip_of else "a.tar.gz")).write_bytes(pack(members))
    found = rows(tmp_path)
    assert sorted(found) == [str(770100 + number) for number in range(12)]
    assert {row.memory_failure for row in found.values()} == {"yes"}


def line(text: object, **labels: object) -> str:
    return json.dumps({"labels": labels, "line": text, "timestamp": "2025-06-03T01:02:03Z"}) + "\n"


EXPORTS: dict[str, tuple[str, dict[str, str]]] = {
    "objects within objects without end": ('{"labels":{"job":"deep"},"line":' + '{"a":' * 100_000 + "\n", {"deep": "yes"}),
    "labels that are no labels": ('{"labels":"none","line":{"a":1}}\n{"labels":{"job":["x"]},"line":7}\n', {}),
    "a name that is no text": ('{"labels":{"job":"\\ud800"},"line":"x"}\n', {}),
    "a name of a million letters": (line("x", job="j" * 1_000_000), {"j" * 1000: "no"}),
    "a name with line ends and escapes": (line(OOM, job="a\nb\x1b[31m"), {"a\nb\x1b[31m": "yes"}),
    "what is no JSON": ("{broken\nNaN\n[1,2]\n", {}),
    "a message of null": ('{"labels":{"job":"fit-1"},"line":null}\n', {}),
}


@pytest.mark.parametrize(("bad", "told"), EXPORTS.values(), ids=EXPORTS)
def test_hostile_lines_of_an_export_cost_no_other_line(tmp_path: Path, bad: str, told: dict[str, str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "export.jsonl").write_text(line(HEALTHY, job="fit-1") + bad + line(OOM, job="fit-2"))
    found = {native: row.memory_failure for native, row in rows(tmp_path).items()}
    assert {"fit-1": "no", "fit-2": "yes"}.items() <= found.items()
    assert {native: failed for native, failed in told.items() if native != "deep"}.items() <= found.items()


def test_an_export_that_begins_with_a_line_of_many_mib(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "export.jsonl").write_text(line("x" * (5 << 20), job="fit-1") + line(OOM, job="fit-2"))
    assert rows(tmp_path)["fit-2"].memory_failure == "yes"


def test_jobs_that_do_not_fit_together_wait_for_another_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_HELD", 3000)
    (tmp_path / "logs").mkdir()
    text = "".join(line(HEALTHY if turn < 9 else OOM, job=f"fit-{job}") for turn in range(10) for job in range(60))
    (tmp_path / "logs" / "export.jsonl").write_text(text)
    found = rows(tmp_path)
    assert len(found) == 60
    assert {row.memory_failure for row in found.values()} == {"yes"}


def test_of_a_job_with_very_many_lines_the_first_and_the_last_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_KEPT", 20_000)
    (tmp_path / "logs").mkdir()
    text = line("first", job="fit-1") + line(HEALTHY, job="fit-1") * 2000 + line(OOM, job="fit-1")
    (tmp_path / "logs" / "export.jsonl").write_text(text)
    row = rows(tmp_path)["fit-1"]
    assert (row.memory_failure, ["middle" in problem.why for problem in row.unreadable]) == ("yes", [True])
