"""The tutorials, run as a reader would: each command in its order in one folder; what is shown as printed is what is printed."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
_BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```(?:\n\n<!-- prints -->\n```text\n(?P<printed>.*?)```)?", re.DOTALL)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def shell(folder: Path, cache: Path) -> dict[str, str]:
    """An environment in which `oomdoctor` is this project's, and notes how it ended."""
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    program = folder / "bin" / "oomdoctor"
    program.write_text(
        f'#!/bin/sh\n{shlex.quote(sys.executable)} -m oomdoctor "$@"\nstatus=$?\necho "$status $*" >> {shlex.quote(str(folder))}/statuses\nexit $status\n'
    )
    program.chmod(0o755)
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "84",
        "LC_ALL": "C.UTF-8",
        "XDG_CACHE_HOME": str(cache),
    }


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in TUTORIALS])
def test_every_command_of_a_tutorial_runs_and_prints_what_is_shown(path: Path, tmp_path: Path, cache: Path, bless: bool) -> None:
    environment, text = shell(tmp_path, cache), path.read_text(encoding="utf-8")
    shown = text
    for block in _BLOCK.finditer(text):
        done = subprocess.run(
            ["bash", "-c", block["commands"]], cwd=tmp_path / "work", env=environment, capture_output=True, encoding="utf-8", check=False
        )
        if block["printed"] is not None:
            kept = block[0].removesuffix(f"{block['printed']}```")
            shown = shown.replace(block[0], f"{kept}{done.stdout}```")
    statuses = (tmp_path / "statuses").read_text().splitlines()
    assert [line for line in statuses if line.split()[0] not in ("0", "1")] == []
    if bless:
        path.write_text(shown, encoding="utf-8")
        text = shown
    assert _said(text) == _said(shown)


def _said(text: str) -> str:
    """Return a text as it is where the logs are root's; somebody else is named as whose jobs they are, which breaks lines elsewhere."""
    if os.geteuid() == 0:
        return text
    return re.sub(r"\s+", "", text.replace(f"· {pwd.getpwuid(os.geteuid()).pw_name}", ""))


def test_each_tutorial_is_there_in_both_languages() -> None:
    names = [path.name.split(".")[:2] for path in TUTORIALS]
    assert {name for name, lang in names if lang == "en"} == {name for name, lang in names if lang == "zh"}
    for name in {name for name, _ in names}:
        commands = [
            [
                re.sub(r" --lang zh", "", block["commands"])
                for block in _BLOCK.finditer((ROOT / f"docs/tutorials/{name}.{lang}.md").read_text("utf-8"))
            ]
            for lang in ("en", "zh")
        ]
        assert [len(block.splitlines()) for block in commands[0]] == [len(block.splitlines()) for block in commands[1]]
