"""Estimates against published measurements: no run that took more than a card has is said to fit it, and ranges hold.

`OOMDOCTOR_MEASURED` names another table with the columns of fixtures/measured/published.csv.
"""

from __future__ import annotations

import os
from pathlib import Path

import accuracy
import pytest
import verdicts
from measurements import GIB, measured, read
from verdicts import own_card

from oomdoctor.memory.estimate import estimate

ROOT = Path(__file__).parents[1]
TABLES = [str(ROOT / "fixtures" / "measured" / "published.csv"), *filter(None, [os.environ.get("OOMDOCTOR_MEASURED")])]

WRITES_SCORES = {"mm-4d8286d174"}
"""A program that writes attention scores for every pair of tokens of a prompt (AutoAWQ before flash attention), which no column says."""


@pytest.mark.parametrize(("named", "gib"), [
    pytest.param("A100-40GB", 39.4, id="with its size"),
    pytest.param("2 * A100", 79.2, id="several of one kind, the larger of two sizes"),
    pytest.param("RTX 4090", 23.6, id="one size only"),
    pytest.param("H100-96GB", 93.6, id="a size that the tables have of no such card"),
    pytest.param("A10, A100", None, id="two cards"),
    pytest.param("", None, id="no card"),
])  # fmt: skip
def test_the_card_of_a_row(named: str, gib: float | None) -> None:
    found = own_card(named)
    assert (None if found is None else found.bytes / (1 << 30)) == (None if gib is None else pytest.approx(gib, abs=0.1))


@pytest.mark.parametrize("table", TABLES)
def test_nothing_that_took_more_than_a_card_is_said_to_fit_it(table: str) -> None:
    cases = read(table)
    held = verdicts.on_own_cards(cases) + verdicts.on_all_sizes(cases)
    assert len(held) > len(cases)
    wrong = {row["id"] for row, said, more in held if said == "yes" and more and row["measured_kind"] != "stated"}
    assert wrong <= WRITES_SCORES


@pytest.mark.parametrize("table", TABLES)
def test_ranges_hold_of_most_runs(table: str) -> None:
    """docs/accuracy.md has the shares; a change that costs many of them is no repair."""
    found = [(estimate(made, why), measured(row) * GIB) for row, made, why in read(table)]
    covered = sum(one.low <= size <= one.high for one, size in found) / len(found)
    under = sum(one.high < size for one, size in found) / len(found)
    assert covered > 0.85
    assert under < 0.08


def test_the_document_says_what_is_measured_today() -> None:
    """`python bench/accuracy.py` writes it anew."""
    written = accuracy.REPORT.read_text(encoding="utf-8").split(accuracy.BEGIN)[1].split(accuracy.END)[0].strip()
    assert "\n".join(accuracy.section(read(str(accuracy.PUBLISHED)))) == written
