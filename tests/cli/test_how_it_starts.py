"""How the program starts: interrupted before it can say anything, and by a Python that takes a text beside bytes for an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 23.69 GiB of which 1.02 GiB is free.\n"
INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signal that ends a program without a word")
@pytest.mark.parametrize(("words", "module"), [
    pytest.param(("--version",), "oomdoctor.cli.main", id="before there are commands"),
    pytest.param(("--version",), "click", id="while the commands are loaded"),
    pytest.param(("run", "--", "true"), "oomdoctor.cli.runs.watched", id="before a command runs"),
])  # fmt: skip
def test_ctrl_c_ends_a_start_without_a_traceback(words: tuple[str, ...], module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED)
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "INTERRUPTED_AT": module}
    done = subprocess.run([sys.executable, "-m", "oomdoctor", *words], env=environ, capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty before the first start."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("words", [
    pytest.param(("diagnose", "train.log", "--env", "none"), id="a diagnosis"),
    pytest.param(("triage", "logs", "train.log", "--store", "store"), id="a triage"),
    pytest.param(("estimate", "--model", "Qwen2.5-7B", "--gpu", "24GB"), id="an estimate"),
    pytest.param(("run", "--quiet", "--", "false"), id="a run"),
])  # fmt: skip
def test_a_text_is_never_compared_with_bytes(words: tuple[str, ...], cache: Path, tmp_path: Path) -> None:
    """With the cache of an earlier start, too."""
    (tmp_path / "train.log").write_text(LOG)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(tmp_path)}
    for _ in range(2):
        strict = [sys.executable, "-bb", "-m", "oomdoctor", *words]
        done = subprocess.run(strict, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stderr) == (1, "")
