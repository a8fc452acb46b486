"""The shape of rules/lexicon: what words mean, whatever program prints them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record

Language = Annotated[str, Meta(pattern="^(en|zh|de|es|fr|ja|ru|pt|it|ko)$")]
Phrase = Annotated[str, Meta(min_length=1, max_length=200)]


class ConceptRecord(Record, frozen=True, kw_only=True):
    """Words and phrases that mean the same for what a log says.

    In a phrase `(a|b|)` is a choice, of which one may be nothing, `#` any number, and `*` at the end of a word the rest of it.
    Capitals and signs do not matter, and identifiers are the words that they are made of.
    """

    id: Id
    says: str
    """What the words mean, in one sentence."""
    source: str | None = None
    """Where their forms were seen, if they are none of ordinary language."""
    words: dict[Language, list[Phrase]]


class LexiconFile(Record, frozen=True, kw_only=True):
    """A file rules/lexicon/<subject>.yaml."""

    concepts: list[ConceptRecord]


FormName = Literal["lack", "refused", "fit", "over", "short"]


class RefusalForm(Record, frozen=True, kw_only=True):
    """A form of a sentence that says that memory was refused: concepts that follow each other, and what stands beside them."""

    id: FormName
    says: str
    """A sentence of this form."""
    sequence: Annotated[list[list[str]], Meta(min_length=1)]
    """At each place the concepts of which one stands there."""
    gap: int = 0
    """At most so many characters between two of them."""
    beside: list[str] = []
    """One of these stands elsewhere in the sentence."""
    sized: bool = False
    """A size will do instead."""


class GrammarFile(Record, frozen=True, kw_only=True):
    """The file rules/grammar.yaml."""

    groups: dict[str, list[str]] = {}
    """Names for concepts that stand in several forms."""
    forms: list[RefusalForm]


class LexiconNode(Struct, array_like=True, omit_defaults=True, eq=False):
    """What may follow the words that lead here, and what those words mean.

    A node is equal to itself only, so that what it led to can be kept.
    """

    concepts: list[str] = []
    words: dict[str, LexiconNode] = {}
    stems: dict[str, LexiconNode] = {}


class Lexicon(LexiconNode, array_like=True, omit_defaults=True, eq=False):
    """The root of all words, and how they follow each other where memory was refused."""

    forms: list[RefusalForm] = []
