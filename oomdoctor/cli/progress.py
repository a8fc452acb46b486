"""What a person sees while a large log is read: a first answer from its end, and a bar when it takes longer."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from oomdoctor.case.event import Event
from oomdoctor.report.safety.sanitize import clean_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_AFTER_S = 1.0
_EVERY_S = 0.1


class Progress:
    """Progress on standard error, and only where it is a terminal."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._start = time.monotonic()
        self._last = 0.0
        self._bytes = 0
        self._bar: Bar | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def read(self, count: int) -> None:
        """Count bytes that were read, and show them where reading takes longer than a second."""
        if not self.is_shown:
            return
        with self._lock:
            self._bytes += count
            now = time.monotonic()
            if now - self._start < _AFTER_S or now - self._last < _EVERY_S:
                return
            self._last = now
            self._show()

    def early(self, events: Sequence[Event]) -> None:
        """Show the first sign of the failure in the end of a large log, before the rest is read."""
        first = next((event for event in events if event.is_failure), None)
        if self.is_shown and first is not None:
            near = f", {first.place.from_end} lines before the end" if first.place.from_end is not None else ""
            sys.stderr.write(f"{clean_line(first.place.source, 200)}{near}: {clean_line(first.text, 160)}\nreading the rest ...\n")
            sys.stderr.flush()

    def _show(self) -> None:
        if self._bar is None:
            from rich import console, progress  # noqa: PLC0415 - only when reading takes long

            self._bar = progress.Progress(
                "reading",
                progress.BarColumn(),
                progress.DownloadColumn(binary_units=True),
                progress.TransferSpeedColumn(),
                console=console.Console(stderr=True),
                transient=True,
            )
            self._bar.add_task("reading", total=None)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._bytes)


class FileProgress:
    """How many files are read, in one line on standard error that is written over, and only where it is a terminal."""

    def __init__(self, say: Callable[[int, int, int], str], clock: Callable[[], float] = time.monotonic) -> None:
        """Take what puts files done, files in all and files a second into words."""
        self._say = say
        self._clock = clock
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._start = self._last = clock()
        self._width = 0

    def show(self, done: int, in_all: int) -> None:
        """Tell how far the reading is."""
        now = self._clock()
        if not self._is_shown or now - self._start < _AFTER_S or now - self._last < _EVERY_S:
            return
        self._last = now
        self._write(self._say(done, in_all, round(done / (now - self._start))))

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r{' ' * self._width}\r{line}")
        sys.stderr.flush()
        self._width = 2 * len(line)
