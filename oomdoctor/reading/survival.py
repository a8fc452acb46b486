"""Whether a program lived on after a failure: it says that it goes on another way, it is at work behind it, or it ends well.

Patterns are kept as texts, which `re` compiles when they are first used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.ingest.clean import clean_lines
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.errors import is_error
from oomdoctor.reading.mood import says_it_drops, says_it_goes_on
from oomdoctor.reading.progress import runs

_WELL = (
    r"(?i)\b(?:training|run|job|evaluation|inference|fine-?tuning|build|all (?:\w+ ){0,2}\w+) (?:is |has |was )?(?:completed?|done|finished|success\w*|ended|passed|terminated normally)\b"
    r"|^\W{0,8}(?:done|finished|completed|success(?:ful(?:ly)?)?|bye)\b|\bfinished successfully\b|\bcompleted successfully\b|\bfinished with\b|\bexit(?:ed)?(?: with)? (?:code|status)[:= ]{1,3}0\b|\b0 fail(?:ed|ures)\b"
    r"|\b\d{1,7} passed\b(?!.{0,40}\bfailed)|(?<!mergency )\b(?:model|checkpoint|weights|adapter|results?|picture|image|output) (?:was |has been )?(?:saved|written)\b|\bsav(?:ed|ing) (?:the )?(?:final|best) "
    r"|^\s{0,4}ok\b|训练(?:完成|结束)|保存(?:完成|成功)|运行结束"
)
"""What a program prints that ends well."""
_READY = (
    r"(?i)\bepoch\b.{0,30}\b(?:done|loss|acc\w*|finished)|\bloss\b[\"']?\s{0,3}[:=]?\s{0,3}\d|\bstep\s{0,2}\d+\b|\b(?:server|service|application) (?:is )?(?:listening|started|ready|startup complete|running on)"
    r"|\blistening (?:on|at)\b|\bn_slots\b|\bit/s\b|\btok(?:ens)?/s\b|\bprompt executed\b|\btrial \d{1,9} finished\b|\" 200 OK\b"
)
"""What a program prints that is at work."""
_LAST_LINES = 12
_REACH = 8 << 10
_AROUND = 4
"""A program says within so many lines after a failure what it does about it."""


def goes_on(texts: Sequence[str], tree: LexiconNode) -> bool:
    """Return whether a program handles the failure that the first of these lines states: it says so, or it is at work or ends well after it."""
    after = texts[1:]
    if any(map(is_error, after)):
        return False
    announced = any(says_it_goes_on(text, tree) for text in after[:_AROUND]) and any(re.search(_READY, text) for text in after)
    return announced or says_it_goes_on(texts[0], tree) or _is_alive(after)


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
    return announced is not None and any(re.search(_READY, text) or re.search(_WELL, text) for text in texts[announced + 1 :])


def outlived(error: str, after: bytes, tree: LexiconNode) -> bool:
    """Return whether a run outlived an error: it is at work behind it (`after`: up to the next failure), or says that it handled it."""
    return runs(after) or any(says_it_goes_on(text, tree) for text in (error, *_texts(after[: _REACH // 8])[:_AROUND]))


def ended_well(after: bytes) -> bool:
    """Return whether what a run printed behind a failure ends well, and holds no further error."""
    texts = _texts(after[-_REACH:])
    return any(re.search(_WELL, text) for text in texts[-_LAST_LINES:]) and not any(map(is_error, texts))


def _texts(data: bytes) -> list[str]:
    return [line.text for line in clean_lines(data, 0) if line.text.strip()]


def _is_alive(after: Sequence[str]) -> bool:
    return any(re.search(_WELL, text) for text in after) or runs("\n".join(after).encode())
