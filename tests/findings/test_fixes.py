"""Fixes for one run: whose settings, which values, in which order, and what is not proposed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from builtin_rule_set import builtin_rule_set
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from hypothesis import strategies as st

from oomdoctor.advice.fixes import Advice, advice, with_advice
from oomdoctor.advice.settings import ConfigInForce, setting_changes
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.case.settings import ProposedSetting, RunConfig, RunSettings, WrittenSetting
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.findings.engine import findings
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.records.base import TextRecord
from oomdoctor.knowledge.records.condition import EventCondition
from oomdoctor.knowledge.records.fix import FixRecord, SettingRecord
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.report.diagnosis.steps import settings
from oomdoctor.report.wording.phrases import setting_line
from oomdoctor.report.wording.wording import Wording

MIB, GIB = 1 << 20, 1 << 30
FULL_CARD: dict[str, Fact] = {"event.requested_bytes": 300 * MIB, "event.free_bytes": 100 * MIB, "derived.unallocated_share": 0.01}
SHARED = sorted({name for record in load_pack().records(FRAMEWORKS) for name in record.settings})
"""The names that all frameworks share, as configs give them."""
DEEPER = {"deepspeed", "fsdp", "accelerate", *(record.framework for record in load_pack().frameworks if record.always)}
"""What a person may edit below the framework."""


@cache
def pack() -> Pack:
    return load_pack()


@cache
def records() -> tuple[FixRecord, ...]:
    return tuple(record for _, record in builtin_rule_set().fixes)


def known(facts: Mapping[str, Fact], *, program: str = "pytorch", text: str = "CUDA out of memory.") -> KnownFacts:
    root = Event(
        signature="some-message", kind=Kind.DEVICE_OOM, certainty=Certainty.CERTAIN, outcome=Outcome.FAILURE, text=text,
        place=Place("train.log", 0, 1, None), fields={},
    )  # fmt: skip
    return KnownFacts(facts, [root], {"some-message": program}, (root,))


def advised(
    *fixes: str, facts: Mapping[str, Fact], training: RunConfig | None = None, program: str = "pytorch", problem: str = ""
) -> Advice:
    words = TextRecord(en="words", zh="话")
    record = ProblemRecord(
        id=problem, confidence="certain", title=words, why=words, when=EventCondition(), fixes=list(fixes), examples=[], near_misses=[]
    )
    return advice(pack(), record, known(facts, program=program), training)


def lines(found: Sequence[ProposedSetting], lang: str = "en") -> list[str]:
    return [f"{row.value} ({row.note})" if row.note else row.value for row in settings(found, Wording(lang), 99)]


def shown(name: str, facts: Mapping[str, Fact], **more: Any) -> list[str]:
    return [line for fix in advised(name, facts=facts, **more).fixes for line in lines(fix.settings)]


LLAMAFACTORY: dict[str, Fact] = {"training.framework": "llamafactory"}


@pytest.mark.parametrize(("name", "facts", "expected"), [
    pytest.param(
        "smaller-batch",
        {**LLAMAFACTORY, "training.micro_batch": 4, "training.accumulation": 4, "training.world_size": 4},
        ["per_device_train_batch_size: 4 → 1", "gradient_accumulation_steps: 4 → 16 (keeps the effective batch at 64)"],
        id="the accumulation makes up for a smaller batch",
    ),
    pytest.param(
        "smaller-batch",
        {"log.framework": "glm4", "log.per_device_train_batch_size": "2", "log.gradient_accumulation_steps": "8"},
        ["training_args.per_device_train_batch_size: 2 → 1", "training_args.gradient_accumulation_steps: 8 → 16 (keeps 16 samples per card and update)"],
        id="what the log prints under the key counts where no config is known",
    ),
    pytest.param(
        "smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 64, "training.accumulation": 1},
        ["per_device_train_batch_size: 64 → 16", "gradient_accumulation_steps: 1 → 4 (keeps 64 samples per card and update)"],
        id="a large batch becomes a quarter, not one",
    ),
    pytest.param(
        "smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 11, "training.accumulation": 1, "training.world_size": 2},
        ["per_device_train_batch_size: 11 → 2", "gradient_accumulation_steps: 1 → 6 (the effective batch becomes 24, previously 22)"],
        id="where it cannot stay the same the new one is named",
    ),
    pytest.param(
        "smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 4},
        ["per_device_train_batch_size: 4 → 1", "gradient_accumulation_steps: × 4"], id="an unknown accumulation gets the factor",
    ),
    pytest.param(
        "smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 7, "training.accumulation": 2},
        ["per_device_train_batch_size: 7 → 1", "gradient_accumulation_steps: 2 → 14 (keeps 14 samples per card and update)"],
        id="where the number of cards is unknown it speaks of one card",
    ),
    pytest.param("smaller-batch", LLAMAFACTORY, ["per_device_train_batch_size: 1"], id="an unknown batch gets the value alone"),
    pytest.param("smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 1, "training.accumulation": 8}, [], id="a batch of one cannot be smaller"),
    pytest.param(
        "smaller-batch", {**LLAMAFACTORY, "training.micro_batch": 2, "training.zero_stage": 2},
        ["per_device_train_batch_size: 2 → 1", "gradient_accumulation_steps: × 2"], id="what the trainer sets is not shown for DeepSpeed once more",
    ),
    pytest.param(
        "smaller-batch", {"training.framework": "deepspeed", "training.micro_batch": 2},
        ["train_micro_batch_size_per_gpu: 2 → 1", "gradient_accumulation_steps: × 2"], id="DeepSpeed alone has its own key",
    ),
    pytest.param("smaller-batch", {"training.framework": "deepspeed", "training.micro_batch": "auto"}, [], id="auto is set by the layer above"),
    pytest.param(
        "smaller-batch", {"training.framework": "trl", "training.micro_batch": 2},
        ["per_device_train_batch_size: 2 → 1", "gradient_accumulation_steps: × 2"], id="TRL takes the settings of Transformers",
    ),
    pytest.param(
        "smaller-batch", {"log.per_device_train_batch_size": "8"}, [], id="an unknown program gets no key of another",
    ),
    pytest.param("shorter-sequences", {**LLAMAFACTORY, "training.sequence_length": 4096}, ["cutoff_len: 4096 → 2048"], id="the length is halved"),
    pytest.param("shorter-sequences", {**LLAMAFACTORY, "training.sequence_length": "2,048"}, ["cutoff_len: 2,048 → 1024"], id="numbers with commas are numbers"),
    pytest.param("shorter-sequences", {**LLAMAFACTORY, "training.sequence_length": 300}, ["cutoff_len: 300 → 256"], id="it stops at the least length"),
    pytest.param("shorter-sequences", {**LLAMAFACTORY, "training.sequence_length": 256}, [], id="the least length is not halved"),
    pytest.param("shorter-sequences", LLAMAFACTORY, ["cutoff_len (lower than now)"], id="an unknown length gets a direction and no number"),
    pytest.param(
        "shorter-sequences", {"training.framework": "trl", "log.trl_version": "0.9.6"}, ["max_seq_length (lower than now)"], id="TRL before the rename",
    ),
    pytest.param("shorter-sequences", {"training.framework": "trl", "log.trl_version": "1.16.0"}, ["max_length (lower than now)"], id="TRL after the rename"),
    pytest.param(
        "shorter-sequences", {"training.framework": "trl"}, ["max_length (lower than now; from 0.16)", "max_seq_length (lower than now; up to 0.15)"],
        id="an unknown version shows both with their versions",
    ),
    pytest.param("gradient-checkpointing", {**LLAMAFACTORY, "training.gradient_checkpointing": True}, [], id="it is on already"),
    pytest.param("gradient-checkpointing", {**LLAMAFACTORY, "log.gradient_checkpointing": "true"}, [], id="the log says that it is on"),
    pytest.param(
        "gradient-checkpointing", {**LLAMAFACTORY, "training.gradient_checkpointing": False}, ["disable_gradient_checkpointing: false"],
        id="the key is the negation",
    ),
    pytest.param(
        "quantise-4bit-8bit", {**LLAMAFACTORY, "training.load_bits": 16, "log.llamafactory_version": "0.9.5"},
        ["quantization_bit: 4", "quantization_method: bnb"], id="the name of the method follows the version",
    ),
    pytest.param(
        "quantise-4bit-8bit", {**LLAMAFACTORY, "log.quantization_bit": 8, "log.llamafactory_version": "0.9.2"},
        ["quantization_bit: 8 → 4", "quantization_method: bitsandbytes"], id="8 bit becomes 4",
    ),
    pytest.param("quantise-4bit-8bit", {**LLAMAFACTORY, "training.load_bits": 4}, [], id="4 bit is the least"),
    pytest.param("quantise-4bit-8bit", {**LLAMAFACTORY, "training.finetuning": "full"}, [], id="a base that is trained cannot be quantised"),
    pytest.param(
        "fp16-instead-of-bf16", {**LLAMAFACTORY, "training.precision": "bf16", "training.zero_stage": 2, "log.bf16": "true"},
        ["fp16: true", "bf16: true → false", "bf16.enabled: auto", "fp16.enabled: auto"], id="the DeepSpeed file is edited too",
    ),
    pytest.param("optimizer-8bit-paged", {**LLAMAFACTORY, "training.optimizer": "adamw_torch"}, ["optim: adamw_torch → adamw_bnb_8bit"], id="another optimizer"),
    pytest.param("optimizer-8bit-paged", {**LLAMAFACTORY, "training.optimizer": "paged_adamw_8bit"}, [], id="another one of 8 bit does as well"),
    pytest.param("optimizer-8bit-paged", {**LLAMAFACTORY, "training.offload_optimizer": "cpu"}, [], id="state that is not on the card"),
    pytest.param(
        "offload-optimizer", {**LLAMAFACTORY, "log.deepspeed": "my/zero.json"}, ["zero_optimization.offload_optimizer.device: cpu"],
        id="a DeepSpeed file of one's own is edited",
    ),
    pytest.param(
        "offload-optimizer", {**LLAMAFACTORY, "log.deepspeed": "None"}, ["deepspeed: None → examples/deepspeed/ds_z2_offload_config.json"],
        id="without DeepSpeed a file that comes with the framework",
    ),
    pytest.param(
        "zero2-zero3", {**LLAMAFACTORY, "training.zero_stage": 2, "training.world_size": 4, "log.deepspeed": "ds_z2.json"},
        ["deepspeed: ds_z2.json → examples/deepspeed/ds_z3_config.json"], id="stage 2 becomes 3",
    ),
    pytest.param("zero2-zero3", {**LLAMAFACTORY, "training.zero_stage": 3, "training.world_size": 4}, [], id="stage 3 is the last"),
    pytest.param("zero2-zero3", {**LLAMAFACTORY, "training.world_size": 1}, [], id="one card has nothing to share"),
    pytest.param(
        "expandable-segments", {"training.alloc_conf": "max_split_size_mb:128"},
        ["PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True (it was max_split_size_mb:128)"], id="other options stay",
    ),
    pytest.param(
        "expandable-segments", {"training.alloc_conf": "expandable_segments:False,roundup_power2_divisions:[256:1,512:2]"},
        ["PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2],expandable_segments:True "
         "(it was expandable_segments:False,roundup_power2_divisions:[256:1,512:2])"],
        id="the same option is replaced, a list stays whole",
    ),
    pytest.param("expandable-segments", {"training.alloc_conf": "expandable_segments:True"}, [], id="the option is set"),
    pytest.param("expandable-segments", {"log.torch_version": "2.0.1"}, [], id="torch is too old"),
    pytest.param("expandable-segments", {"log.torch_version": "2.5.1+cu124"}, ["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], id="torch knows it"),
    pytest.param("evaluation", {"training.framework": "axolotl", "training.eval_batch": 4}, ["eval_batch_size: 4 → 1"], id="the evaluation batch"),
    pytest.param("fewer-workers", {**LLAMAFACTORY, "training.dataloader_workers": 16}, ["dataloader_num_workers: 16 → 2", "preprocessing_num_workers: 4"], id="fewer workers"),
    pytest.param("fewer-workers", {**LLAMAFACTORY, "training.dataloader_workers": 0}, [], id="no worker cannot be fewer"),
    pytest.param(
        "activation-offload", {"training.framework": "torchtune", "training.gradient_checkpointing": True}, ["enable_activation_offloading: True"],
        id="what goes along is left out where it is set",
    ),
    pytest.param("packing-and-length-grouping", {"log.framework": "transformers", "log.transformers_version": "4.57.3"}, ["group_by_length: true"], id="a patch release is in the range"),
    pytest.param("attention-kernel", {"training.framework": "transformers"}, ['from_pretrained(attn_implementation="sdpa")'], id="an argument in code"),
])  # fmt: skip
def test_the_lines_of_a_fix(name: str, facts: dict[str, Fact], expected: list[str]) -> None:
    assert shown(name, facts) == expected


SERVER = {"event.free_bytes": int(11.83 * GIB), "event.total_bytes": int(47.41 * GIB)}


@pytest.mark.parametrize(("name", "facts", "expected"), [
    pytest.param(
        "lower-serving-share", {"derived.share": 0.9, "derived.lower_share": 0.24}, ["--gpu-memory-utilization 0.9 → 0.24"],
        id="the share that was free at the start",
    ),
    pytest.param("lower-serving-share", {"derived.share": 0.9}, [], id="weights that leave no lower share"),
    pytest.param("lower-serving-share", SERVER, ["--gpu-memory-utilization (lower than now)"], id="what is free after loading says nothing about the start"),
    pytest.param("lower-serving-share", {"training.memory_share": 0.5}, [], id="a small share is not made larger"),
    pytest.param("raise-serving-share", {"training.memory_share": 0.9}, ["--gpu-memory-utilization 0.9 → 0.95"], id="more of the card"),
    pytest.param("raise-serving-share", {"training.memory_share": 0.97}, [], id="a large share is not made smaller"),
    pytest.param(
        "serving-memory", {"derived.fitting_length": 30368, "event.max_model_len": 131072},
        ["--max-model-len 131072 → 30208", "--max-num-seqs (lower than now)", "--max-num-batched-tokens (lower than now)", "--kv-cache-dtype fp8", "--enforce-eager"],
        id="the length that the server says would fit",
    ),
    pytest.param(
        "serving-memory",
        {"derived.fitting_length": 9000, "training.max_num_seqs": 8, "training.max_batched_tokens": 2048, "training.kv_cache_dtype": "fp8",
         "training.enforce_eager": True},
        ["--max-model-len 8960"], id="what is set is not shown",
    ),
    pytest.param(
        "serving-memory", {"derived.fitting_length": 100, "training.max_num_seqs": 8, "training.max_batched_tokens": 2048,
                           "training.kv_cache_dtype": "fp8", "training.enforce_eager": True},
        [], id="where nothing useful would fit no length is named",
    ),
])  # fmt: skip
def test_the_lines_for_a_server(name: str, facts: dict[str, Fact], expected: list[str]) -> None:
    assert shown(name, facts, program="vllm") == expected


def test_a_value_shows_the_file_and_line_where_it_stands() -> None:
    place = WrittenSetting(key="per_device_train_batch_size", value=4, file="sft.yaml", line=12, framework="llamafactory")
    training = RunConfig(framework="llamafactory", settings=RunSettings(micro_batch=4), places={"micro_batch": place})
    (fix,) = advised("smaller-batch", facts={**LLAMAFACTORY, "training.micro_batch": 4}, training=training).fixes
    row = next(settings(fix.settings, Wording("en"), 1))
    assert (row.label, row.value) == ("sft.yaml:12", "per_device_train_batch_size: 4 → 1")


def test_a_setting_is_shown_in_the_layer_where_it_is_written() -> None:
    place = WrittenSetting(key="zero_optimization.stage", value=2, file="ds.json", line=3, framework="deepspeed")
    facts: dict[str, Fact] = {**LLAMAFACTORY, "training.zero_stage": 2, "training.world_size": 2}
    (fix,) = advised("zero2-zero3", facts=facts, training=RunConfig(places={"zero_stage": place})).fixes
    assert lines(fix.settings) == ["zero_optimization.stage: 2 → 3"] and fix.settings[0].file == "ds.json"


READ = WrittenSetting(key="stage", value="sft", file="sft.yaml", line=1, framework="llamafactory")


@pytest.mark.parametrize(("name", "facts", "expected"), [
    pytest.param(
        "smaller-batch", {}, ["per_device_train_batch_size: 2 (the default is 8)", "gradient_accumulation_steps: 4 (keeps 8 samples per card and update)"],
        id="a key that the config does not name has its default",
    ),
    pytest.param("gradient-checkpointing", {}, [], id="LLaMA-Factory checkpoints by itself"),
    pytest.param("gradient-checkpointing", {"training.gradient_checkpointing": False}, ["disable_gradient_checkpointing: false"], id="unless it is told not to"),
    pytest.param("shorter-sequences", {"training.sequence_length": 512}, ["cutoff_len: 512 → 256"], id="what is known is no default"),
])  # fmt: skip
def test_a_config_at_hand_has_defaults(name: str, facts: dict[str, Fact], expected: list[str]) -> None:
    training = RunConfig(framework="llamafactory", written=(READ,))
    assert shown(name, {**LLAMAFACTORY, **facts}, training=training) == expected


def test_a_key_of_one_framework_only_is_found_too() -> None:
    given = WrittenSetting(key="max_input_length", value=1024, file="lora.yaml", line=9, framework="glm4")
    (fix,) = advised(
        "shorter-sequences", facts={"training.framework": "glm4"}, training=RunConfig(framework="glm4", written=(given,))
    ).fixes
    assert lines(fix.settings) == ["max_input_length: 1024 → 512", "max_output_length: 512"] and fix.settings[0].line == 9


def test_the_version_of_the_config_counts() -> None:
    training = RunConfig(framework="trl", version="0.9.6", written=(READ,))
    assert shown("shorter-sequences", {"training.framework": "trl"}, training=training) == ["max_seq_length: 1024"]


ALREADY = [
    pytest.param("smaller-batch", {"training.micro_batch": 1}, ["per_device_train_batch_size: 1"], id="the batch"),
    pytest.param(
        "gradient-checkpointing", {"training.gradient_checkpointing": True}, ["disable_gradient_checkpointing: false"], id="checkpointing"
    ),
]


@pytest.mark.parametrize(("name", "facts", "expected"), ALREADY)
def test_what_is_set_already_is_said(name: str, facts: dict[str, Fact], expected: list[str]) -> None:
    found = advised(name, facts={**LLAMAFACTORY, **facts})
    assert found.fixes == () and [setting_line(one.key, one.to) for one in found.already] == expected


def order(*names: str, facts: Mapping[str, Fact]) -> list[str]:
    return [fix.id for fix in advised(*names, facts={**LLAMAFACTORY, **facts}).fixes]


@pytest.mark.parametrize(("names", "facts", "expected"), [
    pytest.param(["smaller-batch", "shorter-sequences"], {}, ["smaller-batch", "shorter-sequences"], id="the order of the finding"),
    pytest.param(["smaller-model", "fused-cross-entropy"], {}, ["fused-cross-entropy", "smaller-model"], id="of two neighbours the gentler one"),
    pytest.param(
        ["optimizer-8bit-paged", "fused-cross-entropy", "smaller-batch", "shorter-sequences"], {**FULL_CARD, "log.trainable_params": "2,785,280"},
        ["fused-cross-entropy", "smaller-batch", "shorter-sequences", "optimizer-8bit-paged"], id="an adapter has little optimizer state to shrink",
    ),
    pytest.param(
        ["optimizer-8bit-paged", "smaller-batch"], {**FULL_CARD, "log.trainable_params": "7,615,616,512"},
        ["optimizer-8bit-paged", "smaller-batch"], id="full training has much of it",
    ),
    pytest.param(
        ["expandable-segments", "smaller-batch", "shorter-sequences"],
        {**FULL_CARD, "derived.unallocated_bytes": 50 * MIB, "log.torch_version": "2.6.0"},
        ["smaller-batch", "shorter-sequences", "expandable-segments"], id="slack below what is missing does not help",
    ),
    pytest.param(
        ["expandable-segments", "smaller-batch", "shorter-sequences"],
        {**FULL_CARD, "derived.unallocated_bytes": 4 * GIB, "log.torch_version": "2.6.0"},
        ["expandable-segments", "smaller-batch", "shorter-sequences"], id="much slack does",
    ),
])  # fmt: skip
def test_the_order(names: list[str], facts: dict[str, Fact], expected: list[str]) -> None:
    assert order(*names, facts=facts) == expected


@pytest.mark.parametrize(("facts", "expected"), [
    pytest.param({"incident.phase": "model-load"}, ["smaller-model"], id="while weights are loaded there is no batch"),
    pytest.param({"incident.computes": "weight-placement"}, ["smaller-model"], id="while they are moved to the card"),
    pytest.param({"incident.phase": "forward"}, ["smaller-batch", "smaller-model"], id="later there is"),
    pytest.param({"incident.phase": "forward", "incident.computes": "weight-placement"}, ["smaller-batch", "smaller-model"], id="weights moved in a step"),
])  # fmt: skip
def test_what_does_not_exist_yet_is_not_made_smaller(facts: dict[str, Fact], expected: list[str]) -> None:
    assert order("smaller-batch", "smaller-model", facts=facts) == expected


def test_a_setting_is_said_once_in_a_finding() -> None:
    facts: dict[str, Fact] = {
        "incident.inference": "vllm",
        "training.framework": "vllm",
        "derived.fitting_length": 5000,
        "event.max_model_len": 9000,
    }
    fixes = advised("shorter-sequences", "serving-memory", facts=facts).fixes
    keys = [change.key for fix in fixes for change in fix.settings]
    assert keys[0] == "--max-model-len"
    assert len(keys) == len(set(keys)) > 1


@pytest.mark.parametrize(("name", "facts", "size"), [
    pytest.param("quantise-4bit-8bit", {"log.all_params": "8,000,000,000"}, 11_520_000_000, id="weights in 4 bit"),
    pytest.param("optimizer-8bit-paged", {"log.trainable_params": 1_000_000}, 6_000_000, id="optimizer state in 8 bit"),
    pytest.param(
        "zero2-zero3", {"log.all_params": 8_000_000, "log.trainable_params": 0, "training.world_size": 4}, 12_000_000, id="three quarters go to others",
    ),
    pytest.param("zero2-zero3", {"log.all_params": 8_000_000, "log.trainable_params": 0}, None, id="an unknown number of cards"),
    pytest.param(
        "zero2-zero3", {"log.all_params": 8_000_000, "log.trainable_params": 8_000_000, "training.world_size": 4, "training.zero_stage": 2},
        12_000_000, id="stage 2 shares the optimizer state already",
    ),
    pytest.param(
        "optimizer-8bit-paged", {"log.trainable_params": 1_000_000, "training.world_size": 4, "log.zero_stage": 1}, 1_500_000,
        id="each card holds a quarter of the state",
    ),
    pytest.param("optimizer-8bit-paged", {"log.trainable_params": 1_000_000, "log.zero_stage": 1}, None, id="a part of unknown size"),
    pytest.param("optimizer-8bit-paged", {}, None, id="an unknown number of parameters"),
    pytest.param("free-the-card", {"derived.other_processes_bytes": 3 * GIB}, 3 * GIB, id="what the message lists"),
    pytest.param("smaller-batch", {"log.all_params": 8_000_000}, None, id="activations do not follow from the parameters"),
])  # fmt: skip
def test_the_bytes_that_a_fix_frees(name: str, facts: dict[str, Fact], size: int | None) -> None:
    (fix,) = advised(name, facts=facts).fixes
    assert fix.frees_bytes == size


def test_a_need_that_is_unknown_is_named() -> None:
    (fix,) = advised("fsdp-full-shard", facts=LLAMAFACTORY).fixes
    assert [one.en for one in fix.needs] == ["more than one GPU"]
    (fix,) = advised("fsdp-full-shard", facts={**LLAMAFACTORY, "training.world_size": 8}).fixes
    assert fix.needs == ()


@pytest.mark.parametrize(("problem", "facts", "expected"), [
    pytest.param("working-set-fills-card", {**FULL_CARD, "training.accumulation": 8}, ["torch.cuda.empty_cache() in the training loop", "More accumulation steps at the same batch size per device"], id="accumulation is in use"),
    pytest.param("working-set-fills-card", {**FULL_CARD, "training.accumulation": 1}, ["torch.cuda.empty_cache() in the training loop"], id="nobody thinks of accumulation"),
    pytest.param("working-set-fills-card", {"derived.unallocated_share": 0.3}, [], id="there is something to win back"),
    pytest.param("working-set-fills-card", {}, [], id="unknown is no reason to speak"),
    pytest.param("fragmentation", {}, ["A bigger GPU"], id="fragmentation"),
    pytest.param("kv-cache-too-small", {}, ["A lower --gpu-memory-utilization or --mem-fraction-static"], id="the wrong direction"),
    pytest.param("no-such-problem", {}, [], id="a problem without wrong advice"),
])  # fmt: skip
def test_wrong_advice(problem: str, facts: dict[str, Fact], expected: list[str]) -> None:
    assert [one.advice.en for one in advised(facts=facts, problem=problem).not_this] == expected


def test_a_finding_carries_all_of_it() -> None:
    facts: dict[str, Fact] = {
        **LLAMAFACTORY,
        **FULL_CARD,
        "incident.kind": "device-oom",
        "incident.survived": False,
        "training.micro_batch": 1,
    }
    facts_known = known({**facts, "derived.allocated_share": 0.97, "derived.unallocated_bytes": 10 * MIB})
    found = with_advice(findings(pack(), facts_known), pack(), facts_known)
    assert any(isinstance(one, Finding) and one.fixes for one in found)
    assert all("smaller-batch" not in {fix.id for fix in one.fixes} for one in found)


# What is true of every fix.


@pytest.mark.parametrize("record", [pytest.param(one, id=one.id) for one in records()])
def test_every_fix_says_what_it_is(record: FixRecord) -> None:
    texts = [record.title, record.how, *(one.says for one in record.needs)]
    texts += [one for entry in record.not_this for one in (entry.advice, entry.why)]
    texts += [] if record.frees is None else [record.frees.says]
    texts += [] if record.costs is None else [record.costs]
    assert [text.zh for text in texts if not re.search("[\u4e00-\u9fff]", text.zh)] == []
    assert [text for text in texts if re.search("[!！—]", text.en + text.zh)] == []
    assert all(row.source for row in record.settings)
    assert record.harm == "none" or record.costs is not None or record.frees is None
    if record.frees is not None and (record.frees.per_parameter or record.frees.per_trainable):
        assert record.frees.source


@pytest.mark.parametrize("record", [pytest.param(one, id=one.id) for one in records() if one.settings])
def test_every_row_uses_the_words_of_its_fix(record: FixRecord) -> None:
    for row in record.settings:
        assert row.sets is None or row.sets in SHARED
        assert (row.change in ("fitting", "raise")) == bool(row.facts)
        assert row.unit is None or row.change == "raise" or row.example
        assert row.change != "keep-batch" or (row.sets == "accumulation" and row.along)
    assert any(not row.along for row in record.settings)


@cache
def keys(framework: str) -> tuple[tuple[tuple[int, ...], tuple[int, ...], frozenset[str]], ...]:
    """The keys that the packages of a framework know, with the versions that know them: made from its wheels."""
    record = pack().framework(framework)
    if record is None or record.keys is None:
        return ()
    known = [(numbers(span.since), numbers(span.until), frozenset(span.names.lower().split())) for span in record.keys.spans]
    more = frozenset(name.lower() for name in record.extra)
    shared = [one for base in record.shares for one in keys(base)]
    return (*known, ((), (), more), *shared)


def numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(one) for one in version.split(".")) if version else ()


NOT_IN_TABLES = {
    ("deepspeed", "activation_checkpointing.cpu_checkpointing"),  # its own dict, read apart from the config models
    ("llamafactory", "FORCE_TORCHRUN"),  # a variable of its launcher
    ("sglang", "SGLANG_ENABLE_LOGITS_PROCESSER_CHUNK"),  # variables of servers, which are no options
    ("sglang", "SGLANG_LOGITS_PROCESSER_CHUNK_SIZE"),
    ("ms-swift", "FPS_MAX_FRAMES"),  # a variable of its templates
    ("transformers", "preprocessing_num_workers"),  # of its example scripts
    ("vllm", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"),
    ("transformers", "accelerator_config.gradient_accumulation_kwargs.sync_each_batch"),  # of accelerate, in a dict that it is handed
}
TABLED = ("transformers", "llamafactory", "trl", "axolotl", "ms-swift", "deepspeed", "accelerate", "vllm", "sglang")


def test_every_key_is_one_that_the_framework_knows() -> None:
    rows = [(one.id, row) for one in records() for row in one.settings if row.framework in TABLED]
    assert [(fix, row.framework, row.key) for fix, row in rows if not is_known_key(row)] == []


def is_known_key(row: SettingRecord) -> bool:
    if "(" in row.key or " " in row.key or (row.framework, row.key) in NOT_IN_TABLES:
        return True
    name = row.key.split(".")[-1].lstrip("-").replace("-", "_").lower()
    since, until = numbers(row.since), numbers(row.until)
    return any(
        name in names and (not last or not since or last >= since) and (not first or not until or first[: len(until)] <= until)
        for first, last, names in keys(row.framework)
    )


KNOBS = {
    "micro_batch_and_accumulation": "smaller-batch", "auto_batch_size": "auto-batch-size", "gradient_checkpointing": "gradient-checkpointing",
    "zero2_zero3": "zero2-zero3", "offload_optimizer": "offload-optimizer", "offload_params": "offload-params",
    "fsdp_full_shard": "fsdp-full-shard", "quantise_4bit_8bit": "quantise-4bit-8bit", "lora_rank_targets": "lora-rank-targets",
    "half_precision": "half-precision", "optimizer_8bit_paged": "optimizer-8bit-paged", "sequence_length": "shorter-sequences",
    "packing_and_length_grouping": "packing-and-length-grouping", "fused_cross_entropy": "fused-cross-entropy",
    "attention_kernel": "attention-kernel", "evaluation": "evaluation", "expandable_segments": "expandable-segments", "empty_cache": "empty-cache",
    "activation_offload": "activation-offload", "serving_memory": "serving-memory", "host_ram_workers_shm": "fewer-workers", "gpu_cap": "gpu-cap",
}  # fmt: skip


def test_every_measure_has_a_fix() -> None:
    assert set(KNOBS.values()) <= {one.id for one in records()}


# Properties.

SETTINGS = runs(deadline=None, suppress_health_check=[HealthCheck.too_slow])

VALUES = st.one_of(
    st.integers(), st.floats(), st.floats(0, 1, allow_nan=False).map(lambda one: round(one, 3)), st.booleans(),
    st.sampled_from(["auto", "none", "adamw_torch", "paged_adamw_8bit", "eager", "sdpa", "bf16", "full", "lora", "cpu", "fp8"]),
    st.lists(st.sampled_from(["max_split_size_mb:64", "expandable_segments:False", "backend:native", "", "a:[1,2]"])).map(",".join),
    st.text(max_size=30),
)  # fmt: skip
FACTS = st.dictionaries(st.sampled_from([f"training.{name}" for name in SHARED]), VALUES, max_size=12)


@SETTINGS
@given(st.sampled_from([one for one in records() if one.settings]), FACTS)
def test_what_was_changed_is_not_proposed_again(record: FixRecord, facts: dict[str, Fact]) -> None:
    """A change that halves goes on until it reaches its bound; all others are made once."""
    rows = [row for row in record.settings if row.sets and row.change != "keep-batch"]
    for row in rows:
        own = dict(facts)
        for turn in range(25):
            changing = [one for one in setting_changes([row], own, ConfigInForce()) if not one.in_force]
            if not changing or changing[0].setting.direction is not None:
                break
            assert turn == 0 or row.change == "divide"
            to = changing[0].setting.to
            own[f"training.{row.sets}"] = row.means if row.means and to == row.to else to
        else:
            pytest.fail("it never ends")


@SETTINGS
@given(st.integers(1, 4096), st.integers(1, 512), st.integers(1, 64))
def test_the_effective_batch_never_shrinks(micro: int, steps: int, cards: int) -> None:
    facts: dict[str, Fact] = {**LLAMAFACTORY, "training.micro_batch": micro, "training.accumulation": steps, "training.world_size": cards}
    found = advised("smaller-batch", facts=facts).fixes
    if micro == 1:
        assert found == ()
        return
    batch, accumulation = found[0].settings
    assert 1 <= int(batch.to) < micro
    assert 0 <= int(batch.to) * int(accumulation.to) - micro * steps < int(batch.to)


@SETTINGS
@given(FACTS, st.sampled_from([one.id for one in records()]), st.sampled_from([None, "llamafactory", "vllm", "deepspeed", "unheard-of"]))
def test_any_value_is_met_with_calm(facts: dict[str, Fact], name: str, framework: str | None) -> None:
    found = advised(name, facts=facts if framework is None else {**facts, "training.framework": framework})
    for fix in found.fixes:
        assert all(one.before is None or one.before != one.to for one in fix.settings)
        assert framework is None or {one.framework for one in fix.settings} <= {framework, *DEEPER}
        assert lines(fix.settings, "zh") is not None
