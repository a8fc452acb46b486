"""Whether a program survived a failure: it says it continues another way, it makes progress afterwards, or it ends well.

rules/lexicon/survival.yaml defines what a program that is making progress, or that ends well, prints.
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
"""A program says what it does about a failure within this many lines after it."""


def goes_on(texts: Sequence[str], tree: LexiconNode) -> bool:
    """Return whether a program handles the failure stated in the first line: it says so, or it makes progress or ends well afterwards."""
    after = texts[1:]
    if any(map(is_error, after)):
        return False
    announced = any(says_it_goes_on(text, tree) for text in after[:_AROUND]) and any(_is_at_work(text, tree) for text in after)
    return announced or says_it_goes_on(texts[0], tree) or _is_alive(after, tree)


def was_handled(told: str, after: bytes, tree: LexiconNode) -> bool:
    """Return whether a program that says it continues (in `told` or directly after it) really did: a line that is not an error follows."""
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
    """Return whether a run survived an error: it makes progress afterwards (`after`: up to the next failure), or says it handled it."""
    return runs(after) or any(says_it_goes_on(text, tree) for text in (error, *_texts(after[: _REACH // 8])[:_AROUND]))


def ended_well(after: bytes, tree: LexiconNode) -> bool:
    """Return whether what a run printed after a failure ends well and contains no further error."""
    texts = _texts(after[-_REACH:])
    return any(_says_it_ended_well(text, tree) for text in texts[-_LAST_LINES:]) and not any(map(is_error, texts))


def _texts(data: bytes) -> list[str]:
    return [line.text for line in clean_lines(data, 0) if line.text.strip()]


def _is_alive(after: Sequence[str], tree: LexiconNode) -> bool:
    return any(_says_it_ended_well(text, tree) for text in after) or runs("\n".join(after).encode())


def _is_at_work(text: str, tree: LexiconNode) -> bool:
    return any(tagged(text[:_LONGEST], tree).of(("at-work",)))


def _says_it_ended_well(text: str, tree: LexiconNode) -> bool:
    """Return whether a line reports a successful end: anywhere in it, or with hardly more than one word at its start."""
    line = tagged(text[:_LONGEST], tree)
    told = list(line.of(("ends-well",)))
    if any(not any(tag.first <= other.first < tag.end for tag in told) for other in line.of(("ends-badly",))):
        return False
    return bool(told) or any(re.fullmatch(_MARK, line.text[: line.span(tag)[0]]) for tag in line.of(("ends-a-log",)))
