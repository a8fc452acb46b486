"""The log generator gives the same bytes each time, and every failure that it plants is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import logs
import pytest

ROOT = Path(__file__).parents[1]


def made(folder: Path, name: str, *options: str) -> bytes:
    logs.main([*options, "--output", str(folder / name), "--truth", str(folder / f"{name}.truth")])
    return (folder / name).read_bytes()


@pytest.mark.parametrize("shape", logs.SHAPES)
def test_the_number_of_processes_changes_no_byte(shape: str, tmp_path: Path) -> None:
    options = ("--size", "5MiB", "--shape", shape, "--failures", "all")
    assert made(tmp_path, "one.log", *options, "--jobs", "1") == made(tmp_path, "two.log", *options, "--jobs", "2")


def test_a_longer_log_begins_like_a_shorter_one_and_another_seed_does_not(tmp_path: Path) -> None:
    short, long = (made(tmp_path, size, "--size", size, "--jobs", "1") for size in ("5MiB", "9MiB"))
    assert len(short) == 5 << 20 and len(long) == 9 << 20
    assert short[: 4 << 20] == long[: 4 << 20]
    assert made(tmp_path, "other", "--size", "5MiB", "--seed", "2", "--jobs", "1")[1000:2000] != short[1000:2000]


@pytest.mark.parametrize("shape", [name for name in logs.SHAPES if name != "binary"])
def test_the_truth_names_the_place_of_each_message(shape: str, tmp_path: Path) -> None:
    data = made(tmp_path, "a.log", "--size", "256KiB", "--shape", shape, "--failures", "all", "--jobs", "1")
    text = data.decode("utf-16").encode() if shape == "utf16" else data
    truths = [json.loads(line) for line in (tmp_path / "a.log.truth").read_text().splitlines()]
    assert [truth["kind"] for truth in truths] == list(logs.FAILURES)
    for truth in truths:
        line = text[truth["offset"] :].split(b"\n")[0][:800].decode()
        printed = [str(value) for name, value in truth["fields"].items() if name != "shape" and value]
        assert [value for value in printed if value not in line] == []
        assert shape == "oneline" or text[truth["offset"] - 1 : truth["offset"]] == b"\n"


def test_every_planted_failure_is_found_and_nothing_else(tmp_path: Path) -> None:
    call = [sys.executable, str(ROOT / "bench" / "planted.py"), "--work", str(tmp_path), "--files", "60", "--size", "1MiB", "--jobs", "1"]
    done = subprocess.run(call, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = [line for line in done.stdout.splitlines() if line.endswith("; 0 differences")]
    assert len(counted) == 1 + len(logs.SHAPES) + len(logs.PREFIXES)
