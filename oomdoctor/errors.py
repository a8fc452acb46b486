"""What can go wrong in *using* oomdoctor. Bad input is never an exception: it becomes a Gap in the case."""

from __future__ import annotations


class OomdoctorError(Exception):
    """Incorrect use, with a message for the person at the terminal."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, line by line."""
        return (str(self),)


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


class NothingReadError(OomdoctorError):
    """None of the inputs could be read; contains a line for each."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("; ".join(lines))
        self._lines = lines

    @property
    def lines(self) -> tuple[str, ...]:
        """Why each input could not be read."""
        return self._lines


class Untraceable(OomdoctorError):
    """Why the code of a model cannot be traced."""
