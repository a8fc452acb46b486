"""Settings that somebody gives: by name or as a structure, and never passed over in silence."""

from __future__ import annotations

import pytest

import oomdoctor
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
    with pytest.raises(UsageError, match="--gpu RTX 12345: not known"):
        oomdoctor.estimate(model="Qwen2.5-7B", gpu="RTX 12345")
