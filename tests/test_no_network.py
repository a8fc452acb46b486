"""No command opens a connection: an audit hook in the program stops the first that tries."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOK = """
import sys

def stop(event, given):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"):
        sys.stderr.write(f"NETWORK {event} {given!r}\\n")
        sys.stderr.flush()
        import os
        os._exit(97)

sys.addaudithook(stop)
"""
LOG = "fixtures/cases/nvml-assert/train.log"
CONFIG = "fixtures/compare/today.yaml"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What commands are started with: an empty cache, which the first fills."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "sitecustomize.py").write_text(HOOK)
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    return os.environ | cache | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.mark.parametrize("command", [
    pytest.param(f"diagnose {LOG}", id="a log"),
    pytest.param(f"diagnose {LOG} --format html", id="a page"),
    pytest.param(f"report {LOG} --for pytorch", id="an issue"),
    pytest.param(f"estimate {CONFIG} --gpu 24GB", id="an estimate"),
    pytest.param("estimate meta-llama/Llama-3.1-8B-unheard-of --method lora --gpu 24GB", id="a name that stands in no table"),
    pytest.param(f"plan {CONFIG} --gpu 24GB", id="a plan"),
    pytest.param(f"check {CONFIG} --gpu 24GB", id="a check"),
    pytest.param(f"fix {CONFIG} --gpu 24GB --dry-run", id="a correction"),
    pytest.param("compare fixtures/compare/last-week.log fixtures/compare/today.log --exit-zero", id="a comparison"),
    pytest.param("explain fragmentation", id="the handbook"),
    pytest.param("bugs vllm==0.16.0", id="bugs of a release"),
    pytest.param("env", id="this machine"),
    pytest.param("triage fixtures/cases/nvml-assert --store STORE", id="a triage"),
    pytest.param("run --out STORE -- true", id="a watched command"),
])  # fmt: skip
def test_a_command_opens_no_connection(command: str, watched: dict[str, str], tmp_path: Path) -> None:
    words = [word.replace("STORE", str(tmp_path / "store")) for word in shlex.split(command)]
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *words], cwd=ROOT, env=watched, capture_output=True, encoding="utf-8", check=False
    )
    answered = done.returncode in (0, 1) or "is not in the table" in done.stderr
    assert answered and "NETWORK" not in done.stderr, done.stderr[-2000:]


def test_the_hook_would_notice_one(watched: dict[str, str]) -> None:
    code = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    done = subprocess.run([sys.executable, "-c", code], env=watched, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 97 and "NETWORK" in done.stderr
