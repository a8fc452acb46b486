"""One pass over raw bytes for all literals at once; what has no literal is never looked at again.

Small inputs use `bytes.find`, which needs no import; larger ones hyperscan where it is installed, or what `use` was given. All give
the same hits (a property test holds them against each other).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from oomdoctor import cache

SMALL = 2 << 10
"""Up to here a search per literal is as fast as loading hyperscan: 5,000 literals take 2.5 ms a KiB, hyperscan 7 ms once."""

_ENOUGH = 1060
"""From about 1,000 literals on hyperscan hashes with a wider table: padding 840 literals to this many made the scan of a
1 GiB log 1.9 times as fast (0.85 s to 0.45 s, hyperscan 0.9.1)."""
_PADDING = (1 << 30) + 1
_PADDING_START = b"\xff"

Hit = tuple[int, int]
"""(number of the literal, offset just after it)"""


class Prefilter(Protocol):
    """Finds every occurrence of every literal."""

    def find(self, data: Any, start: int, end: int) -> list[Hit]:
        """Hits in `data[start:end]` as offsets into `data`, in the order of their ends."""
        ...

    def twin(self) -> Prefilter:
        """Return the same engine for another thread."""
        ...


class FindPrefilter:
    """A `bytes.find` for each literal; `numbers` are theirs where the list is a part of a longer one."""

    def __init__(self, literals: list[bytes], numbers: list[int] | None = None) -> None:
        self._literals = list(zip(range(len(literals)) if numbers is None else numbers, literals))

    def find(self, data: Any, start: int, end: int) -> list[Hit]:
        """Search for one literal after the other."""
        part = bytes(data[start:end])
        hits: list[Hit] = []
        for number, literal in self._literals:
            at = part.find(literal)
            while at >= 0:
                hits.append((number, start + at + len(literal)))
                at = part.find(literal, at + 1)
        hits.sort(key=_by_end)
        return hits

    def twin(self) -> FindPrefilter:
        """Itself: searching changes nothing in it."""
        return self


class HyperscanPrefilter:
    """All literals in one hyperscan database. One instance per thread: the scratch space is not shared."""

    def __init__(self, literals: list[bytes], numbers: list[int] | None = None, database: Any = None) -> None:
        import hyperscan  # noqa: PLC0415 - only for inputs that are worth it

        self.database = _database(hyperscan, literals, numbers) if database is None else database
        self._scratch = hyperscan.Scratch(self.database)

    def find(self, data: Any, start: int, end: int) -> list[Hit]:
        """Search for all literals at once."""
        hits: list[Hit] = []
        self.database.scan(
            memoryview(data)[start:end],
            match_event_handler=lambda number, _from, to, _flags, _context: hits.append((number, start + to)),
            scratch=self._scratch,
        )
        if hits and data.find(_PADDING_START, start, end) >= 0:
            return [hit for hit in hits if hit[0] != _PADDING]
        return hits

    def twin(self) -> HyperscanPrefilter:
        """Return the same literals for another thread."""
        return HyperscanPrefilter([], database=self.database)


def _database(hyperscan: Any, literals: list[bytes], numbers: list[int] | None) -> Any:
    """Return the compiled literals, from the cache where the same ones were compiled before by the same hyperscan."""
    ids = list(range(len(literals))) if numbers is None else list(numbers)
    padding = _padding(_ENOUGH - len(literals))
    ids += [_PADDING] * len(padding)
    literals = [*literals, *padding]
    made_of = repr((hyperscan.__file__, hyperscan.__version__, os.stat(hyperscan.__file__).st_mtime_ns, literals, ids))
    head = made_of.encode() + b"\n"
    # The name only finds the file; what it was made of stands in it. (Importing hashlib takes longer than reading it.)
    name = f"literals-{zlib.crc32(head):08x}.db"
    kept = cache.read(name)
    if kept is not None and kept.startswith(head):
        try:
            return hyperscan.loadb(kept[len(head) :], hyperscan.HS_MODE_BLOCK)
        except hyperscan.error:
            pass
    database = hyperscan.Database()
    database.compile(expressions=[_escaped(literal) for literal in literals], ids=ids, elements=len(ids), flags=[0] * len(ids))
    cache.keep(name, head + hyperscan.dumpb(database))
    return database


def _escaped(literal: bytes) -> bytes:
    """Return a literal as an expression; every byte that could mean something, NUL included, as its number."""
    return b"".join(bytes([char]) if chr(char).isalnum() and char < 128 else b"\\x%02x" % char for char in literal)


def _padding(count: int) -> list[bytes]:
    """Literals of bytes that no text in UTF-8 holds."""
    strange = range(0xF5, 0x100)
    return [bytes([*_PADDING_START, *(strange[number // 11**place % 11] for place in range(5))]) for number in range(count)]


def _by_end(hit: Hit) -> tuple[int, int]:
    return hit[1], hit[0]


MakePrefilter = Callable[[list[bytes], list[int]], Prefilter]
"""Makes an engine of literals and their numbers."""
_brought: list[MakePrefilter] = []


def use(make: MakePrefilter | None) -> None:
    """Search larger inputs with an engine that the program around brings, where hyperscan cannot be had; None: no more."""
    _brought[:] = [] if make is None else [make]


def make_prefilter(literals: list[bytes], numbers: list[int], size: int | None) -> Prefilter:
    """Return the engine for an input of `size` bytes (None: unknown, so large)."""
    if size is not None and size <= SMALL:
        return FindPrefilter(literals, numbers)
    if _brought:
        return _brought[0](literals, numbers)
    try:
        return HyperscanPrefilter(literals, numbers)
    except ImportError:
        return FindPrefilter(literals, numbers)
