"""What a person writes about a run: that its memory ran out, or only a wish. A person's word is no message of a program."""

from __future__ import annotations

import re

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.mood import is_quoted, says_it_goes_on, states

_MOST = 32 << 10
"""A longer text is a log."""
_SAID = (
    r"\b(?:CUDA )?OOM(?:s|ed|ing|'s)?\b|(?i:\bout[ -]of[ -](?:\w{1,12} )?(?:v?ram|memory)\b|\b(?:not|isn't|is not) (?:have )?enough (?:\w{1,12} )?(?:v?ram|memory)\b)"
    r"|(?i:\b(?:is|was|gets?|got|being) (?:\w{1,10} )?killed\b)|被(?:系统)?(?:杀|kill|Kill)"
    r"|[爆炸](?:了)?(?:显存|内存)|(?:显存|内存)(?:就|又|会|总是|直接|也)?(?:爆|炸|不足|不够|溢出)"
)
_PERSON = (
    r"(?<![\w-])(?:I|I'm|I've|I'd)(?!\w)|(?i:\b(?:my|we|our|me|help|please|urgent\w*|anyone|anybody|someone|thanks|thank you|hi|hello|how (?:do|can|to)|is (?:it|this|there)|why)\b|\?(?:\s|$))"
    r"|我|请问|求助|求教|怎么|如何|帮忙|吗|为什么|为啥|谢谢|大佬|各位|？"
)
_WISH = (
    r"(?im)^\W{0,8}\[(?:feature(?: request)?|enhancement|rfc|proposal|docs?|documentation)\]|^\W{0,8}(?:\[?(?:feature(?: request)?|enhancement|rfc|proposal|docs?|documentation|typo)\]?)\b\s{0,2}(?:[:：]|$)|\bit would be (?:great|nice|good|helpful|useful)\b"
    r"|\bFAQ\b|^\W{0,4}Q[.:]|常见问题|^\W{0,4}问[:：]|\bfeature request\b|\bdead (?:link|page)\b|^\W{0,8}(?:功能(?:请求|建议)|文档(?:问题|建议)?)\s{0,2}(?:[:：]|$)"
)

_NAN_LOSS = r"(?i)\b(?:\w{1,20}_)?loss\b['\"]?\s{0,2}(?:is|are|becomes|became|turns|goes|got|gets|[=:]|变成了?|变为|成了|为|是|出现)\s{0,2}(?:to\s)?(?:tensor\()?nan\b"


def says_shortage(text: str) -> bool:
    """Return whether somebody may say in a text that memory ran out: a first, cheap look."""
    return len(text) <= _MOST and re.search(_SAID, text) is not None


def find_said_shortage(text: str, tree: LexiconNode, *, describes_a_run: bool = False) -> str | None:
    """Return the line in which somebody says that memory ran out; None where nobody does, or the text is a wish.

    Where the text `describes_a_run`, with a model and a card, a line need not speak of people to be a person's.
    """
    if len(text) > _MOST or is_wish(text):
        return None
    for line in text.splitlines():
        match = re.search(_SAID, line)
        if (
            match
            and not (is_quoted(line, match.start()) or says_it_goes_on(line, tree))
            and states(line, match.start(), match.end(), tree)
            and (describes_a_run or re.search(_PERSON, line))
        ):
            return line.strip()
    return None


def is_killed(line: str) -> bool:
    """Return whether a line speaks of a process that was killed, which is a matter of the host's memory."""
    return re.search(r"(?i)\bkilled\b|被(?:系统)?(?:杀|kill)", line) is not None


def has_nan_loss(text: str) -> bool:
    """Return whether a log prints, or somebody says, that a loss is no number."""
    return re.search(_NAN_LOSS, text[:_MOST]) is not None


def is_wish(text: str) -> bool:
    """Return whether a text asks for a feature or a document and reports no failure."""
    return re.search(_WISH, text[:_MOST]) is not None
