"""Broken configs: each gives the complaint that it must give, and nothing else; what is right gives none."""

from __future__ import annotations

import re

import pytest
from builtin_rule_set import builtin_rule_set
from config_files import complaints, read

from oomdoctor.knowledge.records.check import CheckExample, CheckRecord

CHECKS = [check for _, check in builtin_rule_set().checks]

DEEPSPEED = '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}'
GLM4 = "data_config:\n  train_file: t.jsonl\nmax_input_length: 300\nmax_output_length: 200\n"

BROKEN = [
    ("a block under the wrong parent", {"f.yaml": GLM4 + "training_args:\n  output_dir: o\n  generation_config:\n    max_new_tokens: 90\n    deepspeed: configs/ds.json\n"}, {}, ["key-under-wrong-block"]),
    ("a trainer's key beside training_args", {"f.yaml": GLM4 + "per_device_train_batch_size: 1\ntraining_args:\n  output_dir: o\n"}, {}, ["key-under-wrong-block"]),
    ("offload outside of zero_optimization", {"d.json": '{"zero_optimization": {"stage": 2}, "offload_optimizer": {"device": "cpu"}}'}, {}, ["key-under-wrong-block"]),
    ("the stage at the top of the JSON", {"d.json": '{"stage": 3, "zero_optimization": {}, "bf16": {"enabled": "auto"}}'}, {}, ["key-under-wrong-block"]),
    ("the stage at the top of an accelerate file", {"a.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nzero_stage: 3\nnum_processes: 2\n"}, {}, ["key-under-wrong-block"]),
    ("an FSDP key at the top of an accelerate file", {"a.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_offload_params: true\n"}, {}, ["key-under-wrong-block"]),
    ("a letter is missing", {"a.yaml": "stage: sft\nfinetuning_type: lora\ncutoff_len: 900\nper_device_train_batch_sze: 2\n"}, {}, ["key-unknown"]),
    ("dashes between the words", {"a.yml": "base_model: org/m\nmicrobatch_size: 2\nsequence_len: 900\n"}, {}, ["key-unknown"]),
    ("a near key of Axolotl", {"a.yml": "base_model: org/m\nmicro_batch_size: 2\ngradient_checkpoint: true\n"}, {}, ["key-unknown"]),
    ("the trainer's name in an Axolotl file", {"a.yml": "base_model: org/m\nper_device_train_batch_size: 2\n"}, {}, ["key-unknown"]),
    ("a misspelt option of a server", {"s.sh": "vllm serve org/m --gpu-memory-utilisation 0.8 --max-model-len 4000\n"}, {}, ["key-unknown"]),
    ("a misspelt option of another server", {"s.sh": "python -m sglang.launch_server --model-path org/m --mem-fraction-statics 0.8\n"}, {}, ["key-unknown"]),
    ("a key that DeepSpeed passes over", {"d.json": '{"zero_optimization": {"stage": 2, "overlap_com": true}, "bf16": {"enabled": "auto"}}'}, {}, ["key-unknown"]),
    ("an old key of DeepSpeed", {"d.json": '{"zero_optimization": {"stage": 3, "stage3_gather_fp16_weights_on_model_saves": true}}'}, {}, ["key-unknown"]),
    ("evaluation_strategy after its removal", {"a.json": '{"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2, "output_dir": "o", "evaluation_strategy": "steps"}'}, {"log.transformers_version": "4.51.3"}, ["key-gone"]),
    ("evaluation_strategy at an unknown version", {"a.json": '{"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2, "output_dir": "o", "evaluation_strategy": "steps"}'}, {}, ["key-perhaps-gone"]),
    ("eval_strategy before it came", {"a.json": '{"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2, "output_dir": "o", "eval_strategy": "steps"}'}, {"log.transformers_version": "4.40.1"}, ["key-not-yet"]),
    ("the fused loss before it came", {"a.json": '{"per_device_train_batch_size": 2, "output_dir": "o", "use_liger_kernel": true}'}, {"log.transformers_version": "4.43.4"}, ["key-not-yet"]),
    ("max_seq_length after its renaming", {"a.yaml": "model_name_or_path: org/m\ndataset_name: d\nuse_peft: true\nmax_seq_length: 800\n"}, {"log.trl_version": "1.16.0"}, ["key-gone"]),
    ("group_by_length after its renaming", {"a.json": '{"per_device_train_batch_size": 2, "output_dir": "o", "group_by_length": true}'}, {"log.transformers_version": "5.2.0"}, ["key-gone"]),
    ("a product that does not fit", {"d.json": '{"train_batch_size": 50, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 1}}'}, {}, ["deepspeed-batch-product"]),
    ("a product that the cards do not make", {"d.json": '{"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 1}}', "r.sh": "torchrun --nproc_per_node 4 t.py\n"}, {}, ["deepspeed-batch-product"]),
    ("two batch sizes", {"a.json": '{"per_device_train_batch_size": 2, "output_dir": "o", "deepspeed": "d.json"}', "d.json": '{"train_micro_batch_size_per_gpu": 5, "zero_optimization": {"stage": 2}}'}, {}, ["deepspeed-mismatch"]),
    ("two numbers of accumulation steps", {"a.yaml": "finetuning_type: lora\ncutoff_len: 700\ngradient_accumulation_steps: 6\ndeepspeed: d.json\n", "d.json": '{"gradient_accumulation_steps": 3, "zero_optimization": {"stage": 2}}'}, {}, ["deepspeed-mismatch"]),
    ("bf16 above fp16", {"a.yaml": "finetuning_type: lora\ncutoff_len: 700\nbf16: true\ndeepspeed: d.json\n", "d.json": '{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}, "bf16": {"enabled": false}}'}, {}, ["deepspeed-mismatch"]),
    ("an equals sign in the variable", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments=True\npython t.py --per_device_train_batch_size 1 --output_dir o\n"}, {}, ["alloc-conf-form"]),
    ("a blank in the variable", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:300, expandable_segments:True'\n"}, {}, ["alloc-conf-form"]),
    ("no value", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments\n"}, {}, ["alloc-conf-form"]),
    ("an option that does not exist", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True\n"}, {}, ["alloc-conf-option"]),
    ("a variable that nobody reads", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONFIG=expandable_segments:True\n"}, {}, ["alloc-conf-name"]),
    ("the short name before its time", {"r.sh": "export PYTORCH_ALLOC_CONF=expandable_segments:True\n"}, {"log.torch_version": "2.6.0+cu124"}, ["alloc-conf-name"]),
    ("expandable segments before their time", {"r.sh": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python t.py --per_device_train_batch_size 1 --output_dir o\n"}, {"log.torch_version": "2.0.1"}, ["alloc-conf-version"]),
    ("options that the backend passes over", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync,max_split_size_mb:300\n"}, {}, ["alloc-conf-backend"]),
    ("a threshold in percent", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:80\n"}, {}, ["alloc-conf-form"]),
    ("expandable segments on Windows", {"r.bat": "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"}, {"log.os": "Windows"}, ["alloc-conf-platform"]),
    ("a tab", {"a.yml": "base_model: org/m\nlora:\n\tr: 5\nmicro_batch_size: 2\n"}, {}, ["yaml-broken"]),
    ("a quote that is not closed", {"a.yaml": "finetuning_type: lora\nmodel_name_or_path: 'org/m\ncutoff_len: 300\n"}, {}, ["yaml-broken"]),
    ("a key twice", {"a.yaml": "finetuning_type: lora\ncutoff_len: 300\nper_device_train_batch_size: 4\nper_device_train_batch_size: 1\n"}, {}, ["key-twice"]),
    ("a comment in JSON", {"d.json": '{\n  // two\n  "zero_optimization": {"stage": 2}\n}'}, {}, ["json-comment"]),
    ("a comma too many", {"d.json": '{"zero_optimization": {"stage": 2,},\n "bf16": {"enabled": "auto"}}'}, {}, ["json-trailing-comma"]),
    ("a comma too few", {"d.json": '{"zero_optimization": {"stage": 2}\n "bf16": {"enabled": "auto"}}'}, {}, ["json-broken"]),
    ("a Python dict", {"d.json": "{'zero_optimization': {'stage': 2, 'overlap_comm': True}}"}, {}, ["json-python"]),
    ("a bracket that is not closed", {"d.json": '{"zero_optimization": {"stage": 2}'}, {}, ["json-broken"]),
    ("a key twice in JSON", {"d.json": '{"zero_optimization": {"stage": 2, "stage": 3}}'}, {}, ["key-twice"]),
]  # fmt: skip

RIGHT = [
    ("a trainer above a JSON that leaves it the choice", {"a.yaml": "finetuning_type: lora\ncutoff_len: 700\nbf16: true\nper_device_train_batch_size: 3\ndeepspeed: d.json\n", "d.json": DEEPSPEED}, {}),
    ("the new name at the new version", {"a.json": '{"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2, "output_dir": "o", "eval_strategy": "steps"}'}, {"log.transformers_version": "4.51.3"}),
    ("the old name at the old version", {"a.json": '{"per_device_train_batch_size": 2, "per_device_eval_batch_size": 2, "output_dir": "o", "evaluation_strategy": "steps"}'}, {"log.transformers_version": "4.44.0"}),
    ("a product that fits", {"d.json": '{"train_batch_size": 48, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 1}}', "r.sh": "torchrun --nproc_per_node=4 t.py\n"}, {}),
    ("two options of the allocator", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:300,garbage_collection_threshold:0.7\n"}, {"log.torch_version": "2.3.1"}),
    ("sizes in brackets", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2,>:4]\n"}, {}),
    ("a variable that the script does not set", {"r.sh": "export PYTORCH_CUDA_ALLOC_CONF=$MY_CONF\n"}, {}),
    ("a server", {"s.sh": "vllm serve org/m -tp 2 --gpu-memory-utilization 0.85 --no-enable-prefix-caching --max-model-len=4000\n"}, {}),
    ("a script with arguments of its own", {"r.sh": "python t.py --per_device_train_batch_size 2 --output_dir o --lazy_preprocess True --image_folder d\n"}, {}),
    ("an anchor used twice", {"a.yml": "base_model: org/m\ndatasets:\n  - &one\n    path: d\n    type: alpaca\ntest_datasets:\n  - *one\nmicro_batch_size: 2\n"}, {}),
    ("an empty file", {"a.yaml": ""}, {}),
    ("prose", {"notes.txt": "We lowered the batch size and then it worked.\n"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "known", "wanted"), [pytest.param(*row[1:], id=row[0]) for row in BROKEN])
def test_a_broken_config_gives_its_complaint_and_nothing_else(files: dict[str, str], known: dict[str, str], wanted: list[str]) -> None:
    assert complaints(files, known) == wanted


@pytest.mark.parametrize(("files", "known"), [pytest.param(*row[1:], id=row[0]) for row in RIGHT])
def test_a_right_config_gives_none(files: dict[str, str], known: dict[str, str]) -> None:
    assert complaints(files, known) == []


def examples(near: bool) -> list[object]:
    return [
        pytest.param(check, example, id=f"{check.id}: {example.name}")
        for check in CHECKS
        for example in (check.near_misses if near else check.examples)
    ]


@pytest.mark.parametrize(("check", "example"), examples(near=False))
def test_a_check_speaks_of_its_examples_alone(check: CheckRecord, example: CheckExample) -> None:
    assert complaints(example.files, example.known) == [check.id]


@pytest.mark.parametrize(("check", "example"), examples(near=True))
def test_a_check_leaves_its_near_misses_alone(check: CheckRecord, example: CheckExample) -> None:
    assert check.id not in complaints(example.files, example.known)


def test_every_complaint_has_texts_without_gaps_in_both_languages() -> None:
    tables = [(files, known) for _, files, known, _ in BROKEN] + [(one.files, one.known) for check in CHECKS for one in check.examples]
    for files, known in tables:
        for one in read(files, known).issues:
            assert not re.search(r"\{\w+\.", one.what.en + one.what.zh + one.why.en + one.why.zh + (one.replacement or "")), one
            assert all(max(text.zh) >= "\u4e00" for text in (one.what, one.why)), one
            assert one.line >= 1


def test_a_complaint_says_where_and_what_to_write() -> None:
    files = {"f.yaml": GLM4 + "training_args:\n  generation_config:\n    deepspeed: configs/ds.json\n"}
    (one,) = read(files).issues
    assert (one.file, one.line, one.key) == ("f.yaml", 7, "training_args.generation_config.deepspeed")
    assert one.what.en == "`deepspeed` is under `training_args.generation_config`; it only has an effect under `training_args`"
    assert one.replacement == "training_args.deepspeed: configs/ds.json"
