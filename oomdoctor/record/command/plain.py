"""Start a command and wait for it where signals cannot be waited for (macOS, Windows): handlers pass them on."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from oomdoctor.record.command.launch import Ended, NotStarted, Received
from oomdoctor.record.command.signals import ENDING, end_like

_HANDED_ON = tuple(sorted(ENDING - {signal.SIGINT, getattr(signal, "SIGQUIT", None)}))
"""Those that a terminal does not give to the command itself."""
_LEFT_TO_THE_COMMAND = tuple(sorted(ENDING - set(_HANDED_ON)))


class PlainLaunched:
    """A command that runs; as `Launched`, but for what outlives it and who sent a signal."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.is_subreaper = False
        self.ended: list[Ended] = []
        self.received: list[Received] = []
        self.ours: set[int] = set()
        self.start = time.time()
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        # Before the command is there: a signal that comes in between would end this process alone.
        for number in _HANDED_ON:
            self._handle(number, self._hand_on)
        for number in _LEFT_TO_THE_COMMAND:
            self._handle(number, self._note)
        try:
            process = subprocess.Popen(list(command), env=dict(environment))
        except (OSError, ValueError) as error:
            status = 127 if isinstance(error, FileNotFoundError) else 126
            raise NotStarted(f"{command[0]}: {getattr(error, 'strerror', None) or error}", status) from None
        self._process, self.pid = process, process.pid
        while self._early:
            self._send(self._early.pop(0))

    @property
    def asked_to_end(self) -> bool:
        """Return whether somebody asked the wrapper to end the run."""
        return any(received.signal in ENDING for received in self.received)

    def wait(self) -> int:
        """Wait until the command ends and return its status, as waitpid gives it."""
        assert self._process is not None  # noqa: S101 - it was started
        code = self._process.wait()
        status = -code if code < 0 else code << 8
        if not self.ended:
            self.ended.append(Ended(self.pid, status, time.time()))
        return status

    def has_ended_well(self, seconds: float) -> bool:  # noqa: ARG002 - nobody sees what outlives a command here
        """Return that nobody knows."""
        return False

    def wait_for_the_rest(self, seconds: float) -> bool:  # noqa: ARG002 - nobody sees what outlives a command here
        """Return that something may be left: nobody knows."""
        return True

    def aside(self, act: Callable[[], object], seconds: float) -> None:  # noqa: ARG002 - there is no process to be ended
        """Do something before the end; Ctrl-C ends it."""
        for number in (*_HANDED_ON, *_LEFT_TO_THE_COMMAND):
            signal.signal(number, signal.SIG_DFL)
        act()

    def end(self, status: int) -> NoReturn:
        """End this process as the command ended."""
        end_like(status)

    @staticmethod
    def _handle(number: int, act: Callable[[int, object], None]) -> None:
        """Handle a signal, unless whoever started us ignores it (nohup): then the command ignores it too."""
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, act)

    def _send(self, number: int) -> None:
        if self._process is None:
            self._early.append(number)
            return
        with suppress(OSError):
            self._process.send_signal(number)

    def _hand_on(self, number: int, frame: object) -> None:  # noqa: ARG002 - signal's interface
        self._send(number)
        self.received.append(Received(number, None, from_terminal=False, forwarded=True))

    def _note(self, number: int, frame: object) -> None:  # noqa: ARG002 - signal's interface
        self.received.append(Received(number, None, from_terminal=True, forwarded=False))
