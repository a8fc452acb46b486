"""The format of a checkpoint as options and names say it."""

from __future__ import annotations

import pytest
from memory.runs import known

from oomdoctor.setups.weights_said import weights_said


@pytest.mark.parametrize(("stated", "expected"), [
    pytest.param(("modelopt", "org/base-32b"), "fp8", id="an option of NVIDIA's optimizer, whose first format is fp8"),
    pytest.param(("modelopt", "org/base-32b-NVFP4"), "nvfp4", id="the name says more than it"),
    pytest.param(("modelopt_fp4", "org/base-32b-FP8"), "fp8", id="whatever the word: the checkpoint decides"),
    pytest.param(("modelopt_fp4", "org/base-32b"), "nvfp4", id="and without a name the word"),
    pytest.param(("awq", "org/base-32b-FP8"), "awq-int4", id="any other option goes before the name"),
    pytest.param((None, "org/base-32b"), None, id="nothing says one"),
])  # fmt: skip
def test_who_says_the_format_of_weights(stated: tuple[str | None, ...], expected: str | None) -> None:
    found = weights_said(known("Qwen/Qwen3-8B"), *stated)
    assert (None if found is None else found.name) == expected


@pytest.mark.parametrize(("name", "gb"), [("DeepSeek-V4-Flash", 160), ("DeepSeek-V4-Flash-Base", 290), ("DeepSeek-V4-Pro-Base", 1600)])
def test_base_models_of_deepseek_v4_have_experts_in_eight_bits(name: str, gb: int) -> None:
    shape = known(f"deepseek-ai/{name}")
    found = weights_said(shape, name)
    assert found is not None
    assert found.bytes_per_param * 284e9 * (5.63 if "Pro" in name else 1) == pytest.approx(gb * 1e9, rel=0.1)


@pytest.mark.parametrize(("option", "expected"), [
    pytest.param("deepseek_v4_fp8", "mxfp4", id="a word for whatever the checkpoint has"),
    pytest.param("modelopt", "mxfp4", id="and another"),
    pytest.param("w8a8", "w8a8", id="an option for a checkpoint of another kind"),
])  # fmt: skip
def test_a_config_goes_before_an_option_that_stands_for_it(option: str, expected: str) -> None:
    found = weights_said(known("deepseek-ai/DeepSeek-V4-Flash"), option, "deepseek-ai/DeepSeek-V4-Flash")
    assert found is not None
    assert found.name == expected
