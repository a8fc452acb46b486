"""Errors that end programs, whatever failed: the line that states one, and whether it only follows from the end of another process.

An exception is recognized by its form: a dotted name whose last part is a word for an error, at the start of what a program prints. It was
raised if the lines of a traceback are above it; a logger may print the same for an error it handles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.lines import tagged

_LEAD = r"[\s|│>*]{0,40}(?:E\s{1,8}|\[[^\[\]\n]{1,60}\]:?\s|(?:ERROR|CRITICAL|FATAL|Error|Fatal|fatal|Exception|error)\b[:\s]{1,3}|\([^()\n]{1,60}\)\s|[|│] ){0,4}"
"""What precedes an error on a line: the edge of a box, a logger's location, a level."""
_NAME = r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Failure|Fault|Interrupt|Exit|Iteration|Timeout|OutOfResources)"
_EXCEPTION = rf"(?P<name>{_NAME})(?:\s?\[[\w ]{{1,40}}\])?(?::(?=\s|$)(?P<says>[^\n]{{0,400}})|\s{{0,4}}$)"
_NATIVE = (
    r"(?P<native>terminate called[^\n]{0,200}|Aborted(?: \(core dumped\))?\s{0,4}$|thread '[^'\n]{0,60}' panicked at[^\n]{0,200}|panic: [^\n]{1,200}|Fatal Python error: [^\n]{1,120}"
    r"|Segmentation fault\b[^\n]{0,60}|Illegal instruction\b[^\n]{0,60}|Floating point exception\b[^\n]{0,60}|[\w./-]{1,120}:\d{1,7}:(?:\d{1,5}:)? (?:fatal )?error: [^\n]{1,200}"
    r"|Uncaught [\w ]{0,40}[A-Z]\w{0,40}Error: [^\n]{1,200}|error\[E\d{4}\]: [^\n]{1,200})"
)
_STATED = re.compile(rf"{_LEAD}(?:{_EXCEPTION}|{_NATIVE})")
SIGNS = (
    "Error",
    "Exception",
    "Failure",
    "Fault",
    "Interrupt",
    "Exit",
    "Iteration",
    "Timeout",
    "terminate called",
    "Aborted",
    "panic",
    "Segmentation",
    "Illegal ",
    "Floating ",
    "error",
)
"""Every line that states an error contains one of these."""
_FRAME = re.compile(
    r"\s{0,40}(?:[|│>+:E]\s{0,8}){0,3}(?:File [\"~/<]|Traceback \(most recent call last\)|\^+\s*$|[~^]{2,}|-{2,}> \d{1,6}|\d{1,6} {1,8}\S|The above exception was|During handling of the above)"
    r"|\s{2,}\S|[\w./-]{1,160}\.py:\d{1,6}: (?:in )?|[\w./-]{1,160}\.py in \w|[~/][\w./-]{1,160}\.py\b|\s*$"
)
"""A line of a traceback: a frame, its source, or a marker below it."""
_TRACE = re.compile(
    r"Traceback \(most recent call last\)|File \"[^\"\n]{1,300}\", line \d|-{2,}> \d{1,6}|\.py(?:\:\d{1,6}: | in \w)|File [~/][^\n]{1,200}:\d{1,6}, in |│ [/~]"
)
_REACH = 24
_LONGEST = 600


class ProgramError(Struct, frozen=True):
    """An error stated by a line."""

    start: int
    end: int
    name: str
    """The exception class; `error` if a native program gives none."""
    is_raised: bool
    """It ends a traceback, or a native program reports that it is terminating."""
    is_aftermath: bool
    """It follows from the end of another process."""


def find_error(text: str, start: int, end: int, tree: LexiconNode) -> ProgramError | None:
    """Return the error that the line `text[start:end]` states; None if it states none."""
    line = text[start : min(end, start + _LONGEST)]
    if not any(sign in line for sign in SIGNS):
        return None
    match = _STATED.match(line)
    if match is None:
        return None
    name = match["name"] or "error"
    statement = line[match.start("name") if match["name"] else match.start("native") :]
    is_raised = match["native"] is not None or _is_below_a_traceback(text, start)
    tags = tagged(statement[:240], tree)
    aftermath = any(tags.of(("aftermath",))) and not any(tags.of(("own-reason",)))
    return ProgramError(
        start + match.end() - len(match[0].lstrip()), start + len(line.rstrip()), name.rpartition(".")[2], is_raised, aftermath
    )


def is_error(line: str) -> bool:
    """Return whether a line starts by stating any kind of error: an exception, or the end of a native program."""
    return any(sign in line for sign in SIGNS) and _STATED.match(line[:_LONGEST]) is not None


def last_error(text: str) -> str | None:
    """Return the last line of a text that states an error; None if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if is_error(line)), None)


def _is_below_a_traceback(text: str, start: int) -> bool:
    """Return whether the lines directly above a line are a traceback."""
    for line in _lines_above(text, start):
        if _TRACE.search(line):
            return True
        if not _FRAME.match(line):
            return False
    return False


def _lines_above(text: str, start: int) -> Sequence[str]:
    above = text[max(0, start - (8 << 10)) : start].split("\n")[:-1]
    return above[: -_REACH - 1 : -1]
