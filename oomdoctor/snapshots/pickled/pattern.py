"""The bytes that an entry or a block has, as an expression made of one that was read before: all others of a file look alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from oomdoctor.snapshots.opcodes import GET, GETS, INTEGER, PUT, get_of
from oomdoctor.snapshots.pickled.values import PickledList, StackNumber

_OPTIONAL_PUT = rb"(" + PUT + rb")?"
# What was looked at ahead is taken as it is: where no end of the list follows, it is not tried again in other pieces.
_FRAMES = rb"(?:(" + GET + rb")|\]" + _OPTIONAL_PUT + rb"(?:\((?=(?P<gets>" + GETS + rb"))(?P=gets)e|(" + GET + rb")a)?)"
_CONSTANTS = rb"(?:[N\x88\x89]|G.{8})"
_LONGEST_TEXT = 255
MEMOIZE = b"\x94"
"""The opcode that keeps the last value under the next number."""


class KeptShape(NamedTuple):
    """What of a dict goes into the memo, counted from its first number."""

    kept: int
    """How many things."""
    list_at: int
    """Where its list of frames is; -1 where it keeps none."""
    texts: tuple[tuple[int, str], ...]


class DictPattern(NamedTuple):
    """The expression, and in which groups of a match what stands, counted from 0."""

    expression: re.Pattern[bytes]
    put_groups: tuple[int, ...]
    """What is kept in the memo, in the order of the bytes; texts are among them."""
    puts: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]
    """Picks them from the groups of a match."""
    shapes: dict[tuple[bytes, ...], KeptShape]
    """Those met so far that only say to keep something under the next number."""
    numbers: Mapping[str, int]
    texts: Mapping[str, int]
    literals: Mapping[int, str]
    """The text that each of these groups keeps, where it does."""
    frames: int | None
    """The first of four groups: a list that was read before, or where a new one is kept, its frames, or its only frame."""
    list_put: int
    """The second of them; -1 where there is none."""
    columns: Callable[[tuple[bytes, ...]], tuple[bytes, ...]] | None
    """Of an entry of a trace: picks action, address, size, stream and time; the last group, always empty, where it has none."""


def signature(value: Mapping[str, object]) -> tuple[object, ...]:
    """Return what two dicts have in common that one pattern fits."""
    return tuple((key, type(inner), inner if type(inner) is str else None) for key, inner in value.items())


def pattern_of(value: Mapping[str, object], kept_at: Mapping[str, int]) -> DictPattern | None:
    """Return the pattern of a dict. `kept_at` are the numbers of texts in the memo. None where it holds what no expression tells."""
    parts, groups = [rb"\}" + _OPTIONAL_PUT + rb"\("], 1
    puts, numbers, texts, literals, frames = [0], dict[str, int](), dict[str, int](), dict[int, str](), None
    for key, inner in value.items():
        if key not in kept_at:
            return None
        parts.append(re.escape(get_of(kept_at[key])))
        if key == "frames" and type(inner) in (PickledList, StackNumber):
            parts.append(_FRAMES)
            frames = groups
            puts.append(groups + 1)
            groups += 4
        elif type(inner) is int:
            parts.append(rb"(" + INTEGER + rb")")
            numbers[key] = groups
            groups += 1
        elif type(inner) is str and len(text := inner.encode()) <= _LONGEST_TEXT:
            parts.append(rb"(" + GET + rb"|\x8c" + re.escape(bytes((len(text),)) + text) + rb")" + _OPTIONAL_PUT)
            texts[key], literals[groups + 1] = groups, inner
            puts.append(groups + 1)
            groups += 2
        elif type(inner) is tuple:
            parts.append(rb"(?:" + GET + rb"|" + INTEGER + rb"{2}\x86" + _OPTIONAL_PUT + rb")")
            puts.append(groups)
            groups += 1
        elif inner is None or type(inner) in (bool, float):
            parts.append(_CONSTANTS)
        else:
            return None
    if "action" in value and not {"addr", "size"} <= numbers.keys():
        return None
    nothing = groups  # a group that is always empty
    columns = itemgetter(*({**numbers, **texts}.get(key, nothing) for key in ("action", "addr", "size", "stream", "time_us")))
    expression = re.compile(b"".join((*parts, b"u()?")), re.DOTALL)
    is_entry = "action" in texts
    list_put = -1 if frames is None else frames + 1
    return DictPattern(expression, tuple(puts), _picks(puts), {}, numbers, texts, literals, frames, list_put, columns if is_entry else None)


def _picks(groups: Sequence[int]) -> Callable[[tuple[bytes, ...]], tuple[bytes, ...]]:
    """Return what picks some of the groups of a match; a single one comes as a tuple, too."""
    return itemgetter(*groups) if len(groups) > 1 else itemgetter(slice(groups[0], groups[0] + 1))
