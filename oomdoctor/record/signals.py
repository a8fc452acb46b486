"""Signals of a command that is watched: which reach the wrapper, who sent them, and whether the command has them already.

What the terminal sends (Ctrl-C, Ctrl-\\, a closed window) the kernel gives to every process in the foreground, the command too; what
somebody sends with kill(2) to the wrapper is meant for the command, which has not seen it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

HAS_WAITING = hasattr(signal, "sigtimedwait")
"""Not on macOS and Windows."""
PASSED_ON = tuple(
    number
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")
    if (number := getattr(signal, name, None)) is not None
)
"""Those that are waited for. SIGTSTP is not: the terminal stops the wrapper and the command together."""
_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h, since Linux 3.4."""


def become_subreaper() -> bool:
    """Make this process the parent of what its descendants leave behind, so that it sees how they end. Return whether it is."""
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def is_from_terminal(code: int) -> bool:
    """Return whether the kernel sent a signal (si_code above 0), so that the whole foreground has it."""
    return code > 0


def restored() -> list[int]:
    """Return the signals that Python ignores at its start and a command must not."""
    return [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


def send(pid: int, number: int) -> bool:
    """Send a signal; return whether there was somebody to send it to."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def end_like(status: int, blocked: Iterable[int] = ()) -> NoReturn:
    """End this process as a waited-for one ended: with its exit code, or of the same signal, without a core dump of our own."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _without_core()
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number, *blocked})
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def _without_core() -> None:
    if resource is not None:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
