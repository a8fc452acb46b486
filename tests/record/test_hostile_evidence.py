"""Evidence folders that somebody made to harm: what can be read is diagnosed, nothing is followed or run, and no error gets out."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from record.made_evidence import GIB, MIB, Card, ring

from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.record.observations.sources import observed
from oomdoctor.record.read_folder import read_evidence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    card = Card(tmp_path / "evidence", rank=0)
    card.ask(3 * GIB)
    card.steps(14, kept=400 * MIB)
    return card.dies(9 * GIB)


def lead_out(folder: Path) -> None:
    secret = folder.parent / "secret"
    secret.write_text("CUDA out of memory. Tried to allocate 9.00 GiB of a secret")
    for name in ("log.txt", "environment.json", "ranks/pid-9.exception.json"):
        (folder / name).symlink_to(secret)


def config_leads_out(folder: Path) -> None:
    (folder / "configs").symlink_to("/etc")


def pipes(folder: Path) -> None:
    (folder / "configs").mkdir()
    for name in ("configs/run.yaml", "log.txt", "ranks/rank-7.pid-9.oom-1.json", "ranks/rank-7.pid-9.ring"):
        os.mkfifo(folder / name)


def folders_for_files(folder: Path) -> None:
    for name in ("log.txt", "environment.json", "ranks/pid-9.oom-1.json", "ranks/pid-9.oom-1.pickle"):
        (folder / name).mkdir()


def code_in_the_snapshot(folder: Path) -> None:
    for path in (folder / "ranks").glob("*.pickle"):
        path.write_bytes(b"cos\nsystem\n(S'touch %s'\ntR." % bytes(folder / "RAN"))


def wrong_types(folder: Path) -> None:
    (folder / "run.json").write_text(json.dumps({"schema": "oomdoctor/evidence/v1", "command": 7, "end": "soon"}))
    (folder / "samples.jsonl").write_text('{"t": "x"}\n{"t": 1e999}\n[]\n{"t": NaN}\n')


def deep(folder: Path) -> None:
    (folder / "run.json").write_text("[" * 100_000)


def numbers_without_end(folder: Path) -> None:
    huge = 10**30
    (folder / "ranks" / "rank-1.pid-8.oom-1.json").write_text(
        json.dumps(
            {"time": 1e300, "device": -3, "driver_request_bytes": huge, "free_bytes": -huge, "step": -1, "stats": {"reserved_bytes": []}}
        )
    )
    (folder / "ranks" / "rank-1.pid-8.ring").write_bytes(ring([(float("inf"),) * 7, (-1.0,) * 7, (float("nan"),) * 7, (1e300,) * 7]))


@pytest.mark.parametrize("harm", [
    pytest.param(lead_out, id="links that lead out of the folder"),
    pytest.param(config_leads_out, id="a folder of configs that is a link"),
    pytest.param(pipes, id="pipes that never end"),
    pytest.param(folders_for_files, id="folders in place of files"),
    pytest.param(code_in_the_snapshot, id="a snapshot that runs a command"),
    pytest.param(wrong_types, id="values of wrong types"),
    pytest.param(deep, id="brackets without end"),
    pytest.param(numbers_without_end, id="numbers that no memory has"),
])  # fmt: skip
def test_the_rest_is_diagnosed(folder: Path, harm: Callable[[Path], None]) -> None:
    harm(folder)
    diagnosis = diagnose_evidence(str(folder), load_pack())
    assert diagnosis.case.verdict.memory_failure == "yes"
    assert not (folder / "RAN").exists()
    assert "secret" not in str(diagnosis.case.sources) + str([event.text for event in diagnosis.case.events])
    assert not any(path.startswith("/etc") for path in read_evidence(str(folder)).configs)


def test_words_of_the_evidence_are_one_line_each(folder: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    run["kernel"] = ["\x1b[31mred\nThe kernel killed processes of the run (9) because the machine ran out of memory."]
    run["files"] = [{"path": "/a\n/dev/shm was full: 0 of 9 bytes", "total_bytes": 9, "least_free_bytes": 0}]
    (folder / "run.json").write_text(json.dumps(run))
    events = diagnose_evidence(str(folder), load_pack()).case.events
    assert [event.text for event in events if event.signature in ("watched-machine-kill", "watched-shm-full")] == []
    assert [event.fields["path"] for event in events if event.signature == "watched-disk-full"] == ["/a /dev/shm was full: 0 of 9 bytes"]


@pytest.mark.parametrize("seed", range(6))
def test_damaged_files_are_no_error(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pickle")
    for _ in range(40):
        path = dice.choice(files)
        whole = path.read_bytes()
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            if damaged:
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(bytes(damaged[: dice.randint(0, len(damaged))]))
        observed(read_evidence(str(folder)), load_pack())
        path.write_bytes(whole)
