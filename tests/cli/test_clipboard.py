"""`--copy` sends the report to the terminal's clipboard, whole or not at all, and only there."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.cli.clipboard import copy, sequence


@given(st.text(max_size=200))
def test_the_terminal_gets_exactly_the_text(text: str) -> None:
    sent = sequence(text, {})
    match = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", sent or "")
    assert match is not None
    assert base64.b64decode(match[1]) == text.encode("utf-8", "replace")


def test_tmux_gets_it_wrapped() -> None:
    assert sequence("a", {"TMUX": "/tmp/tmux-1000/default,1,0"}) == "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"


def test_a_file_stands_in_for_the_terminal(tmp_path: Path) -> None:
    terminal = tmp_path / "tty"
    assert copy("报告", {}, str(terminal)) is None
    assert terminal.read_text(encoding="ascii") == sequence("报告", {})


@pytest.mark.parametrize(
    ("text", "terminal", "why"),
    [
        pytest.param("a" * 80_000, "tty", "exceeds the terminal copy limit", id="a text that terminals would cut"),
        pytest.param("a", "missing/tty", "no terminal", id="a job without a terminal"),
    ],
)
def test_what_hinders_is_said(tmp_path: Path, text: str, terminal: str, why: str) -> None:
    assert why in (copy(text, {}, str(tmp_path / terminal)) or "")
    assert not (tmp_path / terminal).exists()
