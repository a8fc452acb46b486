"""The options of `oomdoctor run` without click: what is taken is taken as click takes it, and everything else is left to click."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.cli.runs.run import run
from oomdoctor.cli.runs.run_options import OPTIONS, RunOptions, plain_options

WORDS = [option.name for option in OPTIONS] + [
    *("--", "-", "", "-h", "--help", "--lev", "--level=1", "--level=x", "--out=a=b", "--quiet=1", "--retry=-1", "--allow=x"),
    *("0", "2", "3", "20", "+1", "1_0", " 1", "x", "train.py", "--print-env=ray", "--x", "-c"),
]


def by_click(words: list[str]) -> RunOptions | None:
    """What click makes of the words; None where it complains or helps."""
    try:
        return RunOptions(**run.make_context("run", list(words)).params)
    except (click.ClickException, click.exceptions.Exit):
        return None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["--", "a", "--quiet"], RunOptions(("a", "--quiet")), id="a command behind two dashes"),
        pytest.param(["a", "--", "b"], RunOptions(("a", "--", "b")), id="a command without them, which has some of its own"),
        pytest.param(["--", "--", "a"], RunOptions(("--", "a")), id="a command that is called like them"),
        pytest.param(["--level", "2", "--out=x", "--quiet", "a"], RunOptions(("a",), out="x", level=2, quiet=True), id="options"),
        pytest.param(["--allow", "x", "--allow=y", "a"], RunOptions(("a",), allow=("x", "y")), id="one that may be repeated"),
        pytest.param(["--out", "", "a"], RunOptions(("a",), out=""), id="an empty value"),
    ],
)
def test_what_is_plain_is_taken_as_click_takes_it(words: list[str], expected: RunOptions) -> None:
    assert plain_options(words) == by_click(words) == expected


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--help"], id="help"),
        pytest.param([], id="nothing"),
        pytest.param(["--quiet", "--"], id="no command"),
        pytest.param(["--level", "3", "a"], id="a number out of bounds"),
        pytest.param(["--level", "one", "a"], id="no number"),
        pytest.param(["--lev", "1", "a"], id="a shortened name"),
        pytest.param(["--quiet=1", "a"], id="a flag with a value"),
        pytest.param(["--out"], id="a value that is missing"),
        pytest.param(["--out", "--quiet", "a"], id="an option in the place of a value"),
        pytest.param(["--print-env", "a"], id="one that runs nothing"),
    ],
)
def test_everything_else_is_left_to_click(words: list[str]) -> None:
    assert plain_options(words) is None


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_no_words_are_taken_otherwise_than_click_takes_them(words: list[str]) -> None:
    plain = plain_options(words)
    assert plain is None or plain == by_click(words)


@pytest.mark.skipif(sys.platform == "win32", reason="click reads every command line there")
def test_a_command_does_not_wait_for_what_it_does_not_need() -> None:
    shown = (
        "import sys; from oomdoctor.cli.runs import watched; print(sorted({'click', 'msgspec', 'shutil', 'tempfile'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout == "[]\n"
