"""Regular expressions are compiled once for a user and not once for each run: what `re` made of them is kept in the cache.

Compiling is a fifth of what a short run takes, and a run needs some three hundred. Only the command line does this.
"""

from __future__ import annotations

import marshal
import re
import sys
import zlib
from array import array
from importlib import import_module
from typing import Any

from oomdoctor import cache

# The compiler of regular expressions has no public name; these are its names before and since Python 3.11.
_compiler: Any = import_module("re._compiler" if sys.version_info >= (3, 11) else "sre_compile")
_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_sre: Any = import_module("_sre")
_compile: Any = _compiler.compile

_NAME = f"patterns-2-{sys.implementation.cache_tag}-{sys.hexversion:x}-{sys.byteorder}.bin"
"""The form of what is kept, and the Python: another one may compile otherwise."""
_UNKNOWN = (3, 15)
"""From here on the compiler tells one thing more of a pattern, `repeat_count` (cpython Lib/re/_compiler.py)."""
_CHECK = 4
"""Bytes of a sum before what is kept: a pattern with another bit in it would find something else."""
_MOST = 1000
_CODE = "I"
"""The code of a pattern is a list of 32-bit numbers."""

_DAMAGED = (TypeError, ValueError, RuntimeError, LookupError, OverflowError, AttributeError)
"""What a pattern raises whose parts are not those of one."""

Pattern = str | bytes
Key = tuple[bool, Pattern, int]
"""Whether a pattern is of bytes, the pattern, its flags. Text and bytes that are spelled alike are never compared: `-bb` forbids it."""
Compiled = tuple[int, bytes, int, dict[str, int]]
"""The flags of a pattern, its code, how many groups it has, and the numbers of those with a name."""


class KeptPatterns:
    """The patterns that earlier runs compiled, and those that this one needed."""

    def __init__(self) -> None:
        self._kept = _read()
        self._used: dict[Key, Compiled] = {}

    def compile(self, pattern: Any, flags: int = 0) -> Any:
        """Return what `re` makes of a pattern."""
        if type(pattern) not in (str, bytes) or flags & re.DEBUG:
            return _compile(pattern, flags)
        key = (type(pattern) is bytes, pattern, int(flags))
        kept = self._kept.get(key) or self._used.get(key)
        if kept is not None:
            try:
                return self._built(key, kept)
            except _DAMAGED:
                self._kept = {}
        return self._built(key, _compiled(pattern, int(flags)))

    def _built(self, key: Key, known: Compiled) -> Any:
        """Return the pattern of its parts; `_sre` looks at every code before it takes it."""
        set_flags, code, groups, names = known
        if groups > len(key[1]):
            raise ValueError("a group takes more than a sign of a pattern")
        by_number: list[str | None] = [None] * (groups + 1)
        for name, number in names.items():
            by_number[number] = name
        built = _sre.compile(key[1], set_flags, array(_CODE, code).tolist(), groups, names, tuple(by_number))
        self._used[key] = known
        return built

    def keep(self) -> None:
        """Keep what this run compiled for the next one; of very many patterns only those that this one needed."""
        if self._used.keys() <= self._kept.keys():
            return
        every = {**self._kept, **self._used}
        body = marshal.dumps(every if len(every) <= _MOST else self._used)
        cache.keep(_NAME, _sum_of(body) + body)


def keep_compiled() -> KeptPatterns | None:
    """Let `re` take patterns from the cache from now on; None where this Python compiles in a way that is not known here."""
    if sys.implementation.name != "cpython" or sys.version_info >= _UNKNOWN:
        return None
    patterns = KeptPatterns()
    _compiler.compile = patterns.compile
    return patterns


def _read() -> dict[Key, Compiled]:
    data = cache.read(_NAME) or b""
    check, body = data[:_CHECK], data[_CHECK:]
    if not body or check != _sum_of(body):
        return {}
    try:
        kept = marshal.loads(body)  # noqa: S302 - the cache gives what this user wrote, and nothing else
    except (EOFError, MemoryError, *_DAMAGED):
        return {}
    return kept if isinstance(kept, dict) else {}


def _sum_of(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECK, "big")


def _compiled(pattern: Pattern, flags: int) -> Compiled:
    """Compile a pattern, as `re` does."""
    parsed = _parser.parse(pattern, flags)
    code = array(_CODE, _compiler._code(parsed, flags))  # noqa: SLF001 - see above
    return flags | parsed.state.flags, code.tobytes(), parsed.state.groups - 1, parsed.state.groupdict
