"""What complaints say to write: made wherever it can be, and then the complaint is gone."""

from __future__ import annotations

import pytest
from builtin_rule_set import builtin_rule_set
from config_edits import judge, nothing_there, targets

from oomdoctor.case.settings import ConfigIssue
from oomdoctor.configs.proposals.apply import apply_proposals
from oomdoctor.configs.proposals.proposal import issue_proposal
from oomdoctor.knowledge.records.check import CheckExample

EXAMPLES = [
    pytest.param(check.id, example, id=f"{check.id}: {example.name}")
    for _, check in builtin_rule_set().checks
    if check.instead is not None
    for example in check.examples
]
BY_HAND = {
    "offload-param-without-stage-3: in an accelerate file": "the accelerate file has another name for the stage",
    "deepspeed-optimizer-beside-optim: an 8-bit optimizer that never runs": "a whole block is to go",
    "axolotl-batch-size-and-accumulation: both": "the complaint asks for two changes",
    "fsdp-and-deepspeed: one command": "an option is to go",
}


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_what_a_check_says_to_write_is_written_and_ends_the_complaint(check: str, example: CheckExample) -> None:
    files = {name: text.encode() for name, text in example.files.items()}
    ask = judge(example.known)
    complaint = next(one for one in ask(files) if one.id == check)
    settled = apply_proposals(files, [issue_proposal(complaint, targets(files))], ask, nothing_there)
    if f"{check}: {example.name}" in BY_HAND:
        assert not settled.files and settled.steps[0].left
        return
    assert settled.steps[0].made
    assert complaint.id not in [one.id for one in ask({**files, **settled.files})]


@pytest.mark.parametrize(("file", "text", "complaint", "after"), [
    pytest.param("a.yaml", "stage: sft\nfinetuning_type: lora\ncutoff_length: 99\n", "key-unknown", "stage: sft\nfinetuning_type: lora\ncutoff_len: 99\n", id="a misspelt key of LLaMA-Factory"),
    pytest.param("a.sh", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb=64\npython t.py --bf16 true\n", "alloc-conf-form", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64\npython t.py --bf16 true\n", id="a sign of the allocator variable"),
    pytest.param("a.sh", "PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True max_split_size_mb:64' python t.py --bf16 true\n", "alloc-conf-form", "PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True,max_split_size_mb:64' python t.py --bf16 true\n", id="a blank in the allocator variable"),
    pytest.param("a.sh", "swift sft --model m --max_lengths 99\n", "key-unknown", "swift sft --model m --max_length 99\n", id="a misspelt option"),
])  # fmt: skip
def test_names_and_variables(file: str, text: str, complaint: str, after: str) -> None:
    files, ask = {file: text.encode()}, judge({})
    found = next(one for one in ask(files) if one.id == complaint)
    assert apply_proposals(files, [issue_proposal(found, targets(files))], ask, nothing_there).files[file].decode() == after


@pytest.mark.parametrize(("file", "text", "after"), [
    pytest.param("a.yaml", "training_args:\n  output_dir: o\n  generation_config:\n    max_new_tokens: 5\n    bf16: true\npeft_config:\n  peft_type: LORA\n", "training_args:\n  output_dir: o\n  generation_config:\n    max_new_tokens: 5\n  bf16: true\npeft_config:\n  peft_type: LORA\n", id="GLM-4"),
    pytest.param("a.json", '{"bf16": {"enabled": "auto"}, "stage": 2, "zero_optimization": {"overlap_comm": true}}', '{"bf16": {"enabled": "auto"}, "zero_optimization": {"overlap_comm": true, "stage": 2}}', id="DeepSpeed"),
    pytest.param("a.json", '{"output_dir": "o", "fp16": true, "deepspeed": {"stage": 2, "fp16": {"enabled": "auto"}, "zero_optimization": {"overlap_comm": true}}}', '{"output_dir": "o", "fp16": true, "deepspeed": {"fp16": {"enabled": "auto"}, "zero_optimization": {"overlap_comm": true, "stage": 2}}}', id="DeepSpeed inside of a trainer's file"),
    pytest.param("a.yaml", "distributed_type: FSDP\nfsdp_offload_params: true\nfsdp_config:\n  fsdp_version: 2\nnum_processes: 2\n", "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: true\nnum_processes: 2\n", id="accelerate"),
])  # fmt: skip
def test_a_key_under_the_wrong_block_goes_to_the_right_one(file: str, text: str, after: str) -> None:
    files, ask = {file: text.encode()}, judge({})
    found = next(one for one in ask(files) if one.id == "key-under-wrong-block")
    settled = apply_proposals(files, [issue_proposal(found, targets(files))], ask, nothing_there)
    assert [one.why.en for step in settled.steps for one in step.refusals] == []
    assert settled.files[file].decode() == after


@pytest.mark.parametrize(("file", "text"), [
    pytest.param("a.yaml", "training_args:\n  output_dir: o\n  generation_config:\n    bf16: true\npeft_config:\n  peft_type: LORA\n", id="its block would be empty"),
    pytest.param("a.yaml", "distributed_type: FSDP\nfsdp_offload_params: true\nnum_processes: 2\n", id="no block for it"),
    pytest.param("a.json", '{"bf16": {"enabled": "auto"}, "offload_param": {"device": "cpu"}, "zero_optimization": {"stage": 3}}', id="a whole block"),
])  # fmt: skip
def test_what_cannot_be_moved_is_said(file: str, text: str) -> None:
    files, ask = {file: text.encode()}, judge({})
    found: list[ConfigIssue] = [one for one in ask(files) if one.id == "key-under-wrong-block"]
    settled = apply_proposals(files, [issue_proposal(one, targets(files)) for one in found], ask, nothing_there)
    assert found and settled.files == {} and all(step.left for step in settled.steps)


def test_a_note_is_advice() -> None:
    files = {"a.yaml": b"stage: sft\nfinetuning_type: full\nlora_rank: 8\n"}
    note = next(one for one in judge({})(files) if one.severity == "note")
    assert not issue_proposal(note, targets(files)).safe
