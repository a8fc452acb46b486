"""Start a command and wait for it, so that it runs as it would without us: same session, terminal, streams and signals.

One thread, one place that waits: a signal or a child wakes it (sigtimedwait), so that no handler runs and no status is lost. The command
and what it leaves behind are children of this process, which is a subreaper: torchrun's workers outlive an agent that is killed.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from oomdoctor.record.command.beside import let_go
from oomdoctor.record.command.canary import Canary, is_stopped
from oomdoctor.record.command.signals import (
    ENDING,
    PASSED_ON,
    STOPPING,
    become_subreaper,
    end_like,
    is_from_terminal,
    restored,
    send,
    stop_like,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SETTLE = 0.1
"""Seconds in which a signal to every process of a job has reached the canary, too."""
_JUST = 5.0
_LONG = 3600.0


class NotStarted(Exception):
    """The command could not be started; `status` is what a shell would say."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class Ended:
    """A process that ended."""

    __slots__ = ("pid", "status", "time")

    def __init__(self, pid: int, status: int, time_: float) -> None:
        self.pid, self.status, self.time = pid, status, time_


class Received:
    """A signal that reached the wrapper."""

    __slots__ = ("forwarded", "from_terminal", "sender", "signal", "time")

    def __init__(self, number: int, sender: int | None, *, from_terminal: bool, forwarded: bool) -> None:
        self.time = time.time()
        self.signal, self.sender, self.from_terminal, self.forwarded = number, sender, from_terminal, forwarded


class Launched:
    """A command that runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, again: bool = False) -> None:
        """Start it; `again` keeps its input and output for another one after it."""
        self._kept = _kept_streams() if again else {}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
        self.is_subreaper = become_subreaper()
        self.ended: list[Ended] = []
        self.received: list[Received] = []
        self.start = time.time()
        try:
            self.pid = _spawned(list(command), environment, self._mask)
        except (OSError, ValueError) as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            status = 127 if isinstance(error, FileNotFoundError) else 126
            raise NotStarted(f"{command[0]}: {getattr(error, 'strerror', None) or error}", status) from None
        let_go()
        self._canary = Canary(PASSED_ON, self.pid)
        self.ours = {pid for pid in (self._canary.pid,) if pid is not None}

    @property
    def asked_to_end(self) -> bool:
        """Return whether somebody asked the wrapper to end the run."""
        return any(received.signal in ENDING for received in self.received)

    def wait(self) -> int:
        """Wait until the command ends and return its status, as waitpid gives it."""
        while (status := self._reap()) is None:
            self._take(_LONG)
        return status

    def has_ended_well(self, seconds: float) -> bool:
        """Wait for so long at most; return whether the command ended with status 0 meanwhile and left nothing behind."""
        until = time.monotonic() + seconds
        while (status := self._reap()) is None and (left := until - time.monotonic()) > 0:
            self._take(left)
        return status == 0 and not _has_other_children(self.ours)

    def wait_for_the_rest(self, seconds: float) -> bool:
        """Go on taking statuses for so long, while there are children left that are not our own. Return whether there still are."""
        self._canary.kill()
        return not self._until(lambda: not _has_other_children(self.ours), seconds)

    def wait_for(self, pid: int, seconds: float) -> bool:
        """Wait for one of our own processes for so long; stop where somebody asks the wrapper to end. Return whether it ended."""
        return self._until(lambda: any(ended.pid == pid for ended in self.ended), seconds, interruptible=True)

    def aside(self, act: Callable[[], object], seconds: float) -> None:
        """Do something in a process of its own, with our streams, for so long at most; whoever asks the wrapper to end also ends it."""
        try:
            pid = os.fork()
        except OSError:
            return
        if pid == 0:
            try:
                act()
            finally:
                os._exit(0)
        self.ours.add(pid)
        if not self.wait_for(pid, seconds):
            send(pid, signal.SIGKILL)

    def _until(self, done: Callable[[], bool], seconds: float, *, interruptible: bool = False) -> bool:
        until = time.monotonic() + seconds
        while True:
            self._reap()
            left = until - time.monotonic()
            if done() or left <= 0:
                return done()
            info = signal.sigtimedwait({signal.SIGCHLD, *(ENDING if interruptible else ())}, min(0.05, left))
            if info is not None and info.si_signo != signal.SIGCHLD:
                return False

    def _take(self, seconds: float) -> None:
        info = signal.sigtimedwait({*PASSED_ON, signal.SIGCHLD}, seconds)
        if info is None or info.si_signo == signal.SIGCHLD or info.si_pid == os.getpid():
            return
        heard = self._canary.heard(info.si_signo, _SETTLE)
        from_terminal = is_from_terminal(info.si_code)
        forwarded = not heard and not from_terminal and info.si_pid != self.pid and send(self.pid, info.si_signo)
        self.received.append(Received(info.si_signo, info.si_pid or None, from_terminal=from_terminal, forwarded=forwarded))

    def _reap(self) -> int | None:
        """Take the status of every child that ended; return the command's, once it is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                pid = 0
            if pid == 0:
                return next((ended.status for ended in self.ended if ended.pid == self.pid), None)
            if not os.WIFSTOPPED(status):
                self.ended.append(Ended(pid, status, time.time()))
            elif pid == self.pid:
                self._stop(os.WSTOPSIG(status))

    def _stop(self, number: int) -> None:
        """Stop with the command where the terminal stopped it: the shell waits for us, and gives the terminal to its next job.

        A command that handles Ctrl-Z may stop itself by SIGSTOP in the end; SIGSTOP from elsewhere is between its sender and the command.
        """
        by_terminal = any(got.signal in STOPPING and time.time() - got.time < _JUST for got in self.received[-1:])
        if (number in STOPPING or by_terminal) and is_stopped(self.pid):
            stop_like(number)

    def replace(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """Become another program, with the streams and the signals that we were given."""
        self._canary.kill()
        for stream, handle in self._kept.items():
            os.dup2(handle, stream)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        os.execve(words[0], list(words), dict(environment))  # noqa: S606 - ourselves

    def end(self, status: int) -> NoReturn:
        """End this process as the command ended."""
        self._canary.kill()
        end_like(status)


def _kept_streams() -> dict[int, int]:
    """Return copies of input and output, which nobody inherits."""
    kept: dict[int, int] = {}
    for stream in (0, 1):
        with suppress(OSError):
            kept[stream] = fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, 3)
    return kept


def given_environment() -> dict[str, str]:
    """Return the environment that we were given: Python adds LC_CTYPE to its own where the language is C."""
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read()
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(entry).partition("=") for entry in given.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def _spawned(command: list[str], environment: Mapping[str, str], mask: Collection[int]) -> int:
    """Start a command and return its number; a script without a first line is the shell's, as execvp has it."""
    try:
        return os.posix_spawnp(command[0], command, environment, setsigmask=mask, setsigdef=restored())
    except OSError as error:
        path = import_module("shutil").which(command[0])
        if error.errno != errno.ENOEXEC or path is None:
            raise
    return os.posix_spawnp("/bin/sh", ["/bin/sh", path, *command[1:]], environment, setsigmask=mask, setsigdef=restored())


def _has_other_children(ours: set[int]) -> bool:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return any(int(pid) not in ours for pid in file.read().split())
    except (OSError, ValueError):
        return False
