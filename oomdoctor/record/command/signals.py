"""Signals of a command that is watched: which reach the wrapper, who sent them, and whether the command has them already.

What the terminal sends (Ctrl-C, Ctrl-\\, a closed window) the kernel gives to every process in the foreground, the command too; what
somebody sends with kill(2) to the wrapper is meant for the command, which has not seen it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from typing import NoReturn

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

HAS_WAITING = hasattr(signal, "sigtimedwait")
"""Not on macOS and Windows."""


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(int(getattr(signal, name)) for name in names if hasattr(signal, name))


PASSED_ON = tuple(sorted(int(number) for number in signal.valid_signals() if number not in _numbers("SIGKILL", "SIGSTOP", "SIGCHLD")))
"""Those that are waited for, whatever they do by default: a fault of the wrapper itself kills it though they are blocked."""
ENDING = _numbers("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Those by which somebody asks a run to end."""
STOPPING = _numbers("SIGTSTP", "SIGTTIN", "SIGTTOU")
"""Those by which a terminal stops a job."""
_SET_CHILD_SUBREAPER, _SET_PARENT_DEATH_SIGNAL = 36, 1
"""linux/prctl.h, the first since Linux 3.4."""


def become_subreaper() -> bool:
    """Make this process the parent of what its descendants leave behind, so that it sees how they end. Return whether it is."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have this process killed when its parent ends."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def is_from_terminal(code: int) -> bool:
    """Return whether the kernel sent a signal (si_code above 0), so that the whole foreground has it."""
    return code > 0


def restored() -> list[int]:
    """Return the signals that Python ignores at its start and a command must not."""
    return sorted(_numbers("SIGPIPE", "SIGXFSZ"))


def send(pid: int, number: int) -> bool:
    """Send a signal; return whether there was somebody to send it to."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def stop_like(number: int) -> None:
    """Stop this process as the command was stopped, so that the shell sees it; come back when somebody lets it go on.

    The terminal sent the same signal to us, and it may still wait: it must not stop us a second time.
    """
    while signal.sigtimedwait({number}, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def end_like(status: int) -> NoReturn:
    """End this process as a waited-for one ended: with its exit code, or of the same signal, without a core dump of our own."""
    number = end_signal(status)
    if number is not None:
        _without_core()
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        if HAS_WAITING:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(exit_code(status) or 0)


def _prctl(option: int, value: int) -> bool:
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None, use_errno=True).prctl(option, int(value), 0, 0, 0) == 0)
    return False


def _without_core() -> None:
    if resource is not None:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def exit_code(status: int) -> int | None:
    """Return the exit code in a status of waitpid; None where there is none."""
    return None if status & 0x7F else status >> 8


def end_signal(status: int) -> int | None:
    """Return the signal in a status of waitpid; None where there is none."""
    return status & 0x7F or None
