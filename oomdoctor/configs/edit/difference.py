"""The difference between two versions of a file, as a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

_NO_END = "\\ No newline at end of file"


def diff_lines(path: str, old: bytes | None, new: bytes) -> Iterator[str]:
    """Yield the lines of the diff, without their ends; `old` is None for a new file."""
    before = "/dev/null" if old is None else path
    for line in unified_diff(_lines(old or b""), _lines(new), before, path):
        bare = line.rstrip("\r\n")
        yield bare
        if bare == line and not line.startswith(("---", "+++", "@@")):
            yield _NO_END


def _lines(data: bytes) -> list[str]:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = data.decode(encoding, "replace")
    return re.findall(r"[^\n]*\n|[^\n]+", text)
