"""What a reporter states about a run alongside its log: in a list, an issue-form table, a sentence. A statement, not an observation."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.settings import Scalar


class StatedFact(Struct, frozen=True, kw_only=True):
    """One thing that someone says about a run."""

    name: str
    """The name of a setting (RunSettings), or of a log fact: `gpu_name`, `gpu_count`, `framework`, `os`, `NAME_version`."""
    value: Scalar
    says: str
    """The label, or the sentence, as written."""
    file: str
    line: int
    """1-based."""
    is_labelled: bool = False
    """Whether it follows its own label, which leaves less open than a sentence."""


class StatedRun(Struct, frozen=True, kw_only=True):
    """What a text says about a run, and what it says was tried."""

    facts: tuple[StatedFact, ...] = ()
    tried: tuple[StatedFact, ...] = ()

    def first(self, name: str) -> StatedFact | None:
        """Return the first statement about this."""
        return next((fact for fact in self.facts if fact.name == name), None)
