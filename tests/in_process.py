"""The command line in this process: what it prints and its status, without the third of a second that a process takes to start.

That the program is the same is held by the tests that start it, among them tests/cli/test_diagnose.py and tests/cli/test_terminal.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from click.testing import CliRunner

from oomdoctor.cli.main import execute

_OF_THE_USER = ("LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "COLUMNS")


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def oomdoctor(arguments: Sequence[str], *, here: Path | None = None, text: str = "", environ: Mapping[str, str] = {}) -> Done:
    """Run a command in the folder `here` with `text` on standard input, in no language and width that the user has set."""
    told = {**dict.fromkeys(_OF_THE_USER), **environ}
    with _folder(here or Path.cwd()), _standard_input(text), CliRunner().isolation(text, told) as (stdout, stderr, _):
        return Done(execute(arguments), stdout.getvalue().decode(), stderr.getvalue().decode())


@contextmanager
def _folder(here: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(here)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _standard_input(text: str) -> Iterator[None]:
    """Logs are read from the descriptor itself; what asks a question reads `sys.stdin`, which click sets."""
    before = os.dup(0)
    with TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        os.dup2(given.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
