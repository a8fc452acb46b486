"""What a run takes of one card: bytes term by term and phase by phase, with a range."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from msgspec import Struct

from oomdoctor.case.setup import Setup
from oomdoctor.case.text import Text

STANDING = frozenset({"weights", "reference", "reward model", "critic", "critic gradients", "adapters", "optimizer", "gradients"})
"""Terms of a training run that no batch and no length changes."""


class Term(Struct, frozen=True, kw_only=True):
    """One part of the memory, with what it may be at least and at most."""

    name: str
    bytes: int
    low: int
    high: int
    basis: str
    """Formula and source."""


class Phase(Struct, frozen=True, kw_only=True, dict=True):
    """What is there at once at one moment of a run."""

    name: str
    terms: tuple[Term, ...]

    @functools.cached_property
    def bytes(self) -> int:
        """The sum of the terms; a search asks it a dozen times of each run that it tries."""
        return sum(term.bytes for term in self.terms)


class Assumption(Struct, frozen=True, kw_only=True):
    """Something that was not said and had to be taken as given."""

    id: str
    text: Text
    is_question: bool = False
    """Whether the answer would change the figure much: then it is a question to the user."""


class Estimate(Struct, frozen=True, kw_only=True):
    """Bytes of one card, the fullest, at the peak of a run."""

    setup: Setup
    phases: tuple[Phase, ...]
    expected: int
    low: int
    high: int
    host: int
    """Host memory that offloading takes, for all cards of a machine."""
    assumptions: tuple[Assumption, ...] = ()
    host_loading: int = 0
    """Host memory that all processes of a machine take while they load."""
    host_saving: int = 0
    """Host memory of the process that writes a whole checkpoint of a sharded model."""
    ranks: tuple[Estimate, ...] = ()
    """The same for each part of the model that some card has; empty where all cards are alike."""

    @property
    def peak(self) -> Phase:
        """The phase that needs the most."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def largest_term(self) -> Term:
        """The largest part of the peak."""
        return max(self.peak.terms, key=lambda term: term.bytes)

    @property
    def terms(self) -> Mapping[str, int]:
        """The parts of the peak."""
        return {term.name: term.bytes for term in self.peak.terms}
