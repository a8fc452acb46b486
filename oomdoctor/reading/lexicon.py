"""The meaning of words: which concepts of the lexicon stand where in a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.knowledge.word_split import NUMBER, LineWord


class Tag(Struct, frozen=True):
    """A concept and the words of a line that mean it: from `first` to before `end`."""

    concept: str
    first: int
    end: int


def find_tags(tree: LexiconNode, words: Sequence[LineWord]) -> list[Tag]:
    """Return the concepts of a line in their order; of phrases that mean the same and begin at one word the longest counts."""
    tags: list[Tag] = []
    for first in range(len(words)):
        longest: dict[str, int] = {}
        for concept, end in _phrases(tree, words, first):
            longest[concept] = max(end, longest.get(concept, 0))
        tags += [Tag(concept, first, end) for concept, end in longest.items()]
    return tags


def rarest_words(tree: LexiconNode, concepts: Collection[str]) -> set[str]:
    """Return words of which one stands in every phrase of some concepts: of each phrase the longest."""
    return {longest for concept, longest in _longest_words(tree, "") if concept in concepts}


def _longest_words(node: LexiconNode, longest: str) -> Iterator[tuple[str, str]]:
    for concept in node.concepts:
        yield concept, longest
    for branches in (node.words, node.stems):
        for word, following in branches.items():
            yield from _longest_words(following, word if len(word) > len(longest) and word != NUMBER else longest)


def _phrases(node: LexiconNode, words: Sequence[LineWord], at: int) -> Iterator[tuple[str, int]]:
    """Yield the concepts of the phrases that go on at a word, and the word behind them."""
    for concept in node.concepts:
        yield concept, at
    if at == len(words):
        return
    word = words[at].text
    if word in node.words:
        yield from _phrases(node.words[word], words, at + 1)
    if NUMBER in node.words and word[:1].isdigit():
        yield from _phrases(node.words[NUMBER], words, at + 1)
    if node.stems:
        for length in range(2, len(word) + 1):
            if word[:length] in node.stems:
                yield from _phrases(node.stems[word[:length]], words, at + 1)
