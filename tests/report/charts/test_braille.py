"""Charts on a terminal: as many lines as there is room for, never in a pipe, and dots where the figures are."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.charts.sample_pages import MODEL, STAIRCASE
from report.charts.test_curves import CLIMB, block
from rich.cells import cell_len

from oomdoctor.report.document import Document
from oomdoctor.report.render.braille import FEWEST_LINES
from oomdoctor.report.render.terminal import render
from oomdoctor.units import GIB

BRAILLE = re.compile("[\u2801-\u28ff]")
ROOT = Path(__file__).parents[3]
DIAGNOSE = ("diagnose", "train.log", "--lang", "en")
"""In the folder of the log: a report names it, and a long path is a line more."""
SWEEP = ("estimate", *MODEL, "--gpu", "40GB", "--sweep", "batch,length", "--lang", "en")


def on_terminal(arguments: tuple[str, ...], *, columns: int = 100, **environ: str) -> str:
    """Return what a command writes to a terminal of its own."""
    control, terminal = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": str(columns),
        "TERM": "xterm-256color",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(ROOT),
        **environ,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", *arguments],
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=STAIRCASE,
    )
    os.close(terminal)
    out = b""
    while True:
        ready, _, _ = select.select([control], [], [], 600)
        try:
            piece = os.read(control, 65536) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            break
        out += piece
    os.close(control)
    process.wait(timeout=600)
    return out.decode(errors="replace")


@pytest.mark.parametrize(("arguments", "lines"), [pytest.param(DIAGNOSE, 40, id="diagnose"), pytest.param(SWEEP, 40, id="a sweep")])
def test_a_wide_terminal_has_a_chart_and_a_screen_stays_one(arguments: tuple[str, ...], lines: int) -> None:
    text = on_terminal(arguments)
    assert BRAILLE.search(text) and "\x1b[" in text
    assert text.count("\n") <= lines


@pytest.mark.parametrize("environ", [
    pytest.param({"columns": 79}, id="a narrow terminal"),
    pytest.param({"PYTHONIOENCODING": "gbk"}, id="an encoding without the characters"),
    pytest.param({"TERM": "dumb"}, id="a terminal that shows lines only"),
])  # fmt: skip
def test_elsewhere_there_is_none(environ: dict[str, object]) -> None:
    assert not re.search("[\u2801-\u28ff]", on_terminal(DIAGNOSE, **environ))  # type: ignore[arg-type]


def test_without_colour_the_chart_stays() -> None:
    text = on_terminal(DIAGNOSE, NO_COLOR="1")
    assert BRAILLE.search(text) and "\x1b[" not in text


def test_a_pipe_has_none() -> None:
    command = [sys.executable, "-m", "oomdoctor", *DIAGNOSE]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=STAIRCASE, check=False)
    assert done.stdout and not BRAILLE.search(done.stdout)


def drawn(*series: object, lines: int = 12, width: int = 100, **more: object) -> list[str]:
    document = Document("t", (block(*series, **more),))  # type: ignore[arg-type]
    return render(document, width=width, color=False, chart=lines).splitlines()[:-2]


def test_dots_stand_where_the_figures_are() -> None:
    text = drawn(CLIMB, failure=890.0)
    rows = [line[12:] for line in text[1:-1]]
    assert len(text) == 12 and text[0] == "  ✗ failure   ┈ the card 24.00 GiB   1 curve 0 21.71 GiB"
    # From 9 to 21.7 of 24 GiB over ten rows, to a dot, of which there are four in a row.
    first = next(number for number, row in enumerate(rows) if BRAILLE.match(row))
    last = next(number for number, row in enumerate(rows) if BRAILLE.search(row[-12:]))
    assert (first, last) == (round((1 - 9 / 24) * 39) // 4, round((1 - 21.71 / 24) * 39) // 4)
    assert "✗" in rows[0] and text[last + 1].endswith("1")
    assert text[-1].split() == ["step", "0", "890"]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.tuples(st.floats(), st.one_of(st.none(), st.integers(-5, 1 << 66))), max_size=60).map(tuple), max_size=5),
    st.integers(60, 120), st.integers(0, 14),
)  # fmt: skip
def test_any_series_keeps_to_its_lines_and_width(series: list[object], width: int, lines: int) -> None:
    text = drawn(*series, lines=lines, width=width)
    assert len(text) in (0, lines) and (not text or lines >= FEWEST_LINES)
    assert max(map(cell_len, text), default=0) <= min(width, 100)


def test_what_rows_tell_is_not_drawn_again(tmp_path: Path) -> None:  # noqa: ARG001
    assert drawn(((0.0, GIB), (1.0, 2 * GIB)), is_told=True) == []
