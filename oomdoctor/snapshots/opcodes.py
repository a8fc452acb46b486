"""Which pickles may be read: those whose every opcode makes numbers, texts, lists, dicts or pairs of numbers.

An unpickler that refuses globals is not enough: a tuple in a tuple, a few million deep, used as the key of a dict kills the
interpreter. So each opcode is looked at before one is run. What torch writes, from Python (protocol 4 and 5) and from C++ (protocol 2,
torch/csrc/jit/serialization/pickler.cpp), needs no opcode that could name, call or build anything, and no tuple but of two numbers.
"""

from __future__ import annotations

import re
from functools import cache

_AT_ONCE = 2000
"""How many opcodes one match takes: the expression engine keeps a mark for each."""
_SHORT_TEXTS = b"|".join(re.escape(bytes((length,))) + b".{%d}" % length for length in range(256))
_LONGS = b"|".join((*(re.escape(bytes((length,))) + b".{%d}" % length for length in range(1, 9)), rb"\x09.{8}\x00"))
"""64 bits at most: of longer numbers a file can make any count of keys that all fall together."""
_INTEGER = rb"(?:K.|M..|J.{4}|\x8a(?:" + _LONGS + rb"))"
_OPCODE = (
    rb"(?:[hq].|j.{4}"  # BINGET, BINPUT, LONG_BINGET
    rb"|[\x94}\](ueas)N\x88\x89]"  # MEMOIZE, empty dict, list and tuple, MARK, what fills them, None, True, False
    rb"|" + _INTEGER + rb"(?:" + _INTEGER + rb"\x86)?"  # an integer, or two and TUPLE2
    rb"|G.{8}|\x95.{8}"  # BINFLOAT, FRAME
    rb"|\x8c(?:" + _SHORT_TEXTS + rb"))"  # SHORT_BINUNICODE
)
_PROTOCOLS = (2, 3, 4, 5)
_WITH_VALUE, _LONGEST = b"hqjKMJ\x8aG\x95\x8c", 257
"""Opcodes with something behind them, and the most bytes of one."""
_STOP, _TEXT, _LONG_PUT = b".", b"X", b"r"


class NotReadable(Exception):
    """The bytes are no pickle of plain values; the message says what stands there, and where.

    `sound` is how many bytes of a pickle before it are plain values.
    """

    def __init__(self, why: str, sound: int = 0) -> None:
        super().__init__(why)
        self.sound = sound


@cache
def _expression() -> re.Pattern[bytes]:
    return re.compile(_OPCODE + b"{1,%d}" % _AT_ONCE, re.DOTALL)


def end_of_pickle(data: bytes) -> int:
    """Return the offset behind the STOP of a pickle of plain values.

    Raise NotReadable at the first byte that is anything else. What stands behind STOP is not looked at: pages of memory_viz
    fill it up with zeros.
    """
    if len(data) < 3 or data[:1] != b"\x80" or data[1] not in _PROTOCOLS:
        raise NotReadable("it does not begin as a pickle of protocol 2 to 5")
    match, at = _expression().match, 2
    while True:
        opcodes = match(data, at)
        if opcodes is not None:
            at = opcodes.end()
            continue
        opcode = data[at : at + 1]
        if opcode == _STOP:
            return at + 1
        at = _behind_counted(data, at, opcode)


def _behind_counted(data: bytes, at: int, opcode: bytes) -> int:
    """Return the offset behind an opcode whose four bytes must be in bounds."""
    number = int.from_bytes(data[at + 1 : at + 5], "little")
    behind = at + 5
    if opcode == _TEXT:
        behind += number
    elif opcode != _LONG_PUT or number > at // 5 + 256:  # each of these puts takes five bytes, so that no honest one counts further
        if not opcode or (opcode in _WITH_VALUE and at + _LONGEST > len(data)):
            raise NotReadable(f"it is cut off at byte {at}", at)
        raise NotReadable(f"the opcode {opcode!r} at byte {at} is none that a snapshot has", at)
    if behind > len(data):
        raise NotReadable(f"a text at byte {at} is longer than the file", at)
    return behind
