"""What a reporter states of a run beside its log: in a list, a table of an issue form, a sentence. It was said, and not seen in a run."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.settings import Scalar


class StatedFact(Struct, frozen=True, kw_only=True):
    """One thing that somebody says of a run."""

    name: str
    """The name of a setting (RunSettings), or of a fact of the log: `gpu_name`, `gpu_count`, `framework`, `os`, `NAME_version`."""
    value: Scalar
    says: str
    """The label, or the sentence, as it is written."""
    file: str
    line: int
    """1-based."""
    is_labelled: bool = False
    """Whether it stands behind a label of its own, which leaves less open than a sentence."""


class StatedRun(Struct, frozen=True, kw_only=True):
    """What a text says of a run, and what it says was tried."""

    facts: tuple[StatedFact, ...] = ()
    tried: tuple[StatedFact, ...] = ()

    def first(self, name: str) -> StatedFact | None:
        """Return what is said of this."""
        return next((fact for fact in self.facts if fact.name == name), None)
