"""Manual pages and completions: as the commands say, readable by man, and of use in a real shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oomdoctor.cli.interfaces.completion import SHELLS
from oomdoctor.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
SHARE = ROOT / "share"
PAGES = sorted((SHARE / "man/man1").glob("*.1"))


def test_the_pages_are_what_the_commands_say(bless: bool) -> None:
    command = [sys.executable, str(ROOT / "tools/man.py"), *([] if bless else ["--check"])]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_has_a_page() -> None:
    assert {f"oomdoctor-{name}" for name in COMMANDS} <= {path.stem for path in PAGES}


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_every_page_is_set_without_a_warning() -> None:
    command = ["groff", "-man", "-ww", "-Tutf8", *map(str, PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    shown = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)  # bold is struck twice
    assert shown.count("SYNOPSIS") == len(PAGES)
    assert [name for name in COMMANDS if f"oomdoctor {name}" not in shown] == []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        pytest.param("oomdoctor diag", {"diagnose"}, id="a command"),
        pytest.param("oomdoctor diagnose --form", {"--format"}, id="an option"),
        pytest.param("oomdoctor diagnose --format mark", {"markdown"}, id="the value of an option"),
        pytest.param("oomdoctor triage me", {"merge", "metrics"}, id="a command of a command"),
        pytest.param("oomdoctor completion f", {"fish"}, id="an argument"),
    ],
)
def test_bash_completes(line: str, offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "oomdoctor").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m oomdoctor "$@"\n')
    (tmp_path / "oomdoctor").chmod(0o755)
    script = f"""
        shopt -s extglob
        source {shlex.quote(str(SHARE))}/bash-completion/completions/oomdoctor
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _oomdoctor_completion oomdoctor
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_takes_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (path,) = [path for path in SHARE.rglob("*oomdoctor*") if path.is_file() and shell in str(path)]
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
