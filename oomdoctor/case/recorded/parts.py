"""What GPU memory was used for at a failure: measured, and compared with what the memory model expects from the run's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from oomdoctor.case.text import Text


class ExpectedPart(Struct, frozen=True, kw_only=True):
    """The memory model's figures for a part at its fullest moment: bytes, at least, at most."""

    bytes: int
    low: int
    high: int


class MeasuredPart(Struct, frozen=True, kw_only=True):
    """The memory of one use."""

    name: str
    """An entry of rules/holdings.yaml."""
    says: Text
    bytes: int
    """Of the live blocks."""
    source: Literal["measured", "derived"]
    """`measured` if Python frames or the profiler show the use of all blocks; `derived` if the moment or missing frames do."""
    site: str | None
    """The line that holds most of it."""
    terms: tuple[str, ...] = ()
    """The terms of the memory model, and of what fixes free."""
    expected: ExpectedPart | None = None
    """None if the settings do not determine it."""
    meaning: Text | None = None
    """What a large difference means."""


class MeasuredParts(Struct, frozen=True, kw_only=True):
    """Everything live on one GPU, the largest part first; what was expected but not there comes last."""

    device: int
    at: Literal["failure", "peak", "end"]
    """The moment: the failed request, the highest point of the recording, or when the snapshot was saved."""
    parts: tuple[MeasuredPart, ...]

    def of_terms(self, terms: Sequence[str]) -> int:
        """Return the bytes of the parts that have any of these terms."""
        return sum(part.bytes for part in self._named(terms))

    def model_terms(self, terms: Sequence[str]) -> frozenset[str]:
        """Return all terms of these parts: fixes and the memory model have different names for some of them."""
        return frozenset(term for part in self._named(terms) for term in part.terms)

    def _named(self, terms: Sequence[str]) -> list[MeasuredPart]:
        return [part for part in self.parts if not set(terms).isdisjoint(part.terms)]
