"""How a process ended, in any wording: by SIGKILL, whose victim cannot report the cause.

A program reports it as a code after a word for one (137 is 128 plus the signal number, -9 is what Python's subprocess returns), or names
the signal next to a word for termination; a shell prints a single word on its own line. A statement that a signal is sent, or of what a
code means, does not report a termination.
"""

from __future__ import annotations

import re

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.lines import TaggedLine, tagged

SIGKILL = ("137", "-9")
"""Codes of a process killed by SIGKILL, as reported by a shell and by Python's subprocess."""
_NINE = "9"
_GAP = r"[\s:=\"'`()\[\]{}<>\\|,;*-]{0,24}"
"""What may separate a word from its number."""
_BEHIND = r"[\w%/]|[.:,]\d|\s?(?:[KMGT]i?B|bytes|seconds|sec|ms|tokens|steps|epochs|items|files|rows|lines|times|of \d)\b"
"""A number followed by this counts something else."""
_JOB = (
    r"(?:[^\n]{0,200}(?:it/s|s/it)[^\n\]]{0,80}\])?"
    r"(?:[^\n]{0,160}?[:：] ?(?:\w{1,12} \d{1,9}|(?:第 )?\d{1,9} ?\w{1,12}) ?[:：] {1,4}|\[\d{1,4}\]\s{0,4}[+-]?\s{0,6}|[a-z]{2,5}: |[\w./-]{1,80}\[\d{1,5}\]: )?(?:(?P<pid>\d{1,9}):?\s{1,4}|\*\*)?"
)
"""What a shell prints before the word, or the progress bar of a program that did not end its line."""
_COMMAND = r"(?:\*\*|\))?(?:: 9)?(?:\s{2,}\S.*|\s*\([^()\n]{1,80}\))?\s*"
"""What it prints after the word: on macOS the signal number, then the command of the job."""
_PID = r"(?i)\bpid\b[\s:=#(]{0,3}(\d{1,9})"
_NEAR = 3
"""A signal within this many words after a number is the name of that number."""


class Ending(Struct, frozen=True):
    """A process killed by SIGKILL: where the text reports it, and the code if given."""

    start: int
    end: int
    exit_code: int | None = None
    pid: int | None = None


def find_ending(text: str, tree: LexiconNode) -> Ending | None:
    """Return what a line says about termination by SIGKILL, including the line below if that holds the number; None if it says nothing."""
    read = tagged(text, tree)
    ending = _from_shell(read) or _by_code(read) or _by_signal(read)
    if ending is None or _is_explanation(read, ending):
        return None
    pid = re.search(_PID, text)
    return ending if pid is None or ending.pid is not None else Ending(ending.start, ending.end, ending.exit_code, int(pid[1]))


def _from_shell(read: TaggedLine) -> Ending | None:
    """Read a line with hardly more than the word a shell prints for a killed job."""
    for tag in read.of(("shell-killed",)):
        start, end = read.span(tag)
        head = re.fullmatch(_JOB, read.text[:start].lstrip())
        if head is not None and re.fullmatch(_COMMAND, read.text[end:]):
            return Ending(start, end, None, int(head["pid"]) if head["pid"] else None)
    return None


def _by_code(read: TaggedLine) -> Ending | None:
    """Read a SIGKILL code after a word for a code, or 9 if the signal is named next to it."""
    for tag in read.of(("exit-code",)):
        number = next(
            (at for at in range(tag.end, min(tag.end + _NEAR, len(read.words))) if read.words[at].text.lstrip("-").isdigit()), None
        )
        if number is None or not _joined(read, tag.end, number):
            continue
        word = read.words[number]
        named = any(number <= signal.first <= number + _NEAR or signal.end == number for signal in read.of(("sigkill",)))
        if (word.text in SIGKILL or (word.text == _NINE and named)) and not re.match(_BEHIND, read.text[word.end :]):
            return Ending(read.words[tag.first].start, word.end, int(word.text))
    return None


def _joined(read: TaggedLine, first: int, number: int) -> bool:
    """Return whether only punctuation and words like `is` separate a word for a code from a number."""
    fillers = {at for tag in read.of(("is",)) for at in range(tag.first, tag.end)}
    if not all(at in fillers for at in range(first, number)):
        return False
    gaps = [read.text[read.words[at - 1].end : read.words[at].start] for at in range(first, number + 1)]
    return all(re.fullmatch(_GAP, gap) for gap in gaps)


def _by_signal(read: TaggedLine) -> Ending | None:
    """Read the name of the signal, alone or in the same sentence as a word for termination."""
    for tag in read.of(("sigkill",)):
        start, end = read.span(tag)
        first, last = read.sentence(start)
        others = [other for other in read.of(("ended",)) if not (tag.first <= other.first < tag.end)]
        near = any(first <= read.words[other.first].start and read.words[other.end - 1].end <= last for other in others)
        is_parted = re.search(r"(?:^|[^\w\s])\s*$", read.text[:start]) is not None
        if read.words[tag.first].text == "error" and not is_parted and not any(other.end == tag.first for other in others):
            continue  # belongs to another name: a bus error, a CUDA error, or a count of them
        is_last = is_parted and not re.search(r"\w", read.text[end:])
        if (near or is_last) and not any(read.within(("sends",), first, start)):
            code = next((word.text for word in read.words[tag.first : tag.end + 1] if word.text in SIGKILL), None)
            return Ending(start, end, None if code is None else int(code))
    return None


def _is_explanation(read: TaggedLine, ending: Ending) -> bool:
    """Return whether a sentence only explains a code, or what ends that way, rather than reporting an event."""
    first, last = read.sentence(ending.start)
    return any(read.within(("explains",), ending.end, last)) or any(read.within(("any-of-them",), first, ending.start))
