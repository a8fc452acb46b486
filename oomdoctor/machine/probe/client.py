"""Asks another interpreter with the probe: in a process of its own, with a time limit, whatever it prints, hangs on or dies of."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import DecodeError, Struct
from msgspec.json import decode

_START = "import sys\nsys.path[:] = [one for one in sys.path if one]\nexec(compile({source!r}, 'probe.py', 'exec'))"
"""The probe is handed over as text: neither our folder nor the working directory then stands before the interpreter's own modules,
and it works from a zip archive too."""
_MARK = b"\noomdoctor-probe:"
_SAID = 600
_GRACE = 0.5
_MOST = 1 << 20


class ProbeResult(Struct, frozen=True, kw_only=True):
    """What came back. `said` is None where no answer did."""

    said: Mapping[str, Any] | None = None
    signal: str | None = None
    """What ended it, `SIGSEGV`."""
    timed_out: bool = False
    error: str | None = None
    """The last lines of what it printed, or why it could not be started."""


class ProbeClient:
    """The probe, started."""

    def __init__(self, python: str, environ: Mapping[str, str], seconds: float, *, deep: bool = False) -> None:
        import subprocess  # noqa: PLC0415 - where our own interpreter is meant nothing is started
        import tempfile  # noqa: PLC0415

        self._until = time.monotonic() + seconds
        self._failed: str | None = None
        # Files, not pipes: a process that leaves children behind or floods its output can then neither block us nor fill our memory.
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - result() closes them
        try:
            self._process = subprocess.Popen(
                [python, "-B", "-c", _START.format(source=_probe()), *(["--deep"] if deep else [])],
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        except (OSError, ValueError) as why:
            self._failed = getattr(why, "strerror", None) or str(why)

    def result(self) -> ProbeResult:
        """The answer, when the time is up at the latest."""
        with self._out, self._err:
            return ProbeResult(error=self._failed) if self._failed is not None else self._result()

    def _result(self) -> ProbeResult:
        import subprocess  # noqa: PLC0415 - it is loaded already

        try:
            status = self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(self._process.pid)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
            return ProbeResult(timed_out=True, error=_last(self._err))
        self._out.seek(max(0, self._out.seek(0, os.SEEK_END) - _MOST))
        said = _answer(self._out.read())
        return (
            ProbeResult(said=said)
            if said is not None
            else ProbeResult(signal=_signal(status), error=_last(self._err) or f"exit status {status}")
        )


def start_probe(python: str, environ: Mapping[str, str], seconds: float, *, deep: bool = False) -> ProbeResult:
    """The probe's answer from the interpreter `python`, after `seconds` at the latest."""
    return ProbeClient(python, environ, seconds, deep=deep).result()


def _probe() -> str:
    import pkgutil  # noqa: PLC0415 - only where another interpreter is asked

    return (pkgutil.get_data("oomdoctor.machine.probe", "script.py") or b"").decode()


def _end(pid: int) -> None:
    """Ends the process and its children. One that the kernel does not let go of is left behind."""
    import signal  # noqa: PLC0415 - only for a process that hangs

    with suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


def _answer(printed: bytes) -> Mapping[str, Any] | None:
    line = printed.rpartition(_MARK)[2].partition(b"\n")[0] if _MARK in printed else b""
    try:
        said = decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _signal(status: int) -> str | None:
    if status >= 0:
        return None
    import signal  # noqa: PLC0415 - only for a process that died

    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _last(file: Any) -> str | None:
    file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
    lines = [line.strip() for line in re.split(r"[\r\n]+", file.read().decode("utf-8", "replace")) if line.strip()]
    return "; ".join(lines[-3:])[-_SAID:] or None
