"""A row of a setting in logs stands for the signature that recognises it in every form."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.load import load_signatures
from oomdoctor.knowledge.pattern import expand
from oomdoctor.knowledge.records.log_setting import LogSettingRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.rows.log_settings import signature_of


def signature(**row: object) -> SignatureRecord:
    return signature_of(
        msgspec.convert({"setting": ["eval_steps"], "value": "int", "like": 250, "source": "prog", **row}, LogSettingRecord)
    )


def field(record: SignatureRecord, text: str) -> str | None:
    match = re.search(expand(record.pattern or ""), text, re.M)
    return match[record.literals[0].replace("-", "_")] if match else None


@pytest.mark.parametrize("text", [
    pytest.param("  eval_steps: 250", id="in a YAML dump"),
    pytest.param("run --eval-steps 250 --seed 5", id="an option with dashes"),
    pytest.param("run --eval_steps=250", id="an option with an equals sign"),
    pytest.param('{"eval_steps": 250}', id="in a JSON dump"),
    pytest.param("Arguments(eval_steps=250, seed=5)", id="in a printed call"),
])  # fmt: skip
def test_recognises_a_setting(text: str) -> None:
    assert field(signature(), text) == "250"


@pytest.mark.parametrize("text", [
    pytest.param("try `--eval-steps 250`", id="an option in backticks is advice"),
    pytest.param("try another eval_steps", id="a name without a value"),
    pytest.param("max_eval_steps: 250", id="a longer name"),
    pytest.param("eval_steps: 250k", id="a value that goes on"),
    pytest.param("[print]   eval_steps ...... 250", id="dots, where the row does not speak of them"),
])  # fmt: skip
def test_stays_quiet(text: str) -> None:
    assert field(signature(), text) is None


def test_a_point_can_belong_to_the_value() -> None:
    assert field(signature(), "eval_steps: 1.") == "1"
    assert field(signature(point=False), "eval_steps: 1.5") is None


def test_examples_follow_from_the_forms() -> None:
    assert [example.text for example in signature(forms=["yaml", "json"], value=["no", "steps"], like=None).examples] == [
        "eval_steps: no",
        '{"eval_steps": "no"}',
    ]


def test_an_example_needs_one_of_the_literals() -> None:
    assert [example.text for example in signature(literals=["eval_steps="]).examples] == ["Arguments(eval_steps=250, seed=5)"]


def test_a_mistake_in_a_row_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "prog.yaml"
    path.write_text("program: prog\nsignatures:\n  - {setting: [a_b], value: int, lke: 3, source: prog}\n")
    with pytest.raises(RuleError, match="did you mean 'like'") as raised:
        load_signatures(path)
    assert (raised.value.line, raised.value.column) == (3, 34)
