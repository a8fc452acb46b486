"""Start a command and wait for it, so that it runs as it would without us: same session, terminal, streams and signals.

One thread, one place that waits: a signal, a child or the next tick wakes it (sigtimedwait), so that no handler runs and no status is
lost. The command and what it leaves behind are children of this process, which is a subreaper: torchrun's workers outlive an agent
that is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from oomdoctor.record.canary import Canary
from oomdoctor.record.signals import PASSED_ON, become_subreaper, end_like, is_from_terminal, restored, send

_SETTLE = 0.02
"""Seconds in which a signal to every process of a job has reached the canary, too."""


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

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
        self.is_subreaper = become_subreaper()
        self.ended: list[Ended] = []
        self.received: list[Received] = []
        self.start = time.time()
        try:
            self.pid = os.posix_spawnp(command[0], list(command), dict(environment), setsigmask=self._mask, setsigdef=restored())
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            status = 127 if isinstance(error, FileNotFoundError) else 126
            raise NotStarted(f"{command[0]}: {error.strerror}", status) from None
        self._canary = Canary(PASSED_ON)
        self.canary = self._canary.pid
        _let_go_of_pipes()

    def wait(self, tick: Callable[[], float]) -> int:
        """Wait until the command ends and return its status, as waitpid gives it.

        `tick` is called when it is due, and says in how many seconds again.
        """
        due = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= due:
                due = now + tick()
            status = self._reap()
            if status is not None:
                return status
            self._take(max(0.0, due - time.monotonic()))

    def _take(self, seconds: float) -> None:
        info = signal.sigtimedwait({*PASSED_ON, signal.SIGCHLD}, seconds)
        if info is None or info.si_signo == signal.SIGCHLD:
            return
        from_terminal = is_from_terminal(info.si_code)
        forwarded = False
        if not from_terminal and info.si_pid != self.pid and not self._canary.heard(info.si_signo, _SETTLE):
            forwarded = send(self.pid, info.si_signo)
        self.received.append(Received(info.si_signo, info.si_pid or None, from_terminal=from_terminal, forwarded=forwarded))

    def _reap(self) -> int | None:
        """Take the status of every child that ended; return the command's, once it is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return next((ended.status for ended in self.ended if ended.pid == self.pid), None)
            if pid == 0:
                return None
            if pid == self._canary.pid:
                continue
            self.ended.append(Ended(pid, status, time.time()))
            if pid == self.pid:
                return status

    def wait_for_the_rest(self, seconds: float) -> None:
        """Go on taking statuses for so long, while there are children left."""
        self._canary.kill()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid:
                self.ended.append(Ended(pid, status, time.time()))
            else:
                signal.sigtimedwait({signal.SIGCHLD}, min(0.05, max(0.0, until - time.monotonic())))

    def end(self, status: int) -> NoReturn:
        """End this process as the command ended."""
        self._canary.kill()
        end_like(status, (*PASSED_ON, signal.SIGCHLD))


def _let_go_of_pipes() -> None:
    """Close our ends of the command's input and output: whoever reads or writes there must see when the command closes its own."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
