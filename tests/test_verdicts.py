"""No run that was measured above a card is said to fit it.

Needs a table of measurements, which is not part of the project: `OOMDOCTOR_MEASURED` names it. Its columns are those that
`bench/accuracy.py` reads.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pytest

TABLE = os.environ.get("OOMDOCTOR_MEASURED", "")
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from verdicts import own_card  # noqa: E402 - bench is no package


@pytest.mark.parametrize(("named", "gib"), [
    pytest.param("A100-40GB", 39.0, id="with its size"),
    pytest.param("2 * A100", 78.0, id="several of one kind, the larger of two sizes"),
    pytest.param("RTX 4090", 23.4, id="one size only"),
    pytest.param("H100-96GB", 93.6, id="a size that the tables have of no such card"),
    pytest.param("A10, A100", None, id="two cards"),
    pytest.param("", None, id="no card"),
])  # fmt: skip
def test_the_card_of_a_row(named: str, gib: float | None) -> None:
    found = own_card(named)
    assert (None if found is None else found.bytes / (1 << 30)) == (None if gib is None else pytest.approx(gib, abs=0.1))


@pytest.mark.skipif(not TABLE, reason="OOMDOCTOR_MEASURED names no table of measurements")
def test_nothing_that_took_more_than_a_card_is_said_to_fit_it() -> None:
    import accuracy
    import verdicts

    with Path(TABLE).open(encoding="utf-8", newline="") as file:
        cases = list(accuracy._cases(row for row in csv.DictReader(file) if accuracy.counts(row)))
    held = verdicts.on_own_cards(cases) + verdicts.on_all_sizes(cases)
    assert len(held) > len(cases)
    wrong = [row["id"] for row, said, more in held if said == "yes" and more and row["measured_kind"] != "stated"]
    assert wrong == []
