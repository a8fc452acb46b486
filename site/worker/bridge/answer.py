"""What a request gave, in no form yet, and who hears how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.document import Document
from oomdoctor.report.wording.wording import Wording


class Listener(Protocol):
    """What hears how far a request is."""

    def progress(self, done: int) -> None:
        """Take how many bytes are read."""

    def early(self, source: str, text: str, from_end: int | None) -> None:
        """Take the first failure in the end of a large log."""


class Silent:
    """A listener that nobody is behind."""

    def progress(self, done: int) -> None:
        """Leave it."""

    def early(self, source: str, text: str, from_end: int | None) -> None:
        """Leave it."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a request gave, in no form yet."""

    kind: str
    folder: str
    report: Callable[[Wording], object] | None = None
    """The structure of its JSON."""
    document: Callable[[Wording], Document] | None = None
    data: bytes | None = None
    """Its JSON, where it has no structure."""
    names_people: bool = False
    """Whether it quotes a log or a file of a run, where people and machines are named."""
    notes: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    pasted: str = ""
