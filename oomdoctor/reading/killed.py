"""Processes killed by SIGKILL, as stated by lines of a text in any program's words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.endings import Ending, find_ending
from oomdoctor.reading.mood import states

_TELLS = r"(?<![\d.])(?:137|9)(?!\.?\d)|(?i:sig_?kill|killed|\bkill\b)|[^\x00-\x7f]"
"""Every line that reports termination by SIGKILL contains one of these."""
_WRAPPER_PREFIX = "oomdoctor run: "
"""The prefix of `oomdoctor run`'s own report: in a log it is a quotation, which anyone may print, and not evidence."""
_OPEN = r"[:(=]\s*$"
_LONGEST = 1500


def stated_ends(text: str, tree: LexiconNode) -> Iterator[Ending]:
    """Yield the SIGKILL terminations in a text, at most one per line."""
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) <= _LONGEST and not line.startswith(_WRAPPER_PREFIX) and (re.search(_TELLS, line) or re.search(_OPEN, line)):
            ending = _read(text, start, start + len(line), tree)
            if ending is not None:
                yield ending
        start += len(line)


def _read(text: str, start: int, end: int, tree: LexiconNode) -> Ending | None:
    line = text[start:end].rstrip()
    if re.search(_OPEN, line):  # the number may be on its own line
        below = re.match(r"\s*-?\d{1,3}\s*$", text[end : end + 24], re.MULTILINE)
        line = text[start : end + below.end()].rstrip() if below else line
    if not re.search(_TELLS, line):
        return None
    ending = find_ending(line, tree)
    if ending is None or not states(_without_values(line, ending.end), ending.start, ending.end, tree):
        return None
    return replace(ending, start=start + ending.start, end=start + ending.end)


def _without_values(line: str, end: int) -> str:
    """Return a line up to the next value after a termination, so that `rank=0` does not turn it into a counter."""
    value = re.search(r"[=:\n]", line[end:])
    return line if value is None else line[: end + value.start()]
