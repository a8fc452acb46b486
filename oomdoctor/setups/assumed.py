"""What the memory model assumes for something unstated."""

from __future__ import annotations

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.text import Text


def assumed(identity: str, en: str, zh: str, *, is_question: bool = True) -> Assumption:
    """Return an assumption in both languages; `asked` is whether a person could state it."""
    return Assumption(id=identity, text=Text(en, zh), is_question=is_question)
