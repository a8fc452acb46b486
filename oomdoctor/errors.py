"""What can go wrong in *using* oomdoctor. Bad input is never an exception: it becomes a Gap in the case."""

from __future__ import annotations


class OomdoctorError(Exception):
    """A wrong use, with a message for the person at the terminal."""


class RuleError(OomdoctorError):
    """A rule file that cannot be used: where, what is wrong, what is allowed."""

    def __init__(self, path: str, line: int, column: int, why: str) -> None:
        super().__init__(f"{path}:{line}:{column}: {why}")
        self.path = path
        self.line = line
        self.column = column
        self.why = why


class UsageError(OomdoctorError):
    """Arguments that do not make sense together."""
