"""The quick look for lines that may refuse memory leaves out none that the pattern finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oomdoctor.parse.families import refusal

ROOT = Path(__file__).resolve().parents[2]


def texts() -> Iterator[str]:
    for folder in ("fixtures", "tests", "rules"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".log", ".txt", ".yaml", ".out", ".err", ".py"):
                yield path.read_text(encoding="utf-8", errors="replace")[:200_000]


def test_every_line_with_an_anchor_is_looked_at() -> None:
    seen = 0
    for text in texts():
        anchored = {text.rfind("\n", 0, anchor.start()) + 1 for anchor in refusal._ANCHOR.finditer(text)}
        missed = anchored - {start for start, _ in refusal._telling_lines(text)}
        assert not missed, text[min(missed) :][:200]
        seen += len(anchored)
    assert seen > 500


@pytest.mark.parametrize("text", ["İ\nKV cache is TOO SMALL\n", "a\n\nDevice memory İ: Not Enough memory"], ids=["above", "on the line"])
def test_a_letter_that_grows_when_it_is_made_small_moves_no_line(text: str) -> None:
    lines = [text[start:end] for start, end in refusal._telling_lines(text)]
    assert [line for line in text.split("\n") if "too small" in line.lower() or "not enough" in line.lower()] == lines
