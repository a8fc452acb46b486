"""`diagnose --env`: a described machine settles what a log leaves open, and the report says where its facts are from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli

ENVIRONMENTS = Path(__file__).parents[2] / "fixtures" / "environments"
LOG = (
    '  File "/data/run/train.py", line 40, in main\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is free. "
    "Including non-PyTorch memory, this process has 22.60 GiB memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, "
    "and 2.00 GiB is reserved by PyTorch but unallocated.\n"
)


def run(tmp_path: Path, *options: str, log: str = LOG) -> str:
    path = tmp_path / "train.log"
    path.write_text(log, encoding="utf-8")
    done = CliRunner().invoke(cli, ["diagnose", str(path), "--exit-zero", *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_file_gives_the_machine_and_the_report_says_so(tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, "--env", str(ENVIRONMENTS / "issue-zh.md"), "--format", "json"))
    assert report["environment"]["driver"] == {"version": "550.107.02", "cuda": "12.4"}
    assert "the log agrees on the card (23.69 GiB)" in report["environment"]["note"]
    assert report["training"]["torch_version"] == "2.4.0+cu121"
    assert any(gap["what"] == "packages.transformers.version" for gap in report["gaps"])


SMALL = (
    "bf16: true\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 620.00 MiB. GPU 0 has a total capacity of 7.92 GiB of which 301.00 MiB is free. "
    "Including non-PyTorch memory, this process has 7.62 GiB memory in use. Of the allocated memory 7.10 GiB is allocated by PyTorch, "
    "and 180.00 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(
    ("described", "settled"),
    [
        pytest.param(None, "possible", id="without a machine the finding waits"),
        pytest.param("GPU 0: NVIDIA GeForce GTX 1070", "certain", id="a card without native bf16 settles it"),
        pytest.param("GPU 0: NVIDIA GeForce RTX 3050", None, id="a card with native bf16 rules it out"),
    ],
)
def test_a_finding_that_waits_for_the_card_settles(tmp_path: Path, described: str | None, settled: str | None) -> None:
    env = "none"
    if described is not None:
        (tmp_path / "env.txt").write_text(described + "\n", encoding="utf-8")
        env = str(tmp_path / "env.txt")
    findings = json.loads(run(tmp_path, "--env", env, "--format", "json", log=SMALL))["findings"]
    sure = {finding["id"]: finding["confidence"] for finding in findings if not finding["unknowns"] or finding["confidence"] == "possible"}
    assert sure.get("small-cards-do-not-add-up") == settled


def test_that_this_machine_is_not_used_is_said_where_a_finding_waits_for_one(tmp_path: Path) -> None:
    text = " ".join(run(tmp_path, "--lang", "en", "--full", log='  File "/data/run/train.py", line 4, in main\n' + SMALL).split())
    assert "Facts about this machine are not used: /data/run/train.py does not exist here." in text


def test_a_card_that_is_full_in_the_file_is_not_taken_for_another_process(tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, "--env", str(ENVIRONMENTS / "nvidia-smi-470.txt"), "--format", "json"))
    assert not [finding["id"] for finding in report["findings"] if finding["id"].startswith("card-is-in-use")]


def test_what_the_machine_lacks_comes_after_what_happened(tmp_path: Path) -> None:
    described = tmp_path / "env.txt"
    described.write_text(
        "PyTorch version: 2.13.0+cu130\nCUDA used to build PyTorch: 13.0\nNvidia driver version: 470.82.01\n", encoding="utf-8"
    )
    report = json.loads(run(tmp_path, "--env", str(described), "--format", "json"))
    names = [finding["id"] for finding in report["findings"]]
    assert names[0] == json.loads(run(tmp_path, "--env", "none", "--format", "json"))["findings"][0]["id"]
    assert "driver-below-torch-build" in names[1:]


def test_by_default_a_log_from_elsewhere_is_read_alone(tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, "--format", "json"))
    assert list(report["environment"]) == ["note"]
    assert "/data/run/train.py does not exist here" in report["environment"]["note"]
    assert "not used" not in run(tmp_path)


def test_none_asks_for_no_machine(tmp_path: Path) -> None:
    assert json.loads(run(tmp_path, "--env", "none", "--format", "json"))["environment"] == {}


def test_the_line_in_the_report_is_in_its_language(tmp_path: Path) -> None:
    options = ("--env", str(ENVIRONMENTS / "nvidia-smi-560-windows.txt"))
    assert "Facts about the machine come from" in " ".join(run(tmp_path, *options, "--lang", "en", "--full").split())
    assert "机器信息来自" in run(tmp_path, *options, "--lang", "zh", "--full")


@pytest.mark.parametrize("env", [pytest.param("missing.txt", id="a file that is not there"), pytest.param(".", id="a folder")])
def test_a_file_that_cannot_be_read_is_wrong_use(tmp_path: Path, env: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(LOG, encoding="utf-8")
    done = CliRunner().invoke(cli, ["diagnose", str(path), "--env", str(tmp_path / env)])
    assert done.exit_code != 0


def test_a_file_that_describes_no_machine_is_a_gap(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("hello\n", encoding="utf-8")
    report = json.loads(run(tmp_path, "--env", str(other), "--format", "json"))
    assert [gap["why"] for gap in report["gaps"]] == ["nothing in it describes a machine"]
