"""Whether a program lived on after a failure: it says that it goes on another way, it is at work behind it, or it ends well.

What a program prints that is at work, or ends well, stands in rules/lexicon/survival.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.ingest.clean import clean_lines
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.errors import is_error
from oomdoctor.reading.lines import tagged
from oomdoctor.reading.mood import says_it_drops, says_it_goes_on
from oomdoctor.reading.progress import runs

_LAST_LINES = 12
_REACH = 8 << 10
_MARK = r"\W{0,8}"
"""What a line may begin with before its first word."""
_LONGEST = 1500
_AROUND = 4
"""A program says within so many lines after a failure what it does about it."""


def goes_on(texts: Sequence[str], tree: LexiconNode) -> bool:
    """Return whether a program handles the failure that the first of these lines states: it says so, or it is at work or ends well after it."""
    after = texts[1:]
    if any(map(is_error, after)):
        return False
    announced = any(says_it_goes_on(text, tree) for text in after[:_AROUND]) and any(_is_at_work(text, tree) for text in after)
    return announced or says_it_goes_on(texts[0], tree) or _is_alive(after, tree)


def was_handled(told: str, after: bytes, tree: LexiconNode) -> bool:
    """Return whether a program that says on a line (`told`) or right behind it that it goes on did: something that is no error follows."""
    texts = _texts(after[:_REACH])
    if any(map(is_error, texts)):
        return False
    if any(says_it_drops(text, tree) for text in (told, *texts[:_AROUND])):
        return True
    announced = (
        -1
        if says_it_goes_on(told, tree)
        else next((number for number, text in enumerate(texts[:_AROUND]) if says_it_goes_on(text, tree)), None)
    )
    return announced is not None and any(_is_at_work(text, tree) or _says_it_ended_well(text, tree) for text in texts[announced + 1 :])


def outlived(error: str, after: bytes, tree: LexiconNode) -> bool:
    """Return whether a run outlived an error: it is at work behind it (`after`: up to the next failure), or says that it handled it."""
    return runs(after) or any(says_it_goes_on(text, tree) for text in (error, *_texts(after[: _REACH // 8])[:_AROUND]))


def ended_well(after: bytes, tree: LexiconNode) -> bool:
    """Return whether what a run printed behind a failure ends well, and holds no further error."""
    texts = _texts(after[-_REACH:])
    return any(_says_it_ended_well(text, tree) for text in texts[-_LAST_LINES:]) and not any(map(is_error, texts))


def _texts(data: bytes) -> list[str]:
    return [line.text for line in clean_lines(data, 0) if line.text.strip()]


def _is_alive(after: Sequence[str], tree: LexiconNode) -> bool:
    return any(_says_it_ended_well(text, tree) for text in after) or runs("\n".join(after).encode())


def _is_at_work(text: str, tree: LexiconNode) -> bool:
    return any(tagged(text[:_LONGEST], tree).of(("at-work",)))


def _says_it_ended_well(text: str, tree: LexiconNode) -> bool:
    """Return whether a line tells of a good end: anywhere in it, or with hardly more than a word at its start."""
    line = tagged(text[:_LONGEST], tree)
    told = list(line.of(("ends-well",)))
    if any(not any(tag.first <= other.first < tag.end for tag in told) for other in line.of(("ends-badly",))):
        return False
    return bool(told) or any(re.fullmatch(_MARK, line.text[: line.span(tag)[0]]) for tag in line.of(("ends-a-log",)))
