"""What the lines of a text say in any program's words: memory was refused, a process was killed, or another error occurred.

The most certain fact on a line counts: a refusal over a termination, a termination over an error about which nothing more is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from oomdoctor.case.event import Value
from oomdoctor.knowledge.records.lexicon import Lexicon
from oomdoctor.parse.families.family import Family
from oomdoctor.parse.signature import Match
from oomdoctor.reading.errors import SIGNS, find_error
from oomdoctor.reading.killed import stated_ends
from oomdoctor.reading.stated import RefusalReader, StatedRefusal

_SIGN = re.compile("|".join(map(re.escape, SIGNS)))


def reader(lexicon: Lexicon, *, is_end: bool = False) -> Family:
    """Return a function that yields the facts in a text, at most one per line. `is_end`: the text is the end of a log."""
    return partial(_parse, lexicon, RefusalReader(lexicon), is_end)


def _parse(lexicon: Lexicon, refusals: RefusalReader, is_end: bool, text: str) -> Iterator[Match]:
    taken: set[int] = set()
    for match in (*map(_of_refusal, refusals.read(text, is_end=is_end)), *_ends(text, lexicon), *_errors(text, lexicon)):
        line = text.rfind("\n", 0, match.start) + 1
        if line not in taken:
            taken.add(line)
            yield match


def _of_refusal(refusal: StatedRefusal) -> Match:
    kinds = {"stated": "refused-in-words", "warned": "short-warned", "named": "named-at-the-end"}
    return Match(f"{refusal.whose}-memory-{kinds[refusal.weight]}", refusal.start, refusal.end, refusal.fields)


def _ends(text: str, lexicon: Lexicon) -> Iterator[Match]:
    for ending in stated_ends(text, lexicon):
        told = {"exit_code": ending.exit_code, "pid": ending.pid}
        fields: dict[str, Value] = {name: value for name, value in told.items() if value is not None}
        yield Match("ended-by-sigkill", ending.start, ending.end, fields)


def _errors(text: str, lexicon: Lexicon) -> Iterator[Match]:
    at = 0
    while (sign := _SIGN.search(text, at)) is not None:
        start = text.rfind("\n", 0, sign.start()) + 1
        end = text.find("\n", sign.end())
        at = len(text) if end < 0 else end
        error = find_error(text, start, at, lexicon)
        if error is not None:
            name = "aftermath-in-words" if error.is_aftermath else "error-raised" if error.is_raised else "error-stated"
            yield Match(name, error.start, error.end, {"error": error.name})
