"""A change of one setting in one file, and what becomes of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.text import Text

Form = Literal["yaml", "json", "toml", "command"]


class ConfigChange(Struct, frozen=True, kw_only=True):
    """One setting to write."""

    file: str
    key: str
    """As the file nests it, with dots; `--key` for an option, `NAME` for a variable of a script. For a rename the old key."""
    to: str
    """The value; for a rename the new key, for a move the block. A list, `[a, b]`, names items: those that stand there already stay."""
    action: Literal["set", "rename", "move"] = "set"
    line: int | None = None
    """Where the setting stands now, 1-based; None where it may be missing."""
    after: str | None = None
    """A key of the same block: one that is missing is written below it."""
    variable: bool = False
    """Whether it is a variable of the environment, which only a script can hold."""
    program: str | None = None
    """The program whose command takes the option; None is the only one."""

    @property
    def after_it(self) -> str:
        """The key as it is called when the change is made."""
        block, dot, name = self.key.rpartition(".")
        if self.action == "rename":
            return f"{block}{dot}{self.to}"
        return f"{self.to}.{name}" if self.action == "move" else self.key


class Edit(Struct, frozen=True):
    """Characters `start` to `end` of a text become `new`."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """Return the text with this edit."""
        return text[: self.start] + self.new + text[self.end :]


class RefusedChange(Struct, frozen=True):
    """Why a change was not made. `by_hand` is the line to write instead, in the words of the file."""

    why: Text
    by_hand: str


class UnsafeEdit(Exception):
    """Raised where no safe edit is found; it becomes a `Refused`."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.why = Text(en, zh)


def plain_key(key: str) -> str:
    """Return a key as programs compare it: no leading dashes, and underscores for dashes."""
    return key.lstrip("-").replace("-", "_")
