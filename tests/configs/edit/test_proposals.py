"""Fixes become changes of the right file, block and command, or lines for a person, or new files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from builtin_rule_set import builtin_rule_set
from config_edits import fix, judge, nothing_there, setting, sheets, targets
from config_files import pack

from oomdoctor.case.settings import ProposedSetting, RunSettings, Scalar
from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.proposals.apply import AppliedProposals, apply_proposals
from oomdoctor.configs.proposals.proposal import Proposal, fix_proposal
from oomdoctor.knowledge.records.template import TemplateRecord

LLAMAFACTORY = b"stage: sft\nfinetuning_type: lora\nbf16: true\nper_device_train_batch_size: 8\n"
GLM4 = b"training_args:\n  output_dir: o\n  per_device_train_batch_size: 8\npeft_config:\n  peft_type: LORA\n  r: 8\n"
DEEPSPEED = b'{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}\n'
HF_INSIDE = b'{"output_dir": "o", "per_device_train_batch_size": 8, "deepspeed": {"zero_optimization": {"stage": 2}}}\n'
SCRIPT = b"export CUDA_VISIBLE_DEVICES=0\nvllm serve m --max-model-len 4096\n"
RULES = builtin_rule_set()
TEMPLATES = [pytest.param(one, id=one.id) for _, one in RULES.templates]


def of(files: dict[str, bytes], *settings: ProposedSetting, **run: Scalar) -> Proposal:
    return fix_proposal(fix(*settings), targets(files), RunSettings().with_values(run), pack())


def done(files: dict[str, bytes], *proposals: Proposal) -> AppliedProposals:
    return apply_proposals(files, proposals, judge({}), nothing_there)


@pytest.mark.parametrize(("files", "asked", "file", "key"), [
    pytest.param({"a.yaml": LLAMAFACTORY}, setting("llamafactory", "lora_rank", "8"), "a.yaml", "lora_rank", id="a key of the framework itself"),
    pytest.param({"a.yaml": LLAMAFACTORY}, setting("llamafactory", "per_device_train_batch_size", "2", file="a.yaml", line=4), "a.yaml", "per_device_train_batch_size", id="a key that stands there"),
    pytest.param({"a.yaml": GLM4}, setting("glm4", "training_args.optim", "adamw_bnb_8bit"), "a.yaml", "training_args.optim", id="a key with its block"),
    pytest.param({"a.yaml": GLM4}, setting("transformers", "optim", "adamw_bnb_8bit"), "a.yaml", "training_args.optim", id="a shared key goes into the block for shared keys"),
    pytest.param({"a.yaml": LLAMAFACTORY, "d.json": DEEPSPEED}, setting("deepspeed", "zero_optimization.stage", "3"), "d.json", "zero_optimization.stage", id="a DeepSpeed key into the DeepSpeed file"),
    pytest.param({"a.json": HF_INSIDE}, setting("deepspeed", "zero_optimization.stage", "3"), "a.json", "deepspeed.zero_optimization.stage", id="a DeepSpeed key inside of a trainer's file"),
    pytest.param({"a.sh": SCRIPT}, setting("vllm", "--max-model-len", "2048"), "a.sh", "--max-model-len", id="an option of a command"),
    pytest.param({"a.sh": SCRIPT}, setting("environment", "CUDA_VISIBLE_DEVICES", "1"), "a.sh", "CUDA_VISIBLE_DEVICES", id="a variable that a script sets"),
    pytest.param({"a.yaml": LLAMAFACTORY, "a.sh": SCRIPT}, setting("environment", "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), "a.sh", "PYTORCH_CUDA_ALLOC_CONF", id="a new variable goes into the script"),
])  # fmt: skip
def test_a_setting_goes_where_its_program_reads_it(files: dict[str, bytes], asked: ProposedSetting, file: str, key: str) -> None:
    found = of(files, asked)
    assert [(one.file, one.key) for one in found.changes] == [(file, key)] and found.by_hand == ()
    assert done(files, found).steps[0].made


@pytest.mark.parametrize(("asked", "line", "why"), [
    pytest.param(setting("environment", "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "none of these files is a script", id="a variable without a script"),
    pytest.param(setting("unsloth", "SFTConfig(optim)", '"adamw_8bit"'), 'SFTConfig(optim="adamw_8bit")', "in code", id="an argument in code"),
    pytest.param(setting("environment", "docker run --shm-size", "16g"), "docker run --shm-size 16g", "in a command", id="an option of docker"),
    pytest.param(setting("deepspeed", "zero_optimization.stage", "3"), "zero_optimization.stage: 3", "none of these files belongs to deepspeed", id="a program without a file"),
    pytest.param(setting("llamafactory", "output_dir", "a new folder", example=True), "output_dir: a new folder", "you have to choose the value", id="a value that is an example"),
    pytest.param(setting("llamafactory", "gradient_accumulation_steps", "× 4"), "gradient_accumulation_steps: × 4", "the current value is unknown", id="a factor of what is not known"),
])  # fmt: skip
def test_what_no_file_takes_is_a_line_to_type(asked: ProposedSetting, line: str, why: str) -> None:
    found = of({"a.yaml": LLAMAFACTORY}, asked)
    assert found.changes == () and [one.by_hand for one in found.by_hand] == [line]
    assert why in found.by_hand[0].why.en


def test_a_value_that_depends_on_the_version_is_for_a_person() -> None:
    found = of(
        {"a.yaml": LLAMAFACTORY},
        *(setting("llamafactory", "quantization_method", one, dated=True) for one in ("bnb", "bitsandbytes")),
        setting("llamafactory", "quantization_bit", "4"),
    )
    assert [one.key for one in found.changes] == ["quantization_bit"]
    assert [one.by_hand for one in found.by_hand] == ["quantization_method: bnb", "quantization_method: bitsandbytes"]


def test_of_two_names_for_one_thing_the_one_that_the_file_has_is_changed() -> None:
    files = {"a.yaml": b"stage: sft\nfinetuning_type: lora\nnew_name: 9\n"}
    old = setting("llamafactory", "old_name", "4", sets="sequence_length", dated=True)
    new = setting("llamafactory", "new_name", "4", sets="sequence_length", dated=True, file="a.yaml", line=3)
    found = of(files, old, new)
    assert [one.key for one in found.changes] == ["new_name"] and found.by_hand == ()


@pytest.mark.parametrize(("file", "text", "to", "after"), [
    pytest.param("a.json", b'{"output_dir": "o", "bf16": true}', "{offload: true}", b'{"output_dir": "o", "bf16": true, "k": {"offload": true}}', id="as JSON in JSON"),
    pytest.param("a.sh", b"python t.py --output_dir o\n", "{offload: true}", b"python t.py --output_dir o --k '{\"offload\": true}'\n", id="as JSON in a command"),
    pytest.param("a.yaml", b"output_dir: o\n", "{offload: true}", b"output_dir: o\nk: {offload: true}\n", id="as it is in YAML"),
])  # fmt: skip
def test_a_block_as_a_value(file: str, text: bytes, to: str, after: bytes) -> None:
    change = ConfigChange(file=file, key="k", to=to)
    assert patch(file, text, [change]).data == after
    assert patch(file, after, [change]).already == (change,)


def test_accumulation_is_written_below_the_batch() -> None:
    found = of(
        {"a.yaml": LLAMAFACTORY + b"output_dir: o\n"},
        setting("llamafactory", "per_device_train_batch_size", "2", file="a.yaml", line=4),
        setting("llamafactory", "gradient_accumulation_steps", "4"),
    )
    assert (
        done({"a.yaml": LLAMAFACTORY + b"output_dir: o\n"}, found)
        .files["a.yaml"]
        .endswith(b"size: 2\ngradient_accumulation_steps: 4\noutput_dir: o\n")
    )


def test_a_fix_is_made_as_a_whole_or_not_at_all() -> None:
    files = {"a.yaml": b"stage: sft\nfinetuning_type: lora\nlora_target: [q]\n"}
    settled = done(files, of(files, setting("llamafactory", "lora_rank", "8"), setting("llamafactory", "lora_target", "all")))
    assert settled.files == {} and settled.steps[0].left
    assert "a list" in settled.steps[0].refusals[0].why.en


def test_the_earlier_of_two_fixes_decides() -> None:
    files = {"a.yaml": LLAMAFACTORY}
    first, second = (
        fix_proposal(fix(setting("llamafactory", "cutoff_len", to), id=name), targets(files), RunSettings(), pack())
        for name, to in (("one", "1024"), ("two", "512"))
    )
    settled = done(files, first, second)
    assert b"cutoff_len: 1024\n" in settled.files["a.yaml"]
    assert "one sets this" in settled.steps[1].refusals[0].why.en


def test_a_change_that_would_break_the_config_is_left_out() -> None:
    files = {"a.yaml": LLAMAFACTORY}
    settled = done(files, of(files, setting("llamafactory", "fp16", "true")))
    assert settled.files == {} and "bf16" in settled.steps[0].refusals[0].why.en


def test_a_value_that_was_changed_since_the_run_died_stays() -> None:
    files, older = {"a.yaml": LLAMAFACTORY.replace(b"8", b"3")}, {"a.yaml": LLAMAFACTORY}
    proposal = of(files, setting("llamafactory", "per_device_train_batch_size", "2"))
    assert apply_proposals(files, [proposal], judge({}), nothing_there, older).steps[0].refusals
    assert apply_proposals({"a.yaml": LLAMAFACTORY.replace(b"8", b"2")}, [proposal], judge({}), nothing_there, older).steps[0].already


ZERO3 = setting("llamafactory", "deepspeed", "examples/deepspeed/ds_z3_config.json")


def test_a_file_that_a_fix_needs_is_made_beside_the_config() -> None:
    files = {"runs/a.yaml": LLAMAFACTORY}
    found = of(files, ZERO3)
    settled = done(files, found)
    assert b"deepspeed: runs/ds_zero3.json\n" in settled.files["runs/a.yaml"]
    made = json.loads(settled.files["runs/ds_zero3.json"])
    assert (made["zero_optimization"]["stage"], made["bf16"]["enabled"], made["fp16"]["enabled"]) == (3, "auto", "auto")
    assert found.launch == ("FORCE_TORCHRUN=1 llamafactory-cli train runs/a.yaml",)


def test_a_file_that_is_there_is_named_and_not_made(tmp_path: Path) -> None:
    there = tmp_path / "examples" / "deepspeed" / "ds_z3_config.json"
    there.parent.mkdir(parents=True)
    there.write_bytes(DEEPSPEED)
    found = of({str(tmp_path / "a.yaml"): LLAMAFACTORY}, ZERO3)
    assert found.files == () and found.changes[0].to == "examples/deepspeed/ds_z3_config.json"


def test_a_file_of_that_name_is_never_overwritten() -> None:
    files = {"a.yaml": LLAMAFACTORY}
    proposal = of(files, ZERO3)
    settled = apply_proposals(files, [proposal], judge({}), lambda path: b"{}" if path == "ds_zero3.json" else None)
    assert settled.files == {} and "not overwritten" in settled.steps[0].refusals[0].why.en
    same = proposal.files[0].text.encode()
    assert list(apply_proposals(files, [proposal], judge({}), lambda _: same).files) == ["a.yaml"]


FSDP = setting("llamafactory", "accelerate launch --config_file", "examples/accelerate/fsdp_config.yaml")


def test_an_accelerate_file_has_the_cards_and_the_precision_of_the_run() -> None:
    files = {"a.yaml": LLAMAFACTORY}
    settled = done(files, of(files, FSDP, world_size=4, precision="bf16"))
    made = yaml.safe_load(settled.files["accelerate_fsdp.yaml"])
    assert (made["num_processes"], made["mixed_precision"], made["distributed_type"]) == (4, "bf16", "FSDP")
    assert settled.steps[0].proposal.launch == ("accelerate launch --config_file accelerate_fsdp.yaml src/train.py a.yaml",)


@pytest.mark.parametrize(("run", "why"), [
    pytest.param({"precision": "bf16"}, "number of cards", id="no number of cards"),
    pytest.param({"world_size": 2}, "precision", id="no precision"),
    pytest.param({"world_size": 2, "precision": "bf16\nuse_cpu: true"}, "precision", id="a precision that is none"),
])  # fmt: skip
def test_what_is_not_known_is_not_put_into_an_accelerate_file(run: dict[str, Scalar], why: str) -> None:
    found = of({"a.yaml": LLAMAFACTORY}, FSDP, **run)
    assert found.files == () and why in found.by_hand[0].why.en


def test_a_run_is_sharded_by_one_program() -> None:
    files = {"a.yaml": LLAMAFACTORY}
    run = RunSettings(world_size=4, precision="bf16")
    settled = done(
        files, *(fix_proposal(fix(one, id=name), targets(files), run, pack()) for name, one in (("zero", ZERO3), ("fsdp", FSDP)))
    )
    assert set(settled.files) == {"a.yaml", "ds_zero3.json"} and settled.steps[1].refusals


@pytest.mark.parametrize(("sets", "run"), [
    pytest.param("zero_stage", {"fsdp": True}, id="DeepSpeed for a run with FSDP"),
    pytest.param("fsdp", {"zero_stage": 2}, id="FSDP for a run with DeepSpeed"),
])  # fmt: skip
def test_what_another_program_shards_already_is_left_to_it(sets: str, run: dict[str, Scalar]) -> None:
    found = of({"a.yaml": LLAMAFACTORY}, setting("llamafactory", "a_key", "1", sets=sets), setting("llamafactory", "along", "2"), **run)
    assert (found.changes, len(found.by_hand)) == ((), 2) and "already" in found.by_hand[0].why.en


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_a_config_without_complaints(template: TemplateRecord) -> None:
    data = template.text.replace("{cards}", "2").replace("{precision}", "bf16").encode()
    (yaml.safe_load if template.file.endswith(".yaml") else json.loads)(data)
    assert [one.framework for one in targets({template.file: data}).configs] in (["deepspeed"], ["accelerate"])
    assert [one.id for one in judge({})({template.file: data})] == []
    assert sheets({template.file: data})


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_serves_keys_that_fixes_have(template: TemplateRecord) -> None:
    rows = {(row.framework, row.key) for _, one in RULES.fixes for row in one.settings}
    assert [one for one in template.serves if (one.framework, one.key) not in rows] == []


def test_every_file_that_a_fix_names_has_its_template() -> None:
    served = {(one.framework, one.to) for _, template in RULES.templates for one in template.serves}
    named = {(row.framework, row.to) for _, one in RULES.fixes for row in one.settings if row.to.endswith((".json", ".yaml"))}
    assert named <= served
