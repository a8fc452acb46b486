"""The bytes of a pickle around the place that is read, piece by piece: a file may be larger than the memory."""

from __future__ import annotations

from typing import Protocol

from oomdoctor.snapshots.opcodes import NotReadable

_PIECE = 1 << 20
_AHEAD = 1 << 18
"""So many bytes are there, at least, where an opcode or an entry is read."""
_BEHIND = b"\xff" * 16
"""Behind the last byte; this is no opcode, and no fixed one is longer."""


class ByteSource(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most so many bytes; none at the end."""


class PickleWindow:
    """The bytes that are there, and the place in them that is read next."""

    __slots__ = ("_before", "_source", "at", "data", "end", "last")

    def __init__(self, source: ByteSource) -> None:
        self._source, self._before = source, 0
        self.data, self.at = b"", 0
        self.last = -1
        """The last place at which enough bytes are there."""
        self.end: int | None = None
        """Where the file ends, once that is known."""

    @property
    def position(self) -> int:
        """Return the place in the file."""
        return self._before + self.at

    def read_on(self, least: int = _AHEAD) -> None:
        """Drop what was read, and read on until more bytes are there than `least`; raise where the last opcode reached behind the end."""
        if self.end is not None:
            raise self.unreadable()
        self._before += self.at
        pieces, length = [self.data[self.at :]], len(self.data) - self.at
        self.at = 0
        while length <= max(least, _AHEAD):
            piece = self._source.read(_PIECE)
            pieces.append(piece or _BEHIND)
            if not piece:
                self.end = self.last = length
                break
            length += len(piece)
            self.last = length - _AHEAD
        self.data = b"".join(pieces)

    def unreadable(self) -> NotReadable:
        """Return what is wrong with the byte that is read."""
        if self.end is not None and self.at >= self.end:
            return NotReadable(f"it is truncated at byte {self._before + self.end}")
        return NotReadable(f"the opcode {self.data[self.at : self.at + 1]!r} at byte {self.position} does not occur in snapshots")
