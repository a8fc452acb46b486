"""Where signals cannot be waited for, a command is run in the plain way: same status, and signals reach it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and signals")

RUN = """
import sys
from oomdoctor.record.command.plain import PlainLaunched
launched = PlainLaunched(sys.argv[1:], {"PATH": "/usr/bin:/bin"})
launched.end(launched.wait())
"""


def started(*words: str) -> subprocess.Popen[bytes]:
    environ = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", RUN, *words], env=environ, stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param("exit 0", 0, id="well"),
        pytest.param("exit 9", 9, id="exit code"),
        pytest.param("kill -TERM $$", -signal.SIGTERM, id="signal"),
        pytest.param("kill -KILL $$", -signal.SIGKILL, id="a signal that cannot be handled"),
    ],
)
def test_the_status_is_the_command_s(line: str, status: int) -> None:
    process = started("sh", "-c", line)
    process.communicate(timeout=600)
    assert process.returncode == status


def test_a_signal_is_handed_on() -> None:
    process = started("sh", "-c", "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    out, _ = process.communicate(timeout=600)
    assert (process.returncode, out) == (3, b"got\n")
