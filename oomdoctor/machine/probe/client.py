"""Run the probe in another interpreter: in a process of its own, with a time limit, whatever it prints, hangs on or dies of."""

from __future__ import annotations

import os
import pkgutil
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from oomdoctor.machine.probe.answer import ProbeAnswer, ProbeResult, decode_answer

_START = "import sys\nsys.path[:] = [folder for folder in sys.path if folder]\nexec(compile({source!r}, 'probe.py', 'exec'))"
"""The probe is handed over as text: neither our folder nor the working directory then stands before the interpreter's own modules,
and it works from a zip archive too."""
_MARK = b"\noomdoctor-probe:"
_LONGEST_ERROR = 600
_GRACE = 0.5
_MOST_BYTES = 1 << 20


class ProbeClient:
    """A probe that runs from now on."""

    def __init__(self, python: str, environ: Mapping[str, str], seconds: float, *, deep: bool = False) -> None:
        self._until = time.monotonic() + seconds
        self._failed: str | None = None
        # Files, not pipes: a process that leaves children behind or floods its output can then neither block us nor fill our memory.
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - result() closes them
        try:
            self._process = subprocess.Popen(
                [python, "-B", "-c", _START.format(source=_script()), *(["--deep"] if deep else [])],
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        except (OSError, ValueError) as why:
            self._failed = getattr(why, "strerror", None) or str(why)

    def result(self) -> ProbeResult:
        """Return the answer, when the time is up at the latest."""
        with self._out, self._err:
            return ProbeResult(error=self._failed) if self._failed is not None else self._result()

    def _result(self) -> ProbeResult:
        try:
            status = self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(self._process.pid)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
            return ProbeResult(timed_out=True, error=_last_lines(self._err))
        self._out.seek(max(0, self._out.seek(0, os.SEEK_END) - _MOST_BYTES))
        answer = _answer(self._out.read())
        if answer is not None:
            return ProbeResult(answer=answer)
        return ProbeResult(signal=_signal_name(status), error=_last_lines(self._err) or f"exit status {status}")


def start_probe(python: str, environ: Mapping[str, str], seconds: float, *, deep: bool = False) -> ProbeResult:
    """Run the probe in the interpreter `python` and return its answer, after `seconds` at the latest."""
    return ProbeClient(python, environ, seconds, deep=deep).result()


def _script() -> str:
    return (pkgutil.get_data("oomdoctor.machine.probe", "script.py") or b"").decode()


def _kill(pid: int) -> None:
    """End the process and its children. One that the kernel does not let go of is left behind."""
    with suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


def _answer(printed: bytes) -> ProbeAnswer | None:
    return decode_answer(printed.rpartition(_MARK)[2].partition(b"\n")[0]) if _MARK in printed else None


def _signal_name(status: int) -> str | None:
    if status >= 0:
        return None
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _last_lines(file: IO[bytes]) -> str | None:
    file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
    lines = [line.strip() for line in re.split(r"[\r\n]+", file.read().decode("utf-8", "replace")) if line.strip()]
    return "; ".join(lines[-3:])[-_LONGEST_ERROR:] or None
