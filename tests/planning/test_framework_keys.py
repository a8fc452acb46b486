"""Whose keys a plan is written in, and what a framework has."""

from __future__ import annotations

import pytest

from oomdoctor.case.plan import Measure
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.planning.framework_keys import measure_keys


@pytest.mark.parametrize(("framework", "there", "not_there"), [
    pytest.param(None, ["zero2-zero3", "quantise-4bit-8bit", "paged-optimizer"], ["context-parallel", "tensor-parallel", "optimizer-in-backward"],
                 id="an unknown script does what a layer or a switch can do"),
    pytest.param("llamafactory", ["zero2-zero3", "frozen-embeddings", "eval-accumulation"], ["context-parallel", "tensor-parallel", "pipeline-parallel"],
                 id="LLaMA-Factory shards and does not split"),
    pytest.param("axolotl", ["context-parallel", "tensor-parallel"], ["pipeline-parallel", "optimizer-in-backward"], id="Axolotl splits samples"),
    pytest.param("ms-swift", ["context-parallel"], ["tensor-parallel", "pipeline-parallel", "optimizer-in-backward"], id="ms-swift without Megatron"),
    pytest.param("torchtune", ["optimizer-in-backward", "tensor-parallel"], ["context-parallel", "zero2-zero3"], id="torchtune has its own ways"),
    pytest.param("torchtitan", ["context-parallel", "tensor-parallel", "pipeline-parallel"], ["quantise-4bit-8bit"], id="torchtitan has all three"),
])  # fmt: skip
def test_what_a_framework_has(framework: str | None, there: list[str], not_there: list[str]) -> None:
    keys = measure_keys(load_pack(), None, {}, framework)
    assert [fix for fix in there if not keys.has(fix)] == []
    assert [fix for fix in not_there if keys.has(fix)] == []


@pytest.mark.parametrize(("facts", "there"), [
    pytest.param({"training.fsdp_version": 2}, True, id="FSDP2"),
    pytest.param({"training.zero_stage": 3}, True, id="DeepSpeed"),
    pytest.param({"training.fsdp_version": 1}, False, id="FSDP1"),
    pytest.param({}, False, id="neither"),
])  # fmt: skip
def test_the_trainer_splits_samples_with_the_layers_that_can(facts: dict[str, int], there: bool) -> None:
    assert measure_keys(load_pack(), None, facts, "transformers").has("context-parallel") is there


@pytest.mark.parametrize(("framework", "measure", "expected"), [
    pytest.param("llamafactory", Measure(fix="zero2-zero3", sets=(("zero_stage", 2),)), {"deepspeed": "examples/deepspeed/ds_z2_config.json"},
                 id="another stage has another file"),
    pytest.param("glm4", Measure(fix="zero2-zero3", sets=(("zero_stage", 3),)), {"training_args.deepspeed": "configs/ds_zero_3.json"}, id="its own key"),
    pytest.param("axolotl", Measure(fix="offload-params", sets=(("fsdp_offload", True),)), {"fsdp_config.offload_params": "true"},
                 id="what is offloaded by FSDP is not told DeepSpeed"),
    pytest.param("transformers", Measure(fix="smaller-zero-buffers", sets=(("zero_live", 100_000_000),)),
                 {"zero_optimization.stage3_max_live_parameters": "100000000", "zero_optimization.stage3_max_reuse_distance": "100000000"},
                 id="buffers stand in DeepSpeed's file"),
])  # fmt: skip
def test_a_measure_in_the_keys_of_the_run(framework: str, measure: Measure, expected: dict[str, str]) -> None:
    keys = measure_keys(load_pack(), None, {}, framework)
    assert {setting.key: setting.to for setting in keys.of_measure(measure).settings} == expected
