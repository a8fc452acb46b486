"""The settings of a run: a value that does not fit its setting is unknown, and every name of the rules is a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.case.settings import RunConfig, RunSettings, Scalar, WrittenSetting, fitting, positive
from oomdoctor.errors import RuleError
from oomdoctor.knowledge.load import load_rules

TABLE = "framework: new\ntitle: New\norder: 1\nsigns: [[a]]\nsettings:\n  sequence_lenght: [max_len]\nsource: its manual\n"
EXAMPLE = "[{name: one, files: {a.yaml: 'a: 1'}}]"
CHECK = f"""
checks:
  - {{id: one, severity: note, at: [training.model], when: {{fact: training.model, known: true}}, what: {{en: a, zh: a}}, why: {{en: a, zh: a}},
     sets: {{sequence_lenght: 1}}, source: its manual, examples: {EXAMPLE}, near_misses: {EXAMPLE}}}
"""


@pytest.mark.parametrize(("name", "value", "kept"), [
    pytest.param("micro_batch", 4, 4, id="a whole number"),
    pytest.param("micro_batch", 4.0, 4, id="a whole number with a point"),
    pytest.param("micro_batch", 1.5, None, id="half a sample"),
    pytest.param("micro_batch", True, None, id="true is no number"),
    pytest.param("micro_batch", "4", None, id="a number in quotes is for the reader"),
    pytest.param("max_steps", -1, -1, id="a number that is no size"),
    pytest.param("eval_steps", 0.1, 0.1, id="a share"),
    pytest.param("zero_bucket", 5e8, 5e8, id="a size in scientific notation"),
    pytest.param("memory_share", 1, 1, id="a whole number where a share is asked"),
    pytest.param("packing", "yes", None, id="a word is neither true nor false"),
    pytest.param("packing", False, False, id="false"),
    pytest.param("model", 7, None, id="a number is no name"),
    pytest.param("fsdp_sharding", 1, 1, id="a strategy by its number"),
    pytest.param("offload_params", True, True, id="a device that is only said to be there"),
])  # fmt: skip
def test_a_value_is_kept_where_it_fits(name: str, value: Scalar, kept: Scalar) -> None:
    setting = fitting(name, value)
    assert (setting, type(setting)) == (kept, type(kept))


@pytest.mark.parametrize(("number", "size"), [
    pytest.param(8, 8, id="a size"),
    pytest.param(5e8, 500_000_000, id="a size in scientific notation"),
    pytest.param(0, None, id="nothing"),
    pytest.param(-1, None, id="below nothing"),
    pytest.param(0.5, None, id="a part"),
    pytest.param(10**9 + 1, None, id="out of all bounds"),
    pytest.param(float("inf"), None, id="no end"),
    pytest.param(float("nan"), None, id="no number"),
    pytest.param(None, None, id="unknown"),
])  # fmt: skip
def test_a_number_as_a_size(number: float | None, size: int | None) -> None:
    assert positive(number) == size


def test_other_values_replace_known_ones_also_where_they_do_not_fit() -> None:
    found = RunSettings(micro_batch=8, optimizer="adamw_torch").with_values({"micro_batch": "many", "no_such_setting": 1})
    assert found.known() == {"optimizer": "adamw_torch"}


def test_facts_stand_in_the_order_of_the_files_and_worked_out_ones_last() -> None:
    place = WrittenSetting(key="lora_rank", value=8, file="a.yaml", line=1)
    found = RunConfig(settings=RunSettings(lora_rank=8, model="org/m", micro_batch=2), places={"micro_batch": place, "lora_rank": place})
    assert list(found.facts()) == ["training.micro_batch", "training.lora_rank", "training.model"]


@pytest.mark.parametrize("folder", ["frameworks", "checks"])
def test_rules_that_name_no_setting_are_rejected(folder: str, tmp_path: Path) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "new.yaml").write_text(TABLE if folder != "checks" else CHECK)
    with pytest.raises(RuleError, match=r"is called 'sequence_lenght'; did you mean 'sequence_length'\?"):
        load_rules(tmp_path)
