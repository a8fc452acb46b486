"""The recipes of CONTRIBUTING.md, run as they stand in a copy of the rules and the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECIPES = re.findall(r"^<!-- recipe -->\n```sh\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M | re.S)
SAID = {
    "a message is recognised": ["1 signature tested, 0 complaints", "GPU memory ran out: 2.00 GiB requested"],
    "a word means what it is said to mean": ["Most likely the host ran out of memory (RAM)"],
    "a problem is explained": [
        "1 problem tested, 0 complaints",
        "Why (likely): the farm quota is exhausted",
        "problem · device · gpufarm-quota",
    ],
    "a fix is proposed": ["1 problem, 1 fix tested, 0 complaints", "quota.memory", "(raise the quota"],
    "a known bug is named": [
        "3 signatures, 1 bug tested, 0 complaints",
        "Known bug in gpufarm 1.2.0",
        "Upgrade gpufarm to 1.3.0 or later",
        "memory bug of gpufarm",
    ],
    "a framework is read and checked": ["1 framework tested, 0 complaints", "a similar key is `farm_length`", "The run needs"],
    "a card is known": ["1 table tested, 0 complaints", "Farm X1"],
    "a server is known": ["1 server tested, 0 complaints", "It starts. Farm Serve serving", "card_share 0.8"],
    "a form of config is read": ["run.properties:2", "a similar key is `farm_length`"],
}
"""What each recipe is for, in their order, and what it prints."""


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


def test_the_recipes_work_as_written(tmp_path: Path) -> None:
    """In one test: each goes on where the one before it ended, and two processes that share a table would each run them all."""
    assert len(RECIPES) == len(SAID)
    printed = zip(SAID.items(), outputs(tmp_path))
    missing = {name: lacking for (name, parts), text in printed if (lacking := [part for part in parts if part not in text])}
    assert missing == {}
