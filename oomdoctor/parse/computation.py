"""What a program was computing when it failed: the innermost frame or source line before the message that names something known."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.knowledge.records.evidence import ComputationCore

_REACH = 6 << 10
_MOST_LINES = 80
_SOURCE = re.compile(rb"\s{2,20}\S")
_KEPT = 4096


class ComputationFinder:
    """Finds what tracebacks were computing; lines already seen are not searched again, since ranks fail in the same place."""

    def __init__(self, computations: Sequence[ComputationCore]) -> None:
        self._forms = [
            (computation.id, [word.encode() for word in computation.needs], computation.pattern.encode()) for computation in computations
        ]
        self._known: dict[bytes, str | None] = {}

    def find(self, traceback: bytes, before: bytes) -> str | None:
        """Return what a traceback was computing; if there is none, what the source lines at the end of `before` were computing."""
        lines = traceback[-_REACH:].split(b"\n") if traceback else _source_lines(before)
        named = (self._named(line) for line in reversed(lines[-_MOST_LINES:]))
        return next((computation for computation in named if computation is not None), None)

    def _named(self, line: bytes) -> str | None:
        if line not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[line] = next((name for name, words, form in self._forms if _matches(form, words, line)), None)
        return self._known[line]


def _matches(form: bytes, words: Sequence[bytes], line: bytes) -> bool:
    """Return whether a line matches a form; a form whose words are absent is never compiled."""
    return (not words or any(word in line for word in words)) and re.search(form, line) is not None


def _source_lines(before: bytes) -> list[bytes]:
    """Return the indented lines directly before a message: the end of a traceback whose frames are not in the log."""
    lines = before[-_REACH:].rstrip(b"\n").split(b"\n")
    first = len(lines)
    while first > 0 and len(lines) - first < _MOST_LINES and _SOURCE.match(lines[first - 1]):
        first -= 1
    return lines[first:]
