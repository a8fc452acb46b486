"""A line with its words, their meanings, and its sentence boundaries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.knowledge.word_split import LineWord, split_words
from oomdoctor.reading.lexicon import Tag, find_tags

_NAMES, _NAMED = "no-memory", ("memory", "out-of-memory")
_BREAK = r"(?<!\be\.g)(?<!\bi\.e)[.;!?](?=\s|$)|[。；！？\n]"


class TaggedLine(Struct, frozen=True):
    """A line, its words and their concepts."""

    text: str
    words: Sequence[LineWord]
    tags: Sequence[Tag]
    concepts: frozenset[str]
    """The concepts of its tags."""

    def of(self, concepts: Collection[str]) -> Iterator[Tag]:
        """Yield the tags with the given concepts, in order."""
        if self.concepts.isdisjoint(concepts):
            return iter(())
        return (tag for tag in self.tags if tag.concept in concepts)

    def starting(self, prefix: str) -> Iterator[Tag]:
        """Yield the tags whose concept names start with a prefix, in order."""
        return (tag for tag in self.tags if tag.concept.startswith(prefix))

    def span(self, tag: Tag) -> tuple[int, int]:
        """Return where the words of a tag begin and end."""
        return self.words[tag.first].start, self.words[tag.end - 1].end

    def sentence(self, at: int) -> tuple[int, int]:
        """Return where the sentence containing a character begins and ends."""
        breaks = [match.end() for match in re.finditer(_BREAK, self.text)]
        return max((end for end in breaks if end <= at), default=0), min((end for end in breaks if end > at), default=len(self.text))

    def within(self, concepts: Collection[str], start: int, end: int) -> Iterator[Tag]:
        """Yield the tags with the given concepts in part of the line."""
        return (tag for tag in self.of(concepts) if self.words[tag.first].start >= start and self.words[tag.end - 1].end <= end)


@lru_cache(maxsize=256)
def tagged(text: str, tree: LexiconNode) -> TaggedLine:
    """Return a line with the meanings of its words. Several readers request the same line in turn."""
    words = split_words(text)
    tags = _without_names(find_tags(tree, words))
    return TaggedLine(text, words, tags, frozenset(tag.concept for tag in tags))


def _without_names(tags: Sequence[Tag]) -> list[Tag]:
    """Return the tags without words for memory that are inside names of things that use none."""
    names = [tag for tag in tags if tag.concept == _NAMES]
    return [tag for tag in tags if tag.concept not in _NAMED or not any(name.first <= tag.first < name.end for name in names)]
