"""Situations that users meet, each with what an expert says first; what is missed today stands in the table itself.

A row holds a log (or `files`, with `config` among them) and: the `verdict`; the findings or causes that are right as the `first`; whether
the cause is `hidden` (then nothing may be certain or likely); the fixes that are right as the first `advice`; whose keys may be shown
(`program`); what must stand in the advice (`shows`) and what may not stand among its keys (`hides`). `miss` says what is not right yet and
what is said instead; `--bless` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from brief_steps import bare_steps
from situation_table import FOLDER, Row, diagnosis, misses, rows

FIRST = 0.94
"""At least this share of first findings is right."""
ADVICE = 0.84
"""At least this share of first advice is right: the fix, whose keys it shows, and what must stand there."""

TABLE = list(rows())


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{group}: {row['says']}") for group, row in TABLE])
def test_a_situation_is_answered_as_the_table_says(row: Row, bless: bool, tmp_path: Path) -> None:
    if bless:
        pytest.skip("the table is written anew")
    found = diagnosis(row, tmp_path)
    assert misses(row, found) == row.get("miss", {})
    assert not list(bare_steps(found)), "a step says how it is done"


def test_first_findings_and_first_advice_are_right_as_often_as_they_were() -> None:
    missed = [row.get("miss", {}).keys() for _, row in TABLE]
    first = sum(not miss & {"verdict", "first", "sure"} for miss in missed)
    advice = sum(not miss & {"verdict", "advice", "program", "shows", "hides"} for miss in missed)
    assert first >= FIRST * len(TABLE)
    assert advice >= ADVICE * len(TABLE)


class _Block(str):
    """A text that stands in its lines."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))
_Dumper.add_representer(
    list,
    lambda dumper, items: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", items, flow_style=not any(isinstance(one, dict) for one in items)
    ),
)


def test_the_table_is_written_anew_when_asked(bless: bool, tmp_path: Path) -> None:
    if not bless:
        pytest.skip("--bless writes the table anew")
    for path in sorted(FOLDER.glob("*.yaml")):
        table = [
            _with_misses(row, tmp_path / path.stem / str(at)) for at, row in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")))
        ]
        path.write_text(yaml.dump(table, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000), encoding="utf-8")


def _with_misses(row: Row, folder: Path) -> Row:
    missed = misses(row, diagnosis(row, folder))
    texts = {key: row[key] for key in ("log", "files") if key in row}
    rest = {key: value for key, value in row.items() if key not in ("miss", *texts)}
    blocks = {
        key: _Block(text) if isinstance(text, str) else {name: _Block(part) for name, part in text.items()} for key, text in texts.items()
    }
    return rest | ({"miss": missed} if missed else {}) | blocks
