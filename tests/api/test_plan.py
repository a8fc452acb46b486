"""`oomdoctor.plan` of a run that is told as settings: what a form asks, with no file at all."""

from __future__ import annotations

import pytest

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Plans
from oomdoctor.case.serving import is_of_server
from oomdoctor.errors import UsageError

LORA = {"finetuning": "lora", "micro_batch": 4, "sequence_length": 4096}
CONFIG = "fixtures/compare/today.yaml"


def plans_of(**asked: object) -> Plans[Estimate]:
    """Return the plans of a training run."""
    plans = oomdoctor.plan(gpu="24GB", **asked)  # type: ignore[arg-type]
    assert not is_of_server(plans)
    return plans


def test_settings_are_the_run_where_there_is_no_file() -> None:
    plans = plans_of(model="Qwen3 8B", framework="llamafactory", settings=LORA)
    setup = plans.now.setup
    assert (setup.batch, setup.length, setup.adapters is None) == (4, 4096, False)
    assert {setting.framework for plan in plans.plans for each in plan.measures for setting in each.settings} == {"llamafactory"}


def test_settings_go_before_those_of_a_file() -> None:
    written = plans_of(config=CONFIG).now.setup
    asked = plans_of(config=CONFIG, settings={"micro_batch": written.batch + 1}).now.setup
    assert (asked.batch, asked.length) == (written.batch + 1, written.length)


def test_a_setting_that_the_file_has_too_changes_nothing() -> None:
    written = plans_of(config=CONFIG)
    asked = plans_of(config=CONFIG, settings={"micro_batch": written.now.setup.batch})
    assert asked.now == written.now


def test_a_server_is_planned_as_a_server() -> None:
    plans = oomdoctor.plan(model="Qwen3 32B", gpu="24GB", gpus=4, serve=True, settings={"max_model_len": 32768})
    assert is_of_server(plans)
    assert plans.now.server.length == 32768


def test_a_setting_that_no_run_has_is_refused() -> None:
    with pytest.raises(UsageError, match="no setting is called batch_size"):
        plans_of(model="Qwen3 8B", settings={"batch_size": 4})
