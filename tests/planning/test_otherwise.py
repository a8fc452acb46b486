"""What was assumed, taken the other way: the same answer as when somebody says so, and only where it decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import oomdoctor
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.plan import Otherwise
from oomdoctor.cli.main import cli

SAID: dict[str, Any] = {
    "finetuning": "lora",
    "micro_batch": 1,
    "sequence_length": 2048,
    "gradient_checkpointing": True,
    "optimizer": "adamw_torch",
    "load_bits": 4,
}


def run(without: str = "", gpu: str | None = None, framework: str | None = None, **changed: Any) -> RunEstimate:
    settings = {name: value for name, value in {**SAID, **changed}.items() if name not in without.split()}
    return oomdoctor.estimate(model="Qwen2.5-7B", gpu=gpu, framework=framework, settings=settings)


def other(told: RunEstimate, assumption: str) -> Otherwise | None:
    return next((one for one in told.otherwise if one.assumption == assumption), None)


@pytest.mark.parametrize(("without", "changed"), [
    pytest.param("gradient_checkpointing", {}, id="checkpointing"),
    pytest.param("sequence_length", {"micro_batch": 8}, id="the length"),
    pytest.param("micro_batch", {"sequence_length": 8192}, id="the batch"),
    pytest.param("optimizer load_bits", {"finetuning": "full"}, id="the optimizer"),
    pytest.param("finetuning load_bits", {}, id="what is trained"),
])  # fmt: skip
@pytest.mark.parametrize("gpu", [None, "48GB"])
def test_the_other_way_is_what_the_run_needs_when_somebody_says_so(without: str, changed: dict[str, Any], gpu: str | None) -> None:
    told = run(without, gpu, **changed)
    assert told.otherwise
    for one in told.otherwise:
        if one.assumption in without.split() and one.assumption != "weights":
            said = run(without.replace(one.assumption, ""), gpu, **{**changed, **dict(one.sets)})
            assert (one.needed.expected, one.fits) == (said.needed and said.needed.expected, said.fits)


def test_what_is_said_is_not_assumed() -> None:
    assert run(gpu="24GB").otherwise == ()


def test_a_verdict_that_turns_stands_first_and_is_said() -> None:
    told = run("gradient_checkpointing", "RTX 3090", "axolotl")
    assert (told.fits, told.otherwise[0].assumption, told.otherwise[0].fits, told.otherwise[0].turns) == (
        "no",
        "gradient_checkpointing",
        "yes",
        True,
    )


@pytest.mark.parametrize(("gpu", "fits"), [
    pytest.param("24GB", "yes", id="more than assumed"),
    pytest.param("16GB", "yes", id="on a smaller card"),
])  # fmt: skip
def test_a_limit_fits_and_the_next_length_does_not(gpu: str, fits: str) -> None:
    limit = other(run("sequence_length", gpu), "sequence_length")
    assert limit is not None
    assert limit.is_limit
    tokens = int(dict(limit.sets)["sequence_length"] or 0)
    assert [run(gpu=gpu, sequence_length=size).fits == fits for size in (tokens, tokens + 256)] == [True, False]


def test_what_decides_nothing_is_left_out() -> None:
    """On a card of 80 GB a small model fits with checkpointing and without."""
    told = oomdoctor.estimate(model="Qwen2.5-0.5B", gpu="80GB", settings={**SAID, "gradient_checkpointing": None})
    assert told.fits == "yes"
    assert not any(one.turns for one in told.otherwise)


@pytest.mark.parametrize("gpu", ["24GB", "80GB"])
@pytest.mark.parametrize("framework", [None, "llamafactory"])
def test_with_and_without_a_card_a_run_has_the_same_need(gpu: str, framework: str | None) -> None:
    without, beside = run(framework=framework), run(gpu=gpu, framework=framework)
    assert beside.fit is not None
    assert without.needed == beside.needed == beside.fit.needed
    assert without.estimate == beside.estimate


@pytest.mark.parametrize(("lang", "sentences"), [
    pytest.param("en", ["Not specified, so assumed: gradient checkpointing is off.", "It depends on the settings: with these assumptions, it does not fit.", "With gradient checkpointing on it needs ", " and fits."], id="English"),
    pytest.param("zh", ["以下未说明，按此假设：梯度检查点未开启。", "取决于设置：按下面的假设放不下。", "开启梯度检查点后需要 ", "放得下。"], id="Chinese"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_the_first_lines_say_it(lang: str, sentences: list[str], form: str) -> None:
    options = ["--model", "Qwen2.5-7B", "--method", "qlora", "--batch", "1", "--length", "2048", "--gpu", "24GB", "--framework", "axolotl"]
    text = " ".join(CliRunner().invoke(cli, ["estimate", *options, "--lang", lang, "--format", form]).output.split())
    text = text.replace(" ", "") if lang == "zh" else text
    assert all((part.replace(" ", "") if lang == "zh" else part.strip()) in text for part in sentences)


def test_programs_read_it_too() -> None:
    options = ["--model", "Qwen2.5-7B", "--method", "qlora", "--batch", "1", "--length", "2048", "--gpu", "24GB"]
    report = json.loads(CliRunner().invoke(cli, ["estimate", *options, "--framework", "axolotl", "--format", "json"]).output)
    told = report["otherwise"][0]
    assert (told["assumption"], told["sets"], told["fits"], told["turns"]) == (
        "gradient_checkpointing",
        {"gradient_checkpointing": True},
        "yes",
        True,
    )
    assert report["needed_bytes"] == report["card"]["needed_bytes"]


@pytest.mark.parametrize(("framework", "checkpointing", "is_said"), [
    pytest.param("litgpt", False, True, id="adapters beside two matrices, and every input of one is kept"),
    pytest.param("litgpt", True, False, id="no input is kept"),
    pytest.param("llamafactory", False, False, id="a program that adapts every layer"),
])  # fmt: skip
def test_more_adapters_are_the_other_way_where_they_decide(framework: str, checkpointing: bool, is_said: bool) -> None:
    told = run(framework=framework, gradient_checkpointing=checkpointing)
    found = other(told, "lora_targets")
    assert (found is not None) == is_said
    if found is not None:
        said = run(framework=framework, gradient_checkpointing=checkpointing, lora_targets="all").needed
        assert said is not None
        assert found.needed.expected == said.expected


@pytest.mark.parametrize("framework", ["llamafactory", None])
def test_experts_packed_or_not_are_what_somebody_says(framework: str | None) -> None:
    def mixture(**settings: Any) -> RunEstimate:
        return oomdoctor.estimate(model="Qwen3-30B-A3B", framework=framework, settings={**SAID, "finetuning": "qlora", **settings})

    found = other(mixture(), "experts")
    assert found is not None
    said = mixture(**dict(found.sets)).needed
    assert said is not None
    assert found.needed.expected == said.expected
