"""Settings that somebody gives: by name or as a structure, and never passed over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import UsageError


def test_settings_by_name_and_as_a_structure_are_the_same() -> None:
    by_name = oomdoctor.estimate(model="Qwen2.5-7B", settings={"finetuning": "lora", "micro_batch": 2})
    assert by_name == oomdoctor.estimate(model="Qwen2.5-7B", settings=RunSettings(finetuning="lora", micro_batch=2))
    assert by_name.fits is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        pytest.param({"microbatch": 2}, "no setting is called microbatch", id="a name that is none"),
        pytest.param({"micro_batch": "two"}, "micro_batch cannot be 'two'", id="a value of another type"),
    ],
)
def test_a_setting_that_is_none_is_told(settings: dict[str, str | int], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        oomdoctor.estimate(model="Qwen2.5-7B", settings=settings)


def test_a_card_that_is_not_known_is_told() -> None:
    with pytest.raises(UsageError, match="GPU RTX 12345: unknown"):
        oomdoctor.estimate(model="Qwen2.5-7B", gpu="RTX 12345")


@pytest.mark.parametrize(("given", "why"), [
    pytest.param({"framework": "llamafactroy"}, "framework llamafactroy: unknown; did you mean llamafactory", id="a framework"),
    pytest.param({"gpu": "RTX 4900"}, "GPU RTX 4900: unknown.* RTX 4090", id="a card"),
    pytest.param({"settings": {"microbatch": 2}}, "no setting is called microbatch; did you mean micro_batch", id="a setting"),
])  # fmt: skip
def test_what_is_not_known_is_answered_with_the_nearest(given: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        oomdoctor.estimate(model="Qwen2.5-7B", **given)


def test_a_count_in_the_name_of_a_card_counts_unless_one_is_given() -> None:
    two = oomdoctor.estimate(model="Qwen2.5-7B", gpu="2x4090").estimate
    four = oomdoctor.estimate(model="Qwen2.5-7B", gpu="2x4090", gpus=4).estimate
    assert (two.setup.layout.cards, four.setup.layout.cards) == (2, 4)


def test_a_size_that_was_taken_is_said_with_the_answer_of_the_others() -> None:
    run = oomdoctor.estimate(model="Qwen2.5-7B", gpu="A100", settings={"finetuning": "lora"})
    assert run.estimate.assumptions[0].id == "gpu"
    assert [other.needed.expected > 0 for other in run.otherwise if other.assumption == "gpu"] == [True]


def test_a_file_that_is_no_config_is_told(tmp_path: Path) -> None:
    notes = tmp_path / "notes.yaml"
    notes.write_text("hello: 1\nothers: [2, 3]\n", encoding="utf-8")
    with pytest.raises(UsageError, match="contains no setting of any known framework"):
        oomdoctor.estimate(notes, model="Qwen2.5-7B")


@pytest.mark.parametrize(("written", "elements"), [
    pytest.param(', "reduce_bucket_size": 2e8', 200_000_000, id="a number"),
    pytest.param(', "reduce_bucket_size": "auto"', 3584**2, id="auto: the square of the width"),
    pytest.param("", 500_000_000, id="nothing: DeepSpeed's default"),
])  # fmt: skip
def test_the_bucket_is_what_the_file_says(written: str, elements: int, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("torchrun run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed ds.json --bf16 --do_train\n")
    (tmp_path / "ds.json").write_text(f'{{"zero_optimization": {{"stage": 2{written}}}}}')
    run = oomdoctor.estimate([tmp_path / "run.sh", tmp_path / "ds.json"], gpus=4).estimate
    assert isinstance(run, Estimate)
    assert run.setup.layout.bucket == elements


@pytest.mark.parametrize("name", ["70B", "1.5b", "270M"])
def test_a_bare_number_of_parameters_is_a_model_of_that_size(name: str) -> None:
    needed = oomdoctor.estimate(model=name, gpu="A100-80GB", settings={"finetuning": "lora"})
    assert any(assumption.id == "shape" for assumption in needed.estimate.assumptions)


def test_a_size_with_more_in_its_name_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="nonesuch-70B"):
        oomdoctor.estimate(model="nonesuch-70B", gpu="A100-80GB", settings={"finetuning": "lora"})
