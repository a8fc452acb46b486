"""The meaning of words: which concepts of the lexicon stand where in a line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.knowledge.word_split import NUMBER, LineWord

_COMMON = ("", "error", "failed", "memory", "this", "was")
"""Words of most failures: a line with one may say anything of it."""


class Tag(Struct, frozen=True, gc=False):
    """A concept and the words of a line that mean it: from `first` to before `end`."""

    concept: str
    first: int
    end: int


def find_tags(tree: LexiconNode, words: Sequence[LineWord]) -> list[Tag]:
    """Return the concepts of a line in their order; of phrases that mean the same and begin at one word the longest counts."""
    tags: list[Tag] = []
    for first, word in enumerate(words):
        nodes = _following(tree, word.text)
        if not nodes:
            continue
        longest: dict[str, int] = {}
        end = first + 1
        while nodes:
            for node in nodes:
                for concept in node.concepts:
                    longest[concept] = end
            if end == len(words):
                break
            nodes = tuple(further for node in nodes for further in _following(node, words[end].text))
            end += 1
        tags += [Tag(concept, first, end) for concept, end in longest.items()]
    return tags


@lru_cache(maxsize=16)
def signs_of(tree: LexiconNode, concepts: Collection[str], others: str = "") -> re.Pattern[str]:
    """Return what finds a sign of some concepts, or of another pattern, in small letters: a line without one has no word of theirs."""
    words = sorted(rarest_words(tree, concepts), key=lambda word: (-len(word), word))
    return re.compile("|".join([*map(re.escape, words), *filter(None, [others])]))


def rarest_words(tree: LexiconNode, concepts: Collection[str]) -> set[str]:
    """Return words of which one stands in every phrase of some concepts: of each phrase the longest that is not in most failures."""
    return {longest for concept, longest in _longest_words(tree, "") if concept in concepts}


def _longest_words(node: LexiconNode, longest: str) -> Iterator[tuple[str, str]]:
    for concept in node.concepts:
        yield concept, longest
    for branches in (node.words, node.stems):
        for word, following in branches.items():
            yield from _longest_words(following, max(longest, "" if word == NUMBER else word, key=_rarity))


def _rarity(word: str) -> tuple[bool, int]:
    return word not in _COMMON, len(word) if word else -1


@lru_cache(maxsize=1 << 13)
def _following(node: LexiconNode, word: str) -> tuple[LexiconNode, ...]:
    """Return where the phrases that led to a node go on with a word. Most words of a log are seen again and again."""
    nodes = [node.words[word]] if word in node.words else []
    if NUMBER in node.words and word[:1].isdigit():
        nodes.append(node.words[NUMBER])
    if node.stems:
        nodes += (node.stems[word[:length]] for length in range(2, len(word) + 1) if word[:length] in node.stems)
    return tuple(nodes)
