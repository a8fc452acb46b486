"""The meaning of words: which lexicon concepts occur where in a line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.knowledge.word_split import NUMBER, LineWord

_COMMON = ("", "error", "failed", "memory", "this", "was")
"""Words common to most failures: a line containing one may say anything about it."""


class Tag(Struct, frozen=True, gc=False):
    """A concept and the words in a line that express it: from `first` up to, not including, `end`."""

    concept: str
    first: int
    end: int


def find_tags(tree: LexiconNode, words: Sequence[LineWord]) -> list[Tag]:
    """Return the concepts in a line, in order; of phrases with the same meaning that start at the same word, the longest counts."""
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
    """Return a pattern that finds the given concepts, or another pattern, in lowercase text: a line without a match contains none."""
    words = sorted(rarest_words(tree, concepts), key=lambda word: (-len(word), word))
    return re.compile("|".join([*map(re.escape, words), *filter(None, [others])]))


def rarest_words(tree: LexiconNode, concepts: Collection[str]) -> set[str]:
    """Return a set of words such that every phrase of the given concepts contains one: its longest that is not in most failures."""
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
    """Return where the phrases that led to a node continue with a word. Most words in a log recur many times."""
    nodes = [node.words[word]] if word in node.words else []
    if NUMBER in node.words and word[:1].isdigit():
        nodes.append(node.words[NUMBER])
    if node.stems:
        nodes += (node.stems[word[:length]] for length in range(2, len(word) + 1) if word[:length] in node.stems)
    return tuple(nodes)
