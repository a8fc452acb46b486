"""What stands in pickles of snapshots: opcodes that make numbers, texts, lists, dicts and pairs of numbers.

What torch writes, from Python (protocol 4 and 5) and from C++ (protocol 2, torch/csrc/jit/serialization/pickler.cpp), needs no opcode
that could name, call or build anything, and no tuple but of two numbers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import lru_cache

PROTOCOLS = (2, 3, 4, 5)
_LONGS = b"|".join((*(re.escape(bytes((length,))) + b".{%d}" % length for length in (7, 6, 8, 5, 4, 3, 2, 1)), rb"\x09.{8}\x00"))
"""64 bits at most; addresses and times have six and seven."""
INTEGER = rb"(?:K.|M..|J.{4}|\x8a(?:" + _LONGS + rb"))"
GET = rb"(?:h.|j....)"
GETS = rb"(?:j....j....j....j....|j....|h.)+"
"""Many of them; four at once are quicker. As four can be taken one by one, too, nothing that stands behind may make it try again."""
PUT = rb"(?:\x94|q.|r....)"
_gets_at = re.compile(GETS, re.DOTALL).match
_RUNS = re.compile(rb"(?:j....j....j....j....|j....)+|h.", re.DOTALL)
_LONG = {b"h%c" % number: b"j%c\0\0\0" % number for number in range(256)}
"""What a short opcode is as a long one."""


class NotReadable(Exception):
    """The bytes are no pickle of plain values; the message says what stands there, and where."""


class UnpacksTooFar(NotReadable):
    """The bytes unpack to far more than a snapshot does: made to harm, and no file that was merely cut off."""


def whole_number(token: bytes) -> int:
    """Return the value of an integer's opcode."""
    if token[0] == 0x8A:
        return int.from_bytes(token[2:], "little", signed=True)
    return int.from_bytes(token[1:], "little", signed=token[0] == 0x4A)


def memo_number(token: bytes) -> int:
    """Return the number in an opcode that takes something from the memo, or keeps it there under a number."""
    return int.from_bytes(token[1:], "little")


def gets_at(data: bytes, at: int) -> bytes:
    """Return the opcodes, one behind the other from a place on, that take something from the memo."""
    match = _gets_at(data, at)
    return b"" if match is None else match[0]


def memo_numbers(gets: bytes) -> tuple[int, ...]:
    """Return the numbers in opcodes, one behind the other, that take something from the memo."""
    long = b"".join([_LONG.get(run, run) for run in _RUNS.findall(gets)])
    return _long_numbers(len(long) // 5)(long)


@lru_cache(maxsize=1024)
def _long_numbers(count: int) -> Callable[[bytes], tuple[int, ...]]:
    """Return what reads the numbers of so many opcodes of five bytes."""
    return struct.Struct("<" + "xI" * count).unpack


def get_of(number: int) -> bytes:
    """Return the opcode that takes something from the memo, as picklers write it: the short one where it reaches."""
    return b"h%c" % number if number < 256 else b"j" + number.to_bytes(4, "little")
