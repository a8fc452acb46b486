"""The memory a run uses on one GPU: bytes term by term and phase by phase, with a range."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from msgspec import Struct

from oomdoctor.case.setup import Setup
from oomdoctor.case.text import Text

STANDING = frozenset({"weights", "reference", "reward model", "critic", "critic gradients", "adapters", "optimizer", "gradients"})
"""Terms of a training run that do not depend on batch or length."""


class Term(Struct, frozen=True, kw_only=True):
    """One part of the memory, with its minimum and maximum."""

    name: str
    bytes: int
    low: int
    high: int
    basis: str
    """Formula and source."""


class Phase(Struct, frozen=True, kw_only=True, dict=True):
    """What is in memory simultaneously at one moment of a run."""

    name: str
    terms: tuple[Term, ...]

    @functools.cached_property
    def bytes(self) -> int:
        """The sum of the terms; a search requests it a dozen times for each run it tries."""
        return sum(term.bytes for term in self.terms)


class Assumption(Struct, frozen=True, kw_only=True):
    """Something that was not stated and had to be assumed."""

    id: str
    text: Text
    is_question: bool = False
    """Whether the answer would change the figure much: then it is a question to the user."""


class Estimate(Struct, frozen=True, kw_only=True):
    """Bytes on one GPU, the fullest, at the peak of a run."""

    setup: Setup
    phases: tuple[Phase, ...]
    expected: int
    low: int
    high: int
    host: int
    """Host memory used by offloading, for all GPUs of a machine."""
    assumptions: tuple[Assumption, ...] = ()
    host_loading: int = 0
    """Host memory used by all processes of a machine during loading."""
    host_saving: int = 0
    """Host memory of the process that writes a full checkpoint of a sharded model."""
    ranks: tuple[Estimate, ...] = ()
    """The same for each distinct part of the model on a GPU; empty if all GPUs are alike."""

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
