"""A list of paths in a file or on standard input: one per line, or terminated by NUL bytes as written by `find -print0`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import IO

from oomdoctor.errors import UsageError
from oomdoctor.opening import open_file_or_pipe

STANDARD_INPUT = "-"
_BLOCK = 1 << 20


def read_paths(source: str) -> Iterator[str]:
    """Yield the paths of a list as it is read; `-` is standard input. Raise UsageError if it cannot be read."""
    try:
        if source == STANDARD_INPUT:
            yield from _paths(sys.stdin.buffer)
            return
        with open_file_or_pipe(source) as file:
            yield from _paths(file)
    except OSError as why:
        raise UsageError(f"--files-from {source}: {(why.strerror or str(why)).lower()}") from why


def _paths(file: IO[bytes]) -> Iterator[str]:
    """Yield paths; a NUL in the first block shows that all paths end with one."""
    rest = file.read(_BLOCK)
    end = b"\0" if b"\0" in rest else b"\n"
    while rest:
        *paths, rest = rest.split(end)
        yield from (os.fsdecode(path) for path in paths if path)
        block = file.read(_BLOCK)
        if not block:
            break
        rest += block
    if rest:
        yield os.fsdecode(rest)
