"""One job is one row: however its folder is spelled, wherever its logs were copied, moved or exported, whatever else tells of it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from oomdoctor.api.fleet.triage import triage
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.store.parts import Parts
from oomdoctor.triage.store.sealed import seal, unseal

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
TIMED = "2025-06-03 01:02:03,004 INFO step 10 loss 2.1\n" + OOM
ID = "771234"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(store: Path, *paths: str | Path, **asked: object) -> list[JobRow]:
    result = triage([str(path) for path in paths], redact=str, store=str(store), **asked)  # type: ignore[arg-type]
    return sorted(Parts(result.folder).rows(), key=lambda row: row.job)


SPELLINGS = {
    "relative": "logs",
    "from here": "./logs",
    "with a slash behind": "logs/",
    "with two slashes": "logs//",
    "absolute": "{root}/logs",
    "up and down again": "logs/../logs",
    "through a link": "linked",
    "as a glob of folders": "lo*",
    "as a glob of files": "logs/*.out",
    "as a file": f"logs/fit-{ID}.out",
    "as a file behind a link": f"linked/fit-{ID}.out",
}


def test_a_folder_is_the_same_by_each_of_its_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "logs" / f"fit-{ID}.out", OOM)
    (tmp_path / "linked").symlink_to(tmp_path / "logs", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    named = {spelled: path.replace("{root}", str(tmp_path)) for spelled, path in SPELLINGS.items()}
    told = {spelled: [(row.job, row.files) for row in rows(tmp_path / "store", path)] for spelled, path in named.items()}
    assert {len(jobs) for jobs in told.values()} == {1}, told
    assert len({jobs[0] for jobs in told.values()}) == 1, told
    assert [len(row.files) for row in rows(tmp_path / "store", *named.values())] == [1]


def test_the_default_store_of_a_folder_is_the_same_by_each_of_its_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "logs" / f"fit-{ID}.out", OOM)
    (tmp_path / "linked").symlink_to(tmp_path / "logs", target_is_directory=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert len({triage([name], redact=str).folder for name in ("logs", "./logs", str(tmp_path / "logs"), "linked")}) == 1


def test_what_triage_wrote_itself_is_no_job(tmp_path: Path) -> None:
    write(tmp_path / f"fit-{ID}.out", OOM)
    for _ in range(3):
        result = triage([str(tmp_path)], redact=str, store=str(tmp_path / "store"))
        write_rows(result.folder, str(tmp_path / "rows.jsonl"))
        assert [row.files for row in Parts(result.folder).rows()] == [(str(tmp_path / f"fit-{ID}.out"),)]


def exported(text: str, **labels: str) -> str:
    lines = ({"labels": labels, "line": line, "timestamp": f"2025-06-03T01:02:{at:02d}Z"} for at, line in enumerate(text.splitlines()))
    return "".join(json.dumps(line) + "\n" for line in lines)


def shipped(text: str, pod: str) -> str:
    told = {"pod_name": pod, "pod_namespace": "team-a", "pod_node_name": "n1"}
    return "".join(
        json.dumps({"timestamp": "2025-06-03T01:02:03Z", "kubernetes": told, "message": line}) + "\n" for line in text.splitlines()
    )


def metadata(**told: object) -> str:
    return json.dumps({"host": "n1", "username": "u7", "program": "/home/u7/fit.py", **told})


SLURM = f"a/fit-{ID}.out"
RUN = "w/wandb/run-20250603_010203-k3xn51ab"
POD = "pods/n1/var/log/pods/team-a_sft-x7k2p-worker-0_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log"

ONE: dict[str, dict[str, str | bytes]] = {
    "a copied folder of Slurm logs": {SLURM: OOM, f"copy/{SLURM}": OOM},
    "a copy that was taken while the log grew": {SLURM: "line\n" * 300 + OOM, f"copy/{SLURM}": "line\n" * 299},
    "a packed copy": {SLURM: OOM, f"copy/{SLURM}.gz": gzip.compress(OOM.encode())},
    "a copied log of no scheduler, by another name": {"a/train.log": TIMED, "a/train-copy.log": TIMED, "b/train.log": TIMED},
    "a long log that states no time, copied": {"a/train.log": "step\n" * 1000 + OOM, "b/train.log": "step\n" * 1000 + OOM},
    "pieces of a rotated Slurm log": {SLURM: "going on\n", f"{SLURM}.1": TIMED, f"{SLURM}.2.gz": gzip.compress(b"begun\n")},
    "pieces of a rotated log, by their days": {"a/train.log": "going on\n", "a/train.log-20250602": TIMED, "a/train.log-20250601.gz": b""},
    "a log beside an export of it": {SLURM: TIMED, "export/loki.jsonl": exported(TIMED, job="anything")},
    "a pod in two exports": {"export/1.jsonl": shipped("step 1", "fit-1"), "later/2.jsonl": shipped(OOM, "fit-1")},
    "a pod's log beside an export of its lines": {
        POD: "2025-06-03T01:02:03.000000001Z stderr F " + OOM,
        "export/1.jsonl": shipped("step 1\n" + OOM, "sft-x7k2p-worker-0"),
    },
    "a wandb run, with what wandb writes of itself": {
        f"{RUN}/files/output.log": OOM,
        f"{RUN}/files/wandb-metadata.json": metadata(),
        f"{RUN}/files/requirements.txt": "torch==2.9\n",
        f"{RUN}/logs/debug.log": "2025-06-03 01:02:03,004 INFO start\n",
        f"{RUN}/logs/debug-internal.log": "2025-06-03 01:02:03,004 INFO start\n",
    },
    "a wandb run that was resumed": {
        f"{RUN}/files/output.log": OOM,
        "w/wandb/run-20250604_010203-k3xn51ab/files/output.log": "Training completed.\n",
    },
    "a wandb run inside a Slurm job": {
        f"{RUN}/files/output.log": OOM,
        f"{RUN}/files/wandb-metadata.json": metadata(slurm={"job_id": ID}),
        SLURM: "srun python fit.py\n" + OOM,
    },
}
SEVERAL: dict[str, tuple[int, dict[str, str | bytes]]] = {
    "two jobs of Slurm with the same text": (2, {SLURM: TIMED, "a/fit-771235.out": TIMED}),
    "two clusters that gave one number": (2, {SLURM: TIMED, f"other/fit-{ID}.out": TIMED.replace("10 loss", "11 loss")}),
    "two short logs without a time that say the same": (2, {"a/train.log": OOM, "b/train.log": OOM}),
    "two logs that differ in one figure": (2, {"a/train.log": TIMED, "b/train.log": TIMED.replace("loss 2.1", "loss 2.2")}),
    "an export whose text two jobs have": (
        3,
        {SLURM: TIMED, "a/fit-771235.out": TIMED, "export/loki.jsonl": exported(TIMED, job="anything")},
    ),
    "two exports that name no job": (2, {"a/1.jsonl": exported("step 1\n"), "b/1.jsonl": exported("step 2\n")}),
    "two pods": (2, {"export/1.jsonl": shipped(OOM, "fit-1"), "export/2.jsonl": shipped(OOM, "fit-2")}),
    "two wandb runs": (
        2,
        {f"{RUN}/files/output.log": OOM, "w/wandb/run-20250603_010203-zz9y51ab/files/output.log": OOM + "more\n"},
    ),
}


@pytest.mark.parametrize("files", ONE.values(), ids=list(ONE))
def test_views_of_one_job_are_one_row(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        write(tmp_path / "logs" / name, text)
    (row,) = rows(tmp_path / "store", tmp_path / "logs")
    assert (row.memory_failure, row.kind) == ("yes", "device-oom")
    assert not set(row.files) & set(row.also)


@pytest.mark.parametrize(("jobs", "files"), SEVERAL.values(), ids=list(SEVERAL))
def test_jobs_that_only_look_alike_are_rows_of_their_own(tmp_path: Path, jobs: int, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        write(tmp_path / "logs" / name, text)
    assert len(rows(tmp_path / "store", tmp_path / "logs")) == jobs


def test_a_log_that_has_moved_is_the_job_that_it_was(tmp_path: Path) -> None:
    write(tmp_path / "logs" / SLURM, TIMED)
    before = rows(tmp_path / "store", tmp_path / "logs")
    shutil.move(tmp_path / "logs", tmp_path / "kept")
    (after,) = rows(tmp_path / "store", tmp_path / "kept")
    assert [row.native for row in before] == [after.native]
    assert {*after.files, *after.also} == {os.path.realpath(tmp_path / name / SLURM) for name in ("logs", "kept")}


def test_what_only_one_view_knows_is_said_of_the_job(tmp_path: Path) -> None:
    write(tmp_path / "logs" / RUN / "files/output.log", OOM)
    write(tmp_path / "logs" / RUN / "files/wandb-metadata.json", metadata(slurm={"job_id": ID}))
    write(tmp_path / "logs" / SLURM, "srun python fit.py\n" + OOM)
    (row,) = rows(tmp_path / "store", tmp_path / "logs")
    owner = Path(tmp_path).owner()
    assert (row.native, row.layout, row.node) == (ID, "slurm", "n1")
    assert row.user == ("u7" if owner == "root" else owner)  # the log's own view tells the user where somebody owns it


def test_a_store_of_another_form_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path / "logs" / SLURM, OOM)
    result = triage([str(tmp_path / "logs")], redact=str, store=str(tmp_path / "store"))
    for part in Path(result.folder).glob("*.rows"):
        head, *lines = [unseal(line) or b"" for line in part.read_bytes().splitlines()]
        told = json.loads(head)
        told["basis"]["format"] = 0
        written = [json.dumps(told).encode(), *(line.replace(b"fit-", b"old-") for line in lines)]
        part.write_bytes(b"".join(seal(line) + b"\n" for line in written))
    Path(result.folder, "whole.json").unlink()
    assert [row.native for row in rows(tmp_path / "store", tmp_path / "logs")] == [ID]
