"""Every way out of the folders that agents may read, called by the protocol's own client: refused, named, and nothing of it quoted."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from agent_client import CONFIG, LOG, Reply, talk

MARK = "notforyou"
"""What stands in every file outside."""
LEAK = f"{LOG} {MARK}\n"
MODEL = {"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000, MARK: MARK}

Call = tuple[str, Mapping[str, object]]


def log(path: str) -> Call:
    return "diagnose_log", {"logs": [path]}


NAMED: dict[str, Call] = {
    "two dots": log("../outside/secret.log"),
    "two dots behind a folder": log("logs/../../outside/secret.log"),
    "two dots behind a folder that is not there": log("none/../../outside/secret.log"),
    "an absolute path": log("{outside}/secret.log"),
    "an absolute path through the root": log("{root}/../outside/secret.log"),
    "a folder whose name begins like the root's": log("{root}-too/secret.log"),
    "a home folder": log("~/secret.log"),
    "a link to a file": log("ways/file.log"),
    "a link to a link": log("ways/second.log"),
    "a relative link": log("ways/relative.log"),
    "a link to a folder": log("ways/folder"),
    "a link in the middle": log("ways/folder/secret.log"),
    "a link and then two dots": log("ways/folder/../outside/secret.log"),
    "the root of the process": log("/proc/self/root{outside}/secret.log"),
    "the working directory of the process": log("/proc/self/cwd/../outside/secret.log"),
    "an open file of the process": log("/proc/self/fd/0"),
    "standard input by its name": log("/dev/stdin"),
    "standard input by its number": log("/dev/fd/0"),
    "a device without an end": log("/dev/zero"),
    "a pattern with an absolute path": log("{outside}/*.log"),
    "a pattern with two dots": log("../outside/*.log"),
    "a name as Windows shares files": log("//server/share/secret.log"),
    "as a config": ("estimate_memory", {"config": ["../outside/ds.json"], "gpu": "24GB"}),
    "as a config that is checked": ("check_config", {"config": ["ways/folder/sft.yaml"]}),
    "as a config that is changed": ("propose_fix", {"config": ["ways/folder/sft.yaml"], "gpu": "24GB"}),
    "as a model's folder": ("estimate_memory", {"model": "{outside}/model", "gpu": "24GB"}),
    "as a model's folder by a link": ("plan_fit", {"model": "ways/folder/model", "gpu": "24GB"}),
    "as a model that is not there": ("estimate_memory", {"model": "../outside/none", "gpu": "24GB"}),
    "as a series": ("diagnose_log", {"logs": ["train.log"], "series": ["../outside/gpu.csv"]}),
    "as a snapshot": ("read_snapshot", {"files": ["../outside/secret.log"]}),
    "as a machine": ("read_environment", {"report": "../outside/secret.log"}),
    "as records of a scheduler": ("triage_logs", {"paths": ["logs"], "records": ["../outside/sacct.txt"]}),
    "as the other run": ("compare_runs", {"before": "train.log", "after": "../outside/secret.log"}),
}
"""Paths that lead out by themselves."""
LED: dict[str, Call] = {
    "a log in a folder": log("linked"),
    "a log behind a pattern": log("linked/*.log"),
    "a log behind a pattern that a link to a folder fits": log("ways/fold*/secret.log"),
    "a log among many jobs": ("triage_logs", {"paths": ["linked"]}),
    "a log of the other run": ("compare_runs", {"before": "train.log", "after": "linked"}),
    "the DeepSpeed JSON beside a config": ("check_config", {"config": ["named/beside.yaml"]}),
    "the config that a script names": ("check_config", {"config": ["named/run.sh"]}),
    "the model that a config names": ("estimate_memory", {"config": ["named/model.yaml"], "gpu": "24GB"}),
    "the config.json of a model": ("estimate_memory", {"model": "named/model", "gpu": "24GB"}),
    "a GGUF file": ("estimate_memory", {"model": "named/model.gguf", "gpu": "24GB", "serve": True}),
    "a series in a folder": ("diagnose_log", {"logs": ["train.log"], "series": ["series"]}),
    "records in a folder": ("triage_logs", {"paths": ["logs"], "records": ["records"]}),
}
"""Paths inside that lead to a file outside, which is refused by its own name."""
NOTHING: dict[str, Call] = {
    "standard input as a dash": log("-"),
    "a file of a URL": log("file://{outside}/secret.log"),
    "a page of the web": log("http://127.0.0.1:9/secret.log"),
    "a store of objects": log("s3://bucket/secret.log"),
    "the root in capitals": log("{ROOT}/../OUTSIDE/SECRET.LOG"),
    "a NUL": log("train.log\0../outside/secret.log"),
    "a name longer than any": log("a" * 5000),
    "what marks a folder as evidence": log("evidence"),
    "members of an archive": ("triage_logs", {"paths": ["archives"]}),
    "a folder in a folder by a link": ("triage_logs", {"paths": ["ways"]}),
    "the DeepSpeed JSON that a config names": ("check_config", {"config": ["named/absolute.yaml"]}),
}
"""What leads nowhere: nothing there is opened, whatever it is called."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A root with links out of it, and a folder beside it that nobody may read."""
    base = tmp_path_factory.mktemp("ways")
    root, outside = base / "root", base / "outside"
    for folder in (root, outside, base / "root-too", outside / "model"):
        folder.mkdir()
    for name in ("logs", "ways", "linked", "named", "named/model", "series", "records", "archives", "evidence"):
        (root / name).mkdir()
    for path in (outside / "secret.log", base / "root-too" / "secret.log"):
        path.write_text(LEAK)
    for path in (root / "train.log", root / "logs" / "slurm-1.out"):
        path.write_text(f"{LOG}\n")
    (outside / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 3}, MARK: MARK}))
    (outside / "sft.yaml").write_text(f"{CONFIG}run_name: {MARK}\n")
    (outside / "gpu.csv").write_text(f"timestamp, index, memory.used [MiB], {MARK}\n")
    (outside / "sacct.txt").write_text(f"JobID|JobName|State\n1|{MARK}|OUT_OF_MEMORY\n")
    (outside / "model" / "config.json").write_text(json.dumps(MODEL))
    (outside / "model.gguf").write_bytes(b"GGUF" + MARK.encode())
    links = {
        "ways/file.log": outside / "secret.log",
        "ways/second.log": root / "ways" / "file.log",
        "ways/relative.log": Path("../../outside/secret.log"),
        "ways/folder": outside,
        "linked/train.log": outside / "secret.log",
        "named/ds.json": outside / "ds.json",
        "named/sft.yaml": outside / "sft.yaml",
        "named/model/config.json": outside / "model" / "config.json",
        "named/model.gguf": outside / "model.gguf",
        "series/gpu.csv": outside / "gpu.csv",
        "records/sacct.txt": outside / "sacct.txt",
        "evidence/run.json": outside / "secret.log",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (root / "named" / "beside.yaml").write_text(f"{CONFIG}deepspeed: ds.json\n")
    (root / "named" / "absolute.yaml").write_text(f"{CONFIG}deepspeed: {outside}/ds.json\n")
    (root / "named" / "run.sh").write_text(
        "deepspeed train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --deepspeed ds.json\n"
    )
    (root / "named" / "model.yaml").write_text(CONFIG.replace("Qwen/Qwen2.5-7B", str(outside / "model")))
    _write_archives(root / "archives", outside / "secret.log")
    return root, outside


def _write_archives(folder: Path, target: Path) -> None:
    with tarfile.open(folder / "logs.tar.gz", "w:gz") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo(f"slurm-{kind.decode()}1.out")
            link.type, link.linkname = kind, str(target)
            tar.addfile(link)
        absolute = tarfile.TarInfo(str(target))
        tar.addfile(absolute, io.BytesIO())
    with zipfile.ZipFile(folder / "logs.zip", "w") as archive:
        link_in_zip = zipfile.ZipInfo("slurm-31.out")
        link_in_zip.external_attr = 0o120777 << 16
        archive.writestr(link_in_zip, str(target))


@pytest.fixture(scope="module")
def replies(places: tuple[Path, Path]) -> dict[str, Reply]:
    """The answers to all rows, on one screen and whole."""
    root, outside = places

    def filled(value: object) -> object:
        if isinstance(value, list):
            return [filled(part) for part in value]
        return value.format(root=root, ROOT=str(root).upper(), outside=outside) if isinstance(value, str) else value

    rows = {**NAMED, **LED, **NOTHING}
    calls = [(tool, {name: filled(value) for name, value in arguments.items()}) for tool, arguments in rows.values()]
    _, told = talk(root, *calls, home=outside, whole=True)
    return dict(zip(rows, told))


@pytest.mark.parametrize("name", NAMED)
def test_a_path_that_leads_out_is_refused(name: str, replies: dict[str, Reply]) -> None:
    reply = replies[name]
    assert reply.is_error
    assert "outside the folders" in reply.text
    assert MARK not in reply.text


@pytest.mark.parametrize("name", LED)
def test_what_a_path_leads_to_outside_is_refused_and_named(name: str, replies: dict[str, Reply]) -> None:
    reply = replies[name]
    assert MARK not in reply.text + reply.whole
    assert "outside the folders" in reply.text + reply.whole


@pytest.mark.parametrize("name", NOTHING)
def test_what_leads_nowhere_opens_nothing(name: str, replies: dict[str, Reply]) -> None:
    reply = replies[name]
    assert MARK not in reply.text + reply.whole


_RACE = """
import os, sys, threading
from oomdoctor.opening import confine, open_file

root, outside = sys.argv[1:]
confine([root])
os.chdir(root)
stop = threading.Event()

def swap():
    while not stop.is_set():
        for target in ("inside", outside):
            os.symlink(target, "new")
            os.replace("new", "link")

os.symlink("inside", "link")
swapping = threading.Thread(target=swap)
swapping.start()
read = refused = 0
while read < 50 or refused < 50:
    try:
        with open_file("link/file") as file:
            assert file.read() == b"inside"
        read += 1
    except OSError as why:
        assert why.strerror == "outside the folders that may be read", why
        refused += 1
stop.set()
swapping.join()
"""


def test_a_link_that_is_swapped_while_it_is_opened_leads_nowhere(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "inside", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_text(folder.name)
    subprocess.run([sys.executable, "-c", _RACE, str(root), str(outside)], check=True, cwd=Path(__file__).parents[2], timeout=600)


def test_a_file_with_a_second_name_outside_lies_inside_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "train.log").write_text(f"{LOG}\n")
    os.link(tmp_path / "train.log", root / "train.log")
    _, (reply,) = talk(root, log("train.log"))
    assert reply.fields["memory_failure"] == "yes"


def test_a_root_that_is_a_link_is_the_folder_behind_it(tmp_path: Path, places: tuple[Path, Path]) -> None:
    root = tmp_path / "link"
    root.symlink_to(shutil.copytree(places[0] / "logs", tmp_path / "logs"))
    _, (reply,) = talk(root, log("slurm-1.out"))
    assert reply.fields["memory_failure"] == "yes"
