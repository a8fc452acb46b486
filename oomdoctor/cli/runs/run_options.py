"""The options of `oomdoctor run`, once: click makes its help and errors of them, and a command line without a mistake needs no click.

Loading click takes a third of the time that the wrapper adds to a command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class RunOptions(NamedTuple):
    """What a command line asks of `oomdoctor run`."""

    command: tuple[str, ...] = ()
    out: str | None = None
    level: int = 1
    log: str | None = None
    print_env: str | None = None
    retry: int = 0
    allow: tuple[str, ...] = ()
    attempt: int = 1
    quiet: bool = False


class RunOption(NamedTuple):
    """One option: a number where it has bounds, a flag where its default is False, repeatable where that is a tuple, else a text."""

    field: str
    help: str | None = None
    metavar: str | None = None
    bounds: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    """The first is meant where none is named."""
    shows_default: bool = False

    @property
    def name(self) -> str:
        """Return it as it stands on the command line."""
        return f"--{self.field.replace('_', '-')}"

    @property
    def default(self) -> object:
        """Return what holds where it is not given."""
        return RunOptions._field_defaults[self.field]


OPTIONS = (
    RunOption("out", "The evidence folder; the default is a new one under ~/.local/state/oomdoctor/runs.", "DIR"),
    RunOption(
        "level", "How much is recorded inside the process: 0 counters, 1 what holds memory, 2 history.", bounds=(0, 2), shows_default=True
    ),
    RunOption("log", "The file that receives the command's output, if it goes through a pipe.", "FILE"),
    RunOption(
        "print_env",
        "Run nothing; print how to add the recorder to commands started by something else.",
        choices=("shell", "ray"),
    ),
    RunOption("retry", "Retry up to this many times if the diagnosis is certain and a safe fix is left.", bounds=(0, 20)),
    RunOption("allow", "A fix that --retry may apply although it is not safe (repeatable).", "ID"),
    RunOption("attempt", bounds=(1, 1000)),
    RunOption("quiet", "Write nothing to standard error."),
)
_BY_NAME: Mapping[str, RunOption] = {option.name: option for option in OPTIONS if not option.choices}


def plain_options(words: Sequence[str]) -> RunOptions | None:
    """Return what the words behind `run` ask for; None where click has to look at them: for help, and wherever something may be wrong."""
    given: dict[str, object] = {}
    left = list(words)
    while left and left[0] != "--" and left[0].startswith("-"):
        name, has_value, value = left.pop(0).partition("=")
        option = _BY_NAME.get(name)
        if option is None:
            return None
        if option.default is False:
            if has_value:
                return None
            given[option.field] = True
            continue
        if not has_value:
            value = left.pop(0) if left else "-"
        read = _read(option, value)
        if read is None:
            return None
        before = given.get(option.field, option.default)
        given[option.field] = (*before, read) if isinstance(before, tuple) else read
    command = tuple(left[1:] if left[:1] == ["--"] else left)
    return RunOptions(command, **given) if command else None  # type: ignore[arg-type]


def _read(option: RunOption, value: str) -> str | int | None:
    """Return a value; None where it may be another option, or no number within the bounds."""
    if option.bounds is None:
        return None if value.startswith("-") else value
    least, most = option.bounds
    return int(value) if value.isascii() and value.isdecimal() and least <= int(value) <= most else None
