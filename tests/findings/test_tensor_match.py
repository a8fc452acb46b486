"""A failed request read as a product of the run's own dimensions, and what falls on a step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.findings.failure_step import failure_step
from oomdoctor.findings.tensor_match import Dimensions, tensor_matches
from oomdoctor.knowledge.tables.models import model_row
from oomdoctor.units import GIB, MIB

MODEL = Dimensions(vocab=151_552, hidden=4096, parameters=9_399_951_360)


def printed(size: int) -> int:
    """The size as a message prints it, with two decimals."""
    unit = GIB if size >= GIB else MIB
    return int(round(size / unit, 2) * unit)


@pytest.mark.parametrize(("requested", "batch", "length", "kind", "text"), [
    pytest.param(printed(4 * 1024 * 151_552 * 4), 4, 1024, "logits", "4 x 1024 x 151552 x 4", id="float32 logits of a known batch"),
    pytest.param(printed(2 * 2048 * 151_552 * 2), 2, 2048, "logits", "2 x 2048 x 151552 x 2", id="logits in 16 bits"),
    pytest.param(printed(8 * 4096 * 4096 * 2), 8, 4096, "hidden", "8 x 4096 x 4096 x 2", id="one activation of a layer"),
    pytest.param(printed(9_399_951_360 * 4 // 8), None, None, "parameters", "9399951360 x 2 / 4", id="a share of the parameters; an eighth in float32 is a quarter in 16 bits"),
    pytest.param(printed(64 * 151_552 * 4), None, None, "logits", "64 x 151552 x 4", id="a size in MiB is exact enough without the batch"),
])  # fmt: skip
def test_a_request_is_read_as_a_tensor(requested: int, batch: int | None, length: int | None, kind: str, text: str) -> None:
    first = tensor_matches(requested, MODEL, batch, length)[0]
    assert (first.kind, first.text) == (kind, text)


@pytest.mark.parametrize(("requested", "batch", "length"), [
    pytest.param(int(1.37 * GIB), 4, 1024, id="another size than batch and length give"),
    pytest.param(int(3.33 * GIB), None, None, id="gigabytes with two decimals fit any number of tokens"),
    pytest.param(20 * MIB, None, None, id="a buffer of the allocator"),
])  # fmt: skip
def test_what_is_no_tensor_is_not_read_as_one(requested: int, batch: int | None, length: int | None) -> None:
    assert tensor_matches(requested, MODEL, batch, length) == ()


@given(st.integers(1, 64), st.integers(64, 32768), st.sampled_from([2, 4]))
def test_the_logits_of_a_batch_are_always_recognised(batch: int, length: int, size: int) -> None:
    matches = tensor_matches(printed(batch * length * 151_552 * size), MODEL, batch, length)
    assert any(match.kind == "logits" and match.bytes == batch * length * 151_552 * size for match in matches)


@given(st.integers(1, 1 << 50), st.none() | st.integers(1, 512), st.none() | st.integers(1, 1 << 20))
def test_every_reading_meets_the_request(requested: int, batch: int | None, length: int | None) -> None:
    for match in tensor_matches(requested, MODEL, batch, length):
        assert abs(match.bytes - requested) <= max(GIB * 0.00501, requested * 0.002)


@pytest.mark.parametrize(("name", "known"), [
    ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B"),
    ("/data/models/Qwen/Qwen2___5-7B", "Qwen/Qwen2.5-7B"),
    ("unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "Qwen/Qwen2.5-7B"),
    ("THUDM/glm-4-9b-chat", "zai-org/glm-4-9b-chat"),
    (r"D:\models\chatglm3-6b", "zai-org/chatglm3-6b"),
    ("~/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd6066d109eabc6255188de91218", "Qwen/Qwen3-8B"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4/", "Qwen/Qwen2.5-7B"),
    ("our-own-model-7b", None), ("", None), ("/", None), ("checkpoint-500", None),
])  # fmt: skip
def test_a_model_is_found_by_the_names_that_people_give_it(name: str, known: str | None) -> None:
    row = model_row(name)
    assert (row.name if row else None) == known


@pytest.mark.parametrize(("step", "settings", "expected"), [
    pytest.param(500, {"training.eval_steps": 500}, {"derived.step_is_eval": True}, id="the step of an evaluation"),
    pytest.param(501, {"training.eval_steps": 500}, {"derived.step_is_eval": False}, id="the step after it"),
    pytest.param(200, {"log.save_steps": "100"}, {"derived.step_is_save": True}, id="a save that the log's own arguments announce"),
    pytest.param(0, {"training.save_steps": 100}, {"derived.step_is_first": True, "derived.step_is_save": False}, id="nothing was done yet"),
    pytest.param(1900, {"training.eval_steps": 0.1}, {"derived.step_is_late": True}, id="a share of unknown steps says nothing"),
])  # fmt: skip
def test_what_falls_on_a_step(step: int, settings: dict[str, Any], expected: dict[str, Any]) -> None:
    facts = failure_step(step, settings)
    assert {name: facts.get(name) for name in expected} == expected
    assert ("derived.step_is_eval" in facts) == ("training.eval_steps" in settings and settings["training.eval_steps"] != 0.1)


def test_without_progress_nothing_is_known_of_the_step() -> None:
    assert failure_step(None, {"training.eval_steps": 500}) == {}
