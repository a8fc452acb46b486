"""A plan is one proposal: its titles, its lines, whether it needs a person, what the files cannot hold."""

from __future__ import annotations

import pytest
from config_edits import setting, targets
from config_files import pack
from msgspec.structs import replace
from planning.runs import a_card, a_run

from oomdoctor.case.plan import Measure, Plan, Plans
from oomdoctor.case.settings import RunSettings
from oomdoctor.configs.proposals.from_plans import plan_proposals
from oomdoctor.configs.proposals.proposal import Proposal
from oomdoctor.memory.estimate import estimate

FILES = {"a.yaml": b"stage: sft\nfinetuning_type: lora\nbf16: true\nper_device_train_batch_size: 8\n"}
BATCH = Measure(
    fix="smaller-batch",
    sets=(("micro_batch", 2), ("accumulation", 4)),
    settings=(
        setting("llamafactory", "per_device_train_batch_size", "2", file="a.yaml", line=4),
        setting("llamafactory", "gradient_accumulation_steps", "4"),
    ),
)
LENGTH = Measure(
    fix="shorter-sequences",
    sets=(("sequence_length", 1024),),
    settings=(setting("llamafactory", "cutoff_len", "1024", sets="sequence_length"),),
)


def of(*measures: Measure) -> Proposal:
    found = estimate(a_run())
    plan = Plan(measures=measures, outcome=found, time=1.0, risk="none", effort=0)
    plans = Plans(budget=a_card(), now=found, fits="no", plans=(plan, plan))
    first, second = plan_proposals(plans, targets(FILES), RunSettings(), pack())
    assert second == replace(first, id="plan-2")
    return first


def test_its_measures_are_one_change() -> None:
    found = of(BATCH, LENGTH)
    assert (found.id, found.fits, found.by_hand) == ("plan-1", "yes", ())
    assert [one.key for one in found.changes] == ["per_device_train_batch_size", "gradient_accumulation_steps", "cutoff_len"]
    assert found.title.en.count("; ") == found.title.zh.count("；") == 1


@pytest.mark.parametrize(("measures", "safe"), [
    pytest.param((BATCH,), True, id="only what a tool may do"),
    pytest.param((BATCH, LENGTH), False, id="one measure for a person to decide"),
])  # fmt: skip
def test_it_is_as_safe_as_its_worst_measure(measures: tuple[Measure, ...], safe: bool) -> None:
    assert of(*measures).safe is safe


def test_a_measure_that_has_no_key_is_for_a_person() -> None:
    found = of(BATCH, replace(LENGTH, settings=()))
    assert [one.by_hand for one in found.by_hand] == ["sequence_length: 1024"]
    assert "no known key" in found.by_hand[0].why.en and found.by_hand[0].why.zh


def test_a_file_that_shards_and_offloads_leaves_nothing_to_type() -> None:
    file = setting("llamafactory", "deepspeed", "examples/deepspeed/ds_z2_offload_config.json")
    shard = Measure(fix="zero2-zero3", sets=(("zero_stage", 2),))
    away = Measure(fix="offload-optimizer", sets=(("offload_optimizer", "cpu"),), settings=(file,))
    found = of(shard, away)
    assert found.by_hand == () and [one.path for one in found.files] == ["ds_zero2_offload.json"]
