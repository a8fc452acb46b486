"""The recipes of CONTRIBUTING.md, run as they stand in a copy of the rules and the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = re.findall(r"^<!-- recipe -->\n```sh\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M | re.S)
SAID = [
    pytest.param(0, ["1 signature tested, 0 complaints", "GPU memory ran out: 2.00 GiB were asked for"], id="a message is recognised"),
    pytest.param(
        1,
        ["1 problem tested, 0 complaints", "The quota of the farm is used up (likely)", "problem · device · gpufarm-quota"],
        id="a problem is explained",
    ),
    pytest.param(2, ["1 problem, 1 fix tested, 0 complaints", "Raise the quota.", "quota.memory"], id="a fix is proposed"),
    pytest.param(
        3, ["1 framework tested, 0 complaints", "`farm_length` is near", "The peak is about"], id="a framework is read and checked"
    ),
    pytest.param(4, ["1 table tested, 0 complaints", "Farm X1"], id="a card is known"),
    pytest.param(5, ["1 server tested, 0 complaints", "It starts. Farm Serve serving", "card_share 0.8"], id="a server is known"),
    pytest.param(6, ["run.properties:2", "`farm_length` is near"], id="a form of config is read"),
]


@cache
def outputs(where: Path) -> list[str]:
    """What the recipes print, one after the other, each on what those before it left."""
    for part in ("oomdoctor", "rules"):
        shutil.copytree(ROOT / part, where / part, ignore=shutil.ignore_patterns("__pycache__"))
    command = where / "bin" / "oomdoctor"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m oomdoctor "$@"\n')
    command.chmod(0o755)
    env = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(where), "XDG_CACHE_HOME": str(where / "cache")}
    env |= {"LC_ALL": "C.UTF-8", "COLUMNS": "120"}
    done = []
    for recipe in RECIPES:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", recipe], cwd=where, env=env, capture_output=True, text=True, encoding="utf-8"
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        done.append(ran.stdout)
    return done


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recipes")


@pytest.mark.parametrize(("number", "parts"), SAID)
def test_a_recipe_works_as_written(number: int, parts: list[str], where: Path) -> None:
    said = outputs(where)[number]
    assert [part for part in parts if part not in said] == []


def test_every_recipe_is_run() -> None:
    assert len(RECIPES) == len(SAID)
