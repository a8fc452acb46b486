"""Phrases of the lexicon -> a tree of words, which a text is compared with word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoctor.knowledge.records.lexicon import ConceptRecord, Lexicon, LexiconNode, RefusalForm
from oomdoctor.knowledge.word_split import NUMBER, split_words

MOST_CHOICES = 400
"""So many phrases one entry may stand for."""
_CHOICE = re.compile(r"\(([^()]*)\)")
_SIGNS = re.compile(r"[^\w\s'’()|*#-]")
_LOOSE = re.compile(r"(?<![^\W\d_])\*|\*(?=\w)")


def fault_of_phrase(phrase: str) -> str | None:
    """Return why an entry of the lexicon is none; None where it is one."""
    if _SIGNS.search(phrase) or phrase.count("(") != phrase.count(")"):
        return "a phrase consists of words, (choices|of|words), `#` for a number and `*` at the end of a word"
    if _LOOSE.search(phrase):
        return "`*` goes at the end of a word"
    number = 1
    for choice in _CHOICE.findall(phrase):
        number *= choice.count("|") + 1
    if number > MOST_CHOICES:
        return f"one entry may expand to {MOST_CHOICES} phrases, not {number}"
    return None if all(map(split_words, spelt_out(phrase))) else "a phrase must contain words for every choice"


def spelt_out(phrase: str) -> Iterator[str]:
    """Yield the phrases that an entry stands for."""
    choice = _CHOICE.search(phrase)
    if choice is None:
        yield phrase
        return
    for chosen in choice[1].split("|"):
        yield from spelt_out(f"{phrase[: choice.start()]}{chosen}{phrase[choice.end() :]}")


def lexicon_tree(concepts: Iterable[ConceptRecord], forms: Iterable[RefusalForm] = ()) -> Lexicon:
    """Return the tree of all phrases of all languages."""
    root = Lexicon([], {}, {}, list(forms))
    for concept in concepts:
        for phrase in (phrase for entries in concept.words.values() for entry in entries for phrase in spelt_out(entry)):
            _grow(root, phrase, concept.id)
    return root


def _grow(root: LexiconNode, phrase: str, concept: str) -> None:
    node = root
    for part in re.split(f"({NUMBER})", phrase):
        if part == NUMBER:
            node = node.words.setdefault(NUMBER, LexiconNode([], {}, {}))
            continue
        for word in split_words(part):
            branches = node.stems if part[word.end : word.end + 1] == "*" else node.words
            node = branches.setdefault(word.text, LexiconNode([], {}, {}))
    if concept not in node.concepts:
        node.concepts.append(concept)
