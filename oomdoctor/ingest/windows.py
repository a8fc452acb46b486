"""Walking a source: blocks of bytes go through the prefilter, and the places with hits come out as windows.

A window is what is around some hits: enough lines before and after for a message of several lines, and a longer piece
before it for the traceback. Blocks overlap by that much, so windows do not depend on where blocks end.

A message that is repeated a million times is not parsed a million times. In the first and the last four MiB of a source
a literal of failures may open 32 windows in each MiB, elsewhere 2; all hits are counted. A literal that only context and
warnings have is looked for in the first and the last MiB (16 windows) and in the first MiB of each stretch (one); stretches
grow with the offset, so that a long memory series is sampled evenly by its logarithm. What prints the memory of a card may
open 48, one more in each piece of 64 KiB of these MiB, and as many as there are in the last 8 KiB. All this hangs on
positions alone: any split of the work gives the same.
"""

from __future__ import annotations

import os
import string
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter

from msgspec import Struct

from oomdoctor.ingest.prefilter import Hit, Prefilter
from oomdoctor.ingest.streams import Reader

BLOCK = 256 << 10
TAIL = 4 << 20
"""How much of the end (and of the start) of a source is read closely."""
STREAM_TAIL = 2 << 20
"""How much of the end of a stream is kept: limits are counted in each MiB, and the last one begins in the one before it."""
CLOSELY = 2 * TAIL
"""A source up to this size is read closely from end to end."""
_PIECE = 16
"""Bits of an offset within a piece of 64 KiB."""
_LAST_COURSE = 8 << 10
"""In so many last bytes no line with the memory of a card is left out."""
_LAST = 64 << 10
"""In so many last bytes no failure is left out: they hold what ended the run."""
NUMBERED = 64 << 20
"""Lines are numbered up to here; counting them further would cost as much as finding the failure."""
_NEVER = 1 << 62

_end = itemgetter(1)

_BEFORE = 12 << 10
_AFTER = 8 << 10
_MIB = 20
_CLOSE = TAIL >> _MIB
_BYTES_BEFORE = 1536
_SIGNS_OF_A_KEY = f"{string.ascii_letters}{string.digits}_-+/=.~".encode()
_LONGEST_KEY = 512
_BYTES_AFTER = 4 << 10
_WIDEST = 32 << 10
_NEAR = 1 << 10
LEAD = _BEFORE + _BYTES_BEFORE
"""How far before its hit a window and what stands before it reach."""
_OVERLAP = LEAD + _WIDEST + _AFTER
"""What of a block is needed with the next one: all that a window which waits for it may reach back to."""


class LineContext(Struct, frozen=True):
    """How many lines around its hits a window has."""

    before: int
    after: int


_FAILURE = LineContext(8, 26)
_CONTEXT = LineContext(2, 10)


class Window(Struct, frozen=True):
    """Bytes around some hits."""

    raw: bytes
    base: int
    """Offset of `raw` in the source."""
    literals: frozenset[int]
    context: bool
    """Only literals of context and warnings stand in it."""
    before: bytes
    """What stands before `raw`, for the traceback that leads to it."""
    line: int | None
    """1-based number of the line in which `raw` starts, where it was counted."""


class Quota(Struct, frozen=True):
    """How many windows a literal may open in one MiB."""

    close: int
    """Near the start and the end of the source."""
    far: int
    """Elsewhere."""
    sampled: bool
    """Looked for only at the edges and in the first MiB of each stretch."""
    spread: bool = False
    """Near the edges one more in every piece of 64 KiB, and all in the last 8 KiB: a course is seen from its start to its end."""


FAILURES = Quota(32, 2, False)
CONTEXT = Quota(16, 1, True)
COURSE = Quota(48, 1, True, True)


class LiteralCount:
    """Hits counted and limited, per literal."""

    def __init__(self, quotas: list[Quota], closely_from: int | None, end: int | None = None) -> None:
        """`closely_from`: where the close reading of the end begins; `end`: the size of the source. None: not known."""
        self._openly_from = _NEVER if end is None else end - _LAST
        self.counts = [0] * len(quotas)
        self.limited = False
        """Whether anything was left out so far."""
        self._quotas = quotas
        self._mib = [-1] * len(quotas)
        self._left = [0] * len(quotas)
        self._piece = [-1] * len(quotas)
        self._closely_from = _NEVER if closely_from is None else closely_from >> _MIB
        self._last_from = self._closely_from + _CLOSE - 1
        if end is not None:
            self._last_from = min(self._last_from, last_mib_start(end) >> _MIB)

    def is_sampled(self, number: int) -> bool:
        """Return whether a literal has only context and warnings behind it."""
        return self._quotas[number].sampled

    def samples(self, mib: int) -> bool:
        """Return whether literals of context are looked for in this MiB."""
        sampled = self._edge(mib) or _stretch(mib) != _stretch(mib - 1)
        self.limited = self.limited or not sampled
        return sampled

    def accept(self, hits: list[Hit], base: int, mib: int) -> list[Hit]:
        """Return the hits of one MiB that may open a window, with their offsets in the source."""
        counts, mibs, remaining, quotas = self.counts, self._mib, self._left, self._quotas
        close, openly_from = mib < _CLOSE or mib >= self._closely_from, self._openly_from
        accepted: list[Hit] = []
        for number, end in hits:
            counts[number] += 1
            if mibs[number] != mib:
                mibs[number] = mib
                remaining[number] = self._allowed(quotas[number], mib, close=close)
            if remaining[number]:
                remaining[number] -= 1
                accepted.append((number, base + end))
            elif (quotas[number].spread or base + end > openly_from) and self._openly(number, base + end, mib):
                accepted.append((number, base + end))
            else:
                self.limited = True
                continue
            self._piece[number] = (base + end) >> _PIECE
        return accepted

    def _openly(self, number: int, end: int, mib: int) -> bool:
        """Return whether a hit beyond the limit counts: of failures all near the end; of a course also the first in each piece."""
        quota = self._quotas[number]
        if not quota.spread or not self._edge(mib):
            return end > self._openly_from and not quota.sampled
        return self._piece[number] != end >> _PIECE or end > self._openly_from + _LAST - _LAST_COURSE

    def _allowed(self, quota: Quota, mib: int, *, close: bool) -> int:
        """Return whether a literal is sampled here: an engine may find more than was looked for."""
        if not quota.sampled:
            return quota.close if close else quota.far
        if self._edge(mib):
            return quota.close
        return quota.far if self.samples(mib) else 0

    def _edge(self, mib: int) -> bool:
        return mib == 0 or mib >= self._last_from


def _stretch(mib: int) -> int:
    """Return the number of a stretch: four for each doubling of the offset."""
    bits = max(1, mib.bit_length())
    return 4 * bits + ((mib << 2 >> (bits - 1)) & 3)


class Engines(Struct, frozen=True):
    """A prefilter for all literals, and one for those that are looked for everywhere."""

    every: Prefilter
    failures: Prefilter
    longest: int
    """Length of the longest literal."""
    openings: Sequence[tuple[int, bytes]] = ()
    """The literals of `every` that begin with a line end: their numbers, and what follows it, the shortest first."""


class KeptText:
    """The last bytes of what went by, in few pieces; as a Reader it gives them away."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._pieces: deque[bytearray] = deque()
        self.size = 0

    def add(self, data: memoryview) -> None:
        """Keep `data`, and of what came before only what is needed to have the least."""
        if not self._least:
            return
        if self._pieces and len(self._pieces[-1]) + len(data) <= BLOCK:
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))
        self.size += len(data)
        while self.size - len(self._pieces[0]) >= self._least:
            self.size -= len(self._pieces.popleft())

    def lines(self) -> int:
        """Return how many lines end in it."""
        return sum(piece.count(b"\n") for piece in self._pieces)

    def last(self, count: int) -> bytes:
        """Return the last bytes of it."""
        out = b""
        for piece in reversed(self._pieces):
            if len(out) >= count:
                break
            out = bytes(piece[len(out) - count :]) + out
        return out

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with what was kept, which is given up by it."""
        if not self._pieces:
            return 0
        piece = self._pieces[0]
        part = piece[: len(buffer)]
        buffer[: len(part)] = part
        del piece[: len(part)]
        self.size -= len(part)
        if not piece:
            self._pieces.popleft()
        return len(part)


class Walk(Struct, frozen=True):
    """What a walk saw besides its windows."""

    end: int
    counts: list[int]
    tail: KeptText
    """The last bytes, where the walk was asked to keep them."""
    line: int | None
    """Number of the line in which `tail` starts, where lines were counted."""


def walk_windows(
    reader: Reader,
    engines: Engines,
    tally: LiteralCount,
    emit: Callable[[Window], None],
    *,
    start: int = 0,
    first: int | None = None,
    until: int | None = None,
    line: int | None = None,
    keep: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Walk:
    """Read `reader` (whose first byte has offset `start`) to its end and emit windows around the hits.

    Hits count from `first` (default: `start`) to `until`; what is read before and after them is context only.
    `line`: the number of the line at `start`; None: lines are not counted. `keep`: at least so many last bytes are given back.
    """
    buffer = bytearray(_OVERLAP + BLOCK)
    view = memoryview(buffer)
    base, filled, scanned = start, 0, 0
    first = start if first is None else first
    waiting: list[Hit] = []
    tail = KeptText(keep)
    while True:
        count = reader.readinto(view[filled:]) or 0
        tail.add(view[filled : filled + count])
        filled += count
        if progress is not None:
            progress(count)
        low, high = max(scanned, first - base), filled if until is None else min(filled, until - base)
        if low < high:
            waiting += _hits(buffer, base, low, high, engines, tally)
        scanned = filled
        if waiting:
            windows, waiting = _windows(buffer, base, filled, waiting, line, tally, ended=not count)
            for window in windows:
                emit(window)
        if not count:
            if line is not None:
                line += buffer.count(b"\n", 0, filled) - tail.lines()
            return Walk(base + filled, tally.counts, tail, line)
        gone = filled - _OVERLAP
        if gone > 0:
            if line is not None:
                line = line + buffer.count(b"\n", 0, gone) if base + gone <= NUMBERED else None
            view[: filled - gone] = bytes(view[gone:filled])
            base += gone
            filled -= gone
            scanned -= gone


def _hits(buffer: bytearray, base: int, low: int, high: int, engines: Engines, tally: LiteralCount) -> list[Hit]:
    """Return the hits that end in buffer(low, high], each MiB of the source with the engine that it gets."""
    out: list[Hit] = []
    if base == 0 and low < engines.longest:
        out += tally.accept(_at_the_start(buffer, low, high, engines), 0, 0)
    while low < high:
        mib = (base + low) >> _MIB
        cut = min(high, ((mib + 1) << _MIB) - base)
        engine = engines.every if tally.samples(mib) else engines.failures
        hits = engine.find(buffer, max(0, low - engines.longest + 1), cut)
        if hits:
            out += tally.accept(hits[bisect_right(hits, low, key=_end) :], base, mib)
        low = cut
    return out


def _at_the_start(buffer: bytearray, low: int, high: int, engines: Engines) -> list[Hit]:
    """Return hits at the start of a source, which begins like a line: hits at its first byte of literals that begin with a line end."""
    head = bytes(buffer[: min(high, engines.longest)])
    return [(number, len(text)) for number, text in engines.openings if len(text) > low and head.startswith(text)]


def _windows(
    buffer: bytearray, base: int, filled: int, hits: list[Hit], line: int | None, tally: LiteralCount, *, ended: bool
) -> tuple[list[Window], list[Hit]]:
    """Windows, and the hits whose window needs what follows. Hits near each other in one MiB share a window."""
    out: list[Window] = []
    at = numbered = 0
    while at < len(hits):
        begin = at
        opening = last = hits[at][1]
        mib = opening - 1 >> _MIB
        literals = set()
        while at < len(hits) and hits[at][1] - last <= _NEAR and hits[at][1] - opening <= _WIDEST and hits[at][1] - 1 >> _MIB == mib:
            last = hits[at][1]
            literals.add(hits[at][0])
            at += 1
        if not ended and last > base + filled - _AFTER:
            return out, hits[begin:]
        context = all(tally.is_sampled(number) for number in literals)
        around = _CONTEXT if context else _FAILURE
        low = _line_start(buffer, opening - base, around.before)
        high = _line_end(buffer, last - base, filled, around.after)
        if line is not None:  # so far the number of the line at `numbered`, which can lie before or after this one
            line += buffer.count(b"\n", numbered, low) - buffer.count(b"\n", low, numbered)
            numbered = low
        out.append(
            Window(
                raw=bytes(buffer[low:high]),
                base=base + low,
                literals=frozenset(literals),
                context=context,
                before=bytes(buffer[max(0, low - _BEFORE) : low]),
                line=line,
            )
        )
    return out, []


def _line_start(buffer: bytearray, at: int, lines: int) -> int:
    """Return some lines before a hit; in a line that is too long, some bytes."""
    floor = max(0, at - _BYTES_BEFORE)
    for number in range(lines + 1):
        line_end = buffer.rfind(b"\n", floor, at)
        if line_end < 0:
            # Half a line could be taken for a message of its own: it is left out, unless it is the one with the hit.
            return _whole_word(buffer, floor) if number == 0 or floor == 0 else at + 1
        at = line_end
    return at + 1


def _whole_word(buffer: bytearray, at: int) -> int:
    """Return where the first whole word begins: of a key whose first half is missing nobody sees that it is one."""
    if at == 0 or buffer[at - 1] not in _SIGNS_OF_A_KEY:
        return at
    piece = buffer[at : at + _LONGEST_KEY]
    return at + len(piece) - len(piece.lstrip(_SIGNS_OF_A_KEY))


def _line_end(buffer: bytearray, at: int, filled: int, lines: int) -> int:
    """Return some lines after a hit; in a line that is too long, some bytes."""
    ceiling = min(filled, at + _BYTES_AFTER)
    at -= 1
    for number in range(lines + 1):
        line_end = buffer.find(b"\n", at, ceiling)
        if line_end < 0:
            # A line that would be cut is left out, unless it is the one with the hit or the last of the source.
            return ceiling if number == 0 or ceiling == filled else at
        at = line_end + 1
    return at


class Range:
    """A part of a file as a Reader, by position, so that several can be read at once."""

    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self._descriptor = descriptor
        self._at = start
        self._end = end

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer, not beyond the last offset."""
        part = buffer[: max(0, min(len(buffer), self._end - self._at))]
        if not part:
            return 0
        try:
            count = _read_at(self._descriptor, part, self._at)
        except OSError:
            return 0
        self._at += count
        return count


def _read_at(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Fill the buffer from an offset on; without a copy where the system can."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    data = os.pread(descriptor, len(buffer), offset)
    buffer[: len(data)] = data
    return len(data)


def tail_start(size: int) -> int:
    """Where the close reading of the end of a source begins: at a whole MiB, as limits are counted in each."""
    return 0 if size <= CLOSELY else size - TAIL >> _MIB << _MIB


def last_mib_start(size: int) -> int:
    """Where the whole MiB begins in which the last MiB of a source does."""
    return max(0, size - (1 << _MIB)) >> _MIB << _MIB


def open_part(descriptor: int, first: int, until: int, size: int) -> tuple[Range, int]:
    """Return a reader for the hits between two offsets, with the context around them; and the offset of its first byte."""
    start = max(0, first - LEAD)
    return Range(descriptor, start, min(size, until + _AFTER)), start
