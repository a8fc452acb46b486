"""Logs without a failure so far, and what shows that such a log has only grown, so that it can be read on from there.

Of them no more is known than that, and no more is needed: a reader that meets a failure in what is new reads the whole log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from oomdoctor.opening import open_file
from oomdoctor.triage.elsewhere.downloads import where
from oomdoctor.triage.log_file import LogFile

LEAST = 256 << 10
"""A smaller log can be read again just as quickly."""
_EDGE = 4 << 10
"""How much of the beginning and end of the text read before is compared with the current text."""
_BLOCK = 256 << 10


class QuietLog(Struct, frozen=True, array_like=True):
    """A log as it was read, without a failure in it."""

    path: str
    size: int
    mark: str
    """A hash of its first and last bytes: it differs if the log was truncated or rewritten."""


class QuietLogs:
    """Which logs of a family were quiet when last read, and which are now."""

    def __init__(self, known: Iterable[QuietLog] = ()) -> None:
        self._known = {log.path: log for log in known}
        self.now: list[QuietLog] = []

    def read_until(self, file: LogFile) -> int | None:
        """Return the offset up to which a log was read and quiet; None if it was not, or has changed since."""
        known = self._known.get(file.path)
        if known is None or known.size > file.size or known.mark != _mark(file.path, known.size):
            return None
        return known.size

    @staticmethod
    def takes(file: LogFile) -> bool:
        """Return whether a log is large enough to be kept."""
        return file.size >= LEAST

    def note(self, file: LogFile) -> None:
        """Record that a log was quiet."""
        mark = _mark(file.path, file.size) if self.takes(file) else None
        if mark is not None:
            self.now.append(QuietLog(file.path, file.size, mark))


def blocks_from(file: LogFile, start: int, overlap: int) -> Iterator[bytes]:
    """Yield the contents of a log from an offset; each block begins with the last bytes of the one before. Raise OSError."""
    with open_file(where(file.path)) as log:
        log.seek(start)
        block = b""
        while start < file.size and (more := log.read(min(_BLOCK, file.size - start))):
            block = block[-overlap:] + more
            start += len(more)
            yield block


def _mark(path: str, size: int) -> str | None:
    try:
        with open_file(where(path)) as log:
            first = log.read(_EDGE)
            log.seek(max(0, size - _EDGE))
            last = log.read(min(size, _EDGE))
    except OSError:
        return None
    return hashlib.blake2b(first + last, digest_size=12).hexdigest() if len(last) == min(size, _EDGE) else None
