"""Logs in an object store, served on this machine: the rows of the folder that was put there."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from msgspec.json import encode

from oomdoctor.api.fleet.triage import triage
from oomdoctor.errors import UsageError
from oomdoctor.triage.elsewhere.stores import is_in_store, list_stores
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts

OOM = b"Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n"
WELL = b"step 10 loss 2.1\nTraining completed.\n"
POD = "n1/var/log/pods/t_sft-x7k2p-{role}_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log"


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.out", data)
    return file.getvalue()


FILES = {
    "u7/sft-glm-771234.out": WELL,
    "u7/sft-glm-771234.err": OOM,
    "u7/sft-771235.out.gz": gzip.compress(OOM),
    "u7/sft-771236.out": b"",
    "u7/sft 771237 [a]*?.out": OOM,
    "u8/large-771238.out": WELL * 300_000 + OOM,
    "u8/old.zip": zipped(sft_771239=OOM, sft_771240=WELL),
    "u8/weights.safetensors": b"\0" * 100,
    "sft-771241/launcher.out": WELL,
    "sft-771241/none_ab12_x9q/attempt_0/0/stderr.log": WELL,
    "sft-771241/none_ab12_x9q/attempt_0/1/stderr.log": OOM,
    POD.format(role="master-0"): b"2025-06-03T01:02:03.000000001Z stderr F step 1\n",
    **{f"many/sft-{772000 + number}.out": OOM if number % 7 == 0 else WELL for number in range(80)},
}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    told = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x", "DEFAULT_REGION": "us-east-1"}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(use_listings_cache=False)
    files.mkdir("logs")
    yield files
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def rows(folder: str, root: str) -> list[bytes]:
    """The rows in a folder of parts, less what tells where and when they were read: paths below `root`, owners, times, hashes of paths."""
    made = sorted(Parts(folder).rows(), key=lambda row: row.job)
    return [encode(_plain(row)).replace(root.encode(), b"ROOT") for row in made]


def _plain(row: JobRow) -> dict[str, object]:
    left_out = {"user", "ended", "day", "key", "campaign", "group", "scanned_at"}
    return {name: getattr(row, name) for name in row.__struct_fields__ if name not in left_out}


def test_the_rows_are_those_of_the_folder(tmp_path: Path, store: Any) -> None:
    for name, data in FILES.items():
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(data)
        store.pipe_file(f"logs/fleet/{name}", data)
    here = triage([str(tmp_path / "logs")], redact=str, store=str(tmp_path / "here"))
    there = triage(["s3://logs/fleet/"], redact=str, store=str(tmp_path / "there"))
    assert (there.files, there.fleet.failed) == (len(FILES) - 1, here.fleet.failed)
    assert rows(there.folder, "s3://logs/fleet") == rows(here.folder, str(tmp_path / "logs"))


def test_only_what_has_another_tag_is_read_again(tmp_path: Path, store: Any) -> None:
    for number in range(4):
        store.pipe_file(f"logs/u7/sft-{771000 + number}.out", WELL)

    def read() -> int:
        return triage(["s3://logs/u7"], redact=str, store=str(tmp_path / "store")).read

    assert (read(), read()) == (4, 0)
    store.pipe_file("logs/u7/sft-771000.out", WELL)
    store.pipe_file("logs/u7/sft-771001.out", OOM)
    assert (read(), read()) == (1, 0)


def test_a_list_names_objects_and_prefixes(tmp_path: Path, store: Any) -> None:
    for name in ("u7/sft-771000.out", "u7/sft-771001.out", "u8/sft-771002.out"):
        store.pipe_file(f"logs/{name}", OOM)
    (tmp_path / "names").write_text("s3://logs/u7/sft-771001.out\ns3://logs/u8\ns3://logs/u9\n")
    result = triage(files_from=str(tmp_path / "names"), redact=str, store=str(tmp_path / "store"))
    assert (result.fleet.jobs, result.fleet.failed, result.fleet.unreadable_files) == (3, 2, 1)


def test_an_object_that_went_away_is_unread(tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe_file("logs/u7/sft-771000.out", OOM)
    (folder,) = list_stores(["s3://logs/u7"])
    store.rm_file("logs/u7/sft-771000.out")
    monkeypatch.setattr("oomdoctor.triage.listing.list_stores", lambda _: [folder])
    result = triage(["s3://logs/u7"], redact=str, store=str(tmp_path / "store"))
    (row,) = Parts(result.folder).rows()
    assert (row.memory_failure, [unread.path for unread in row.unreadable]) == ("unread", ["s3://logs/u7/sft-771000.out"])


@pytest.mark.parametrize("path", ["/logs", "logs", "c:/logs", "./s3:/x", "a b://x"], ids=lambda path: f"{path} is on this machine")
def test_paths_of_this_machine_are_in_no_store(path: str) -> None:
    assert not is_in_store(path)


def test_a_store_that_nothing_reads_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere://logs"):
        triage(["nowhere://logs"], redact=str, store=str(tmp_path / "store"))


LISTS = {
    "a path a line": b"u7/sft-771000.out\nu7/sft-771001.out\n",
    "a last line without an end": b"u7/sft-771000.out\nu7/sft-771001.out",
    "names ended by NUL": b"u7/sft-771000.out\0u7/sft-771001.out\0",
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_a_list_of_paths_is_read(tmp_path: Path, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("u7")
    for number in range(3):
        Path(f"u7/sft-{771000 + number}.out").write_bytes(OOM)
    Path("names").write_bytes(text)
    assert triage(files_from="names", redact=str, store="store").fleet.failed == 2


def test_a_list_may_hold_names_with_line_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sft\n1.out").write_bytes(OOM)
    Path("names").write_bytes(b"sft\n1.out\0missing.out\0")
    result = triage(files_from="names", redact=str, store="store")
    assert (result.fleet.failed, result.fleet.unread) == (1, 1)


def test_a_listed_log_beside_the_folders_of_its_run_is_of_that_run(tmp_path: Path) -> None:
    names = ["sft-771241/launcher.out", "sft-771241/none_ab12_x9q/attempt_0/0/stderr.log"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(OOM)
    (tmp_path / "names").write_text("".join(f"{tmp_path / name}\n" for name in names))
    assert triage(files_from=str(tmp_path / "names"), redact=str, store=str(tmp_path / "store")).fleet.jobs == 1
