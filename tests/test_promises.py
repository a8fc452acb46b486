"""SECURITY.md promises only what a test holds."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_each_promise_names_tests_that_there_are() -> None:
    assert len(ROWS) >= 10
    for promise, held in ROWS:
        named = re.findall(r"`(tests/\S+\.py)`", held)
        assert named, promise
        assert all("def test_" in (ROOT / path).read_text(encoding="utf-8") for path in named), promise
