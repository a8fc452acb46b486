"""How much of a length is the prompt, and for how many of its tokens there are logits."""

from __future__ import annotations

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.case.event import Value
from oomdoctor.setups.from_log import run_from_log as told
from oomdoctor.setups.from_log import setup_from_log
from oomdoctor.setups.prompts import has_all_logits, prompt_assumptions


@pytest.mark.parametrize(("version", "all_tokens"), [
    pytest.param("4.38.2", True, id="logits of every token"),
    pytest.param("4.45.0", False, id="the first with those of the last one alone"),
    pytest.param("4.44.0.dev0", True, id="before it"),
    pytest.param("5.1.0", False, id="later"),
    pytest.param("main", None, id="no version"),
    pytest.param("4", None, id="half a version"),
    pytest.param(None, None, id="nothing said"),
])  # fmt: skip
def test_the_version_tells(version: str | None, all_tokens: bool | None) -> None:
    assert has_all_logits(version) is all_tokens


def test_a_log_with_its_version_settles_it() -> None:
    log: dict[str, Value] = {"log.model_name_or_path": "Qwen/Qwen2-7B", "log.transformers_version": "4.38.2"}
    known = told(None, log)
    assert known.shape is not None
    assert setup_from_log(known, known.shape)[0].prompt_logits is True


def test_what_is_not_known_is_said_with_its_size() -> None:
    setup = run(task="infer", length=32768)
    said = {one.id: one.text for one in prompt_assumptions(setup)}
    assert "30,720 of the 32,768 tokens" in said["prompt"].en
    assert "26.1 GiB" in said["prompt_logits"].en
    assert "26.1 GiB" in said["prompt_logits"].zh
    assert [one.id for one in prompt_assumptions(replace(setup, prompt_logits=False))] == ["prompt"]
