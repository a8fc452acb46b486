"""What a plan promises is what its files give: plan, fix, and estimate of the written files agree."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Plans
from oomdoctor.case.serving import Served
from oomdoctor.cli.main import cli

LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: {kind}
{more}
template: qwen
cutoff_len: 4096
per_device_train_batch_size: 4
gradient_accumulation_steps: 4
bf16: true
"""
AXOLOTL = """\
base_model: meta-llama/Llama-3.1-8B
sequence_len: 4096
sample_packing: true
micro_batch_size: 4
gradient_accumulation_steps: 2
optimizer: adamw_torch
bf16: true
flash_attention: true
gradient_checkpointing: false
"""
SWIFT = (
    "swift sft --model Qwen/Qwen3-8B --train_type full --torch_dtype bfloat16 --max_length 4096 --per_device_train_batch_size 4 "
    "--gradient_accumulation_steps 4\n"
)
TRAINER = (
    "torchrun --nproc_per_node 4 run_clm.py --model_name_or_path THUDM/glm-4-9b-chat --do_train --bf16 --block_size 2048 "
    "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --deepspeed ds.json --output_dir out\n"
)
ZERO2 = '{"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8, "reduce_bucket_size": 5e8}}\n'
FSDP = (
    "accelerate launch --config_file acc.yaml sft.py --model_name_or_path mistralai/Mistral-7B-v0.3 --bf16 True --max_length 4096 "
    "--per_device_train_batch_size 4 --gradient_accumulation_steps 4\n"
)
TRL = "model_name_or_path: Qwen/Qwen3-8B\ndataset_name: d\nmax_length: 4096\npacking: true\nper_device_train_batch_size: 4\nbf16: true\n"
IN_ACCELERATE = (
    "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 4\n"
    "deepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: none\n"
)
ACCELERATE = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 4\nfsdp_config:\n  fsdp_version: 2\n"

MEGATRON = """\
#!/bin/bash
TP=1
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm
    --untie-embeddings-and-output-weights --vocab-size 128256
    --seq-length 4096  # as pretrained
)
TRAINING_ARGS=(
    --micro-batch-size 2
    --global-batch-size 64
    --bf16
)
torchrun --nproc_per_node 4 pretrain_gpt.py ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} \\
    --tensor-model-parallel-size $TP \\
    --train-iters 100
"""
TITAN = """\
# the released preset
[model]
name = "llama3"
flavor = "8B"  # of several

[training]
local_batch_size = 4
seq_len = 8192

[parallelism]
tensor_parallel_degree = 1

[activation_checkpoint]
mode = "none"
"""
TITAN_COMMAND = (
    "torchrun --nproc_per_node=4 -m torchtitan.train --module llama3 --config llama3_8b --training.max_context_length 8192 "
    "--training.num_tokens_per_microbatch_per_dp_rank 32768\n"
)
MEGATRON_YAML = """\
# read by --yaml-cfg
language_model:
  num_layers: 32
  hidden_size: 4096
  num_attention_heads: 32
  num_query_groups: 8
  activation_func: swiglu
  ffn_hidden_size: 14336
  recompute_granularity: null
  recompute_method: null
  recompute_num_layers: null
model_parallel:
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 1
  context_parallel_size: 1
  sequence_parallel: True
  bf16: True
micro_batch_size: 2
global_batch_size: 64
seq_length: 4096
vocab_size: 128256
use_distributed_optimizer: False
untie_embeddings_and_output_weights: True
"""


@pytest.mark.parametrize(("files", "card"), [
    pytest.param({"sft.yaml": LLAMAFACTORY.format(kind="full", more="deepspeed: examples/deepspeed/ds_z2_config.json")}, "A100-40GB",
                 id="LLaMA-Factory with a stock file that is not available"),
    pytest.param({"sft.yaml": LLAMAFACTORY.format(kind="full", more="deepspeed: ds.json"), "ds.json": ZERO2}, "RTX 4090",
                 id="LLaMA-Factory with a DeepSpeed file of one's own"),
    pytest.param({"sft.yaml": LLAMAFACTORY.format(kind="lora", more="lora_rank: 8")}, "Tesla T4", id="LLaMA-Factory without DeepSpeed"),
    pytest.param({"ax.yml": AXOLOTL}, "RTX 4090", id="axolotl, nothing sharded"),
    pytest.param({"ax.yml": AXOLOTL.replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-0.5B").replace("4096", "8192")}, "Tesla T4",
                 id="axolotl with what the card refuses, which is mended first"),
    pytest.param({"run.sh": SWIFT}, "L40S", id="ms-swift by its command"),
    pytest.param({"run.sh": TRAINER, "ds.json": ZERO2}, "A100-40GB", id="a script of transformers with a DeepSpeed file"),
    pytest.param({"sft.yaml": TRL}, "A100-40GB", id="TRL by its own file: adapters, packed weights, 16 bit"),
    pytest.param({"run.sh": TRAINER.replace("--deepspeed ds.json", "").replace("torchrun --nproc_per_node 4", "accelerate launch --config_file a.yaml"),
                  "a.yaml": IN_ACCELERATE}, "A100-40GB", id="ZeRO as accelerate's own file has it"),
    pytest.param({"run.sh": FSDP, "acc.yaml": ACCELERATE}, "RTX 5090", id="FSDP 2 started by accelerate"),
    pytest.param({"run.sh": MEGATRON}, "H100-80GB", id="Megatron-LM by a launch script, nothing sharded"),
    pytest.param({"run.sh": MEGATRON.replace("--bf16", "--bf16 --use-distributed-optimizer").replace("batch-size 2", "batch-size 8")}, "A100-40GB",
                 id="Megatron-LM with its distributed optimizer"),
    pytest.param({"config.yaml": MEGATRON_YAML}, "H100-80GB", id="Megatron-LM by its YAML"),
    pytest.param({"titan.toml": TITAN}, "A100-80GB", id="torchtitan by its TOML"),
    pytest.param({"run.sh": TITAN_COMMAND}, "A100-80GB", id="torchtitan by its command"),
])  # fmt: skip
def test_the_written_files_need_what_the_plan_promised(files: dict[str, str], card: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in files]
    for path, text in zip(paths, files.values()):
        path.write_text(text, encoding="utf-8")
    plans = cast("Plans[Estimate]", oomdoctor.plan(paths, gpu=card, gpus=4))
    assert plans.plans
    for number, plan in enumerate(plans.plans, 1):
        changes = oomdoctor.fix(paths, gpu=card, gpus=4, plan=number, review=True)
        assert not any(step.left for step in changes.applied.steps)
        folder = tmp_path / f"plan-{number}"
        written = {path.name: path.read_bytes() for path in paths} | {Path(path).name: data for path, data in changes.applied.files.items()}
        folder.mkdir()
        for name, data in written.items():
            (folder / name).write_bytes(data)
        run = oomdoctor.estimate([folder / name for name in written], gpu=card, gpus=4)
        assert run.fits == "yes"
        assert run.fit is not None
        assert run.fit.needed.expected == pytest.approx(plan.outcome.expected, rel=0.01)


COMPOSE = """\
services:
  chat:
    image: vllm/vllm-openai:v0.11.0  # pinned
    command:
      - --model
      - meta-llama/Llama-3.3-70B-Instruct
      - --gpu-memory-utilization
      - "0.85"
"""
POD = """\
spec:
  containers:
  - image: lmsysorg/sglang:v0.4.6.post2
    command: ["python3", "-m", "sglang.launch_server"]
    args: ["--model-path", "Qwen/Qwen3-32B"]
"""


@pytest.mark.parametrize(("command", "card", "cards"), [
    pytest.param("python -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.3-70B-Instruct --gpu-memory-utilization 0.85",
                 "A100-80GB", 4, id="vLLM as a module, the longest request not told"),
    pytest.param("python -m sglang.launch_server --model-path Qwen/Qwen3-32B --port 30000", "A100-40GB", 2, id="SGLang"),
    pytest.param("text-generation-launcher --model-id meta-llama/Llama-3.1-70B-Instruct --num-shard 1", "A100-80GB", 4, id="TGI"),
    pytest.param("lmdeploy serve api_server Qwen/Qwen2.5-32B-Instruct --tp 1 --session-len 32768", "A100-40GB", 2, id="LMDeploy"),
    pytest.param("trtllm-serve Qwen/Qwen3-32B --max_batch_size 64 --tp_size 1", "A100-40GB", 2, id="TensorRT-LLM"),
    pytest.param(COMPOSE, "A100-80GB", 4, id="vLLM in a compose file"),
    pytest.param(POD, "A100-40GB", 2, id="SGLang in a pod"),
])  # fmt: skip
def test_a_server_started_as_the_plan_writes_it_has_the_cache_that_was_promised(
    command: str, card: str, cards: int, tmp_path: Path
) -> None:
    ending = ".yaml" if "image:" in command else ".sh"
    script = tmp_path / f"serve{ending}"
    script.write_text(f"{command}\n", encoding="utf-8")
    plans = cast("Plans[Served]", oomdoctor.plan(script, gpu=card, gpus=cards))
    assert plans.plans
    for number, plan in enumerate(plans.plans, 1):
        changes = oomdoctor.fix(script, gpu=card, gpus=cards, plan=number, review=True)
        assert not any(step.left for step in changes.applied.steps)
        written = tmp_path / f"plan-{number}{ending}"
        written.write_bytes(changes.applied.files[str(script)])
        served = oomdoctor.estimate(written, gpu=card, gpus=cards).estimate
        assert isinstance(served, Served)
        assert (served.starts, served.cache, served.turned) == (plan.outcome.starts, plan.outcome.cache, plan.outcome.turned)


@pytest.mark.parametrize(("more", "card", "cards", "now", "planned"), [
    pytest.param("Qwen2.5-14B --tensor-parallel-size 2 --enforce-eager --max-model-len 4096", "20GB", 2, "close", set(), id="it starts as it is"),
    pytest.param("Qwen2.5-7B --max-model-len 128000 --gpu-memory-utilization 0.9", "RTX 4090", 1, "no", {"yes", "close"}, id="it starts with a plan"),
])  # fmt: skip
def test_a_server_that_older_releases_do_not_start_says_so_in_plan_and_estimate(
    more: str, card: str, cards: int, now: str, planned: set[str], tmp_path: Path
) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(f"vllm serve Qwen/{more}\n", encoding="utf-8")
    plans = cast("Plans[Served]", oomdoctor.plan(script, gpu=card, gpus=cards))
    assert plans.now == oomdoctor.estimate(script, gpu=card, gpus=cards).estimate
    assert (plans.now.starts, {plan.outcome.starts for plan in plans.plans}) == (now, planned)
    assert {plan.outcome.turned.before for plan in plans.plans if plan.outcome.releases_differ and plan.outcome.turned} == (
        {"0.9"} if planned else set()
    )
    named = cast("Plans[Served]", oomdoctor.plan(script, gpu=card, gpus=cards, server_version="0.33.0"))
    assert not any(served.turned for served in (named.now, *(plan.outcome for plan in named.plans)))


def test_another_checkpoint_is_for_a_person_to_name(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("vllm serve Qwen/Qwen2.5-32B-Instruct --max-model-len 4096\n", encoding="utf-8")
    plans = cast("Plans[Served]", oomdoctor.plan(script, gpu="A100-40GB", gpus=1))
    written = [setting.to for plan in plans.plans for measure in plan.measures for setting in measure.settings]
    assert "fp8" in written
    assert "awq" not in written


def test_layers_for_the_card_are_written_as_they_were_counted(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("llama-server -hf unsloth/Qwen3-32B-GGUF:Q4_K_M -c 32768 -ngl 99\n", encoding="utf-8")
    plans = cast("Plans[Estimate]", oomdoctor.plan(script, gpu="RTX 3090"))
    changes = oomdoctor.fix(script, gpu="RTX 3090", plan=1, review=True)
    assert not any(step.left for step in changes.applied.steps)
    script.write_bytes(changes.applied.files[str(script)])
    run = oomdoctor.estimate(script, gpu="RTX 3090")
    assert run.fit is not None
    assert run.fit.needed.expected == plans.plans[0].outcome.expected


def test_a_plan_that_no_file_holds_is_shown_where_there_is_no_other(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        "python run_clm.py --model_name_or_path google/gemma-2-9b --do_train --block_size 4096 --per_device_train_batch_size 1\n"
    )
    plans = oomdoctor.plan(script, gpu="V100-32GB")
    changes = oomdoctor.fix(script, gpu="V100-32GB", plan=1, review=True)
    assert plans.plans
    assert any(step.left for step in changes.applied.steps)


STATED_TWICE = LLAMAFACTORY.format(
    kind="lora", more="lora_rank: 8\ndeepspeed: ds.json\ngradient_checkpointing: true\nenable_liger_kernel: true"
).replace("cutoff_len: 4096", "cutoff_len: 8192")
BATCH_IN_ZERO = '{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}\n'


@pytest.mark.parametrize(("zero", "is_broken"), [
    pytest.param(BATCH_IN_ZERO, True, id="the DeepSpeed file has a batch of its own"),
    pytest.param(BATCH_IN_ZERO.replace(" 4,", ' "auto",'), False, id="it leaves the batch to the trainer"),
])  # fmt: skip
def test_where_the_files_break_every_plan_the_setting_that_conflicts_is_named(zero: str, is_broken: bool, tmp_path: Path) -> None:
    files = [tmp_path / "sft.yaml", tmp_path / "ds.json"]
    for path, text in zip(files, (STATED_TWICE, zero), strict=True):
        path.write_text(text, encoding="utf-8")
    plans = cast("Plans[Estimate]", oomdoctor.plan(files, gpu="RTX 4090", gpus=1))
    places = {(Path(each.file).name, each.key, "the DeepSpeed JSON has 4" in each.why.en) for each in plans.broken}
    assert (bool(plans.plans), places) == (not is_broken, {("ds.json", "train_micro_batch_size_per_gpu", True)} if is_broken else set())
    asked = [*map(str, files), "--gpu", "RTX 4090", "--gpus", "1", "--lang", "en"]
    for command in ("plan", "fix"):
        done = CliRunner().invoke(cli, [command, *asked])
        assert ("ds.json, train_micro_batch_size_per_gpu: " in done.output, done.exit_code == 1) == (
            is_broken,
            is_broken or command == "fix",
        )


def test_plans_of_a_file_that_is_mended_first_say_so(tmp_path: Path) -> None:
    misspelt, right = tmp_path / "misspelt.yaml", tmp_path / "right.yaml"
    text = LLAMAFACTORY.format(kind="lora", more="lora_rank: 8")
    right.write_text(text, encoding="utf-8")
    misspelt.write_text(text.replace("cutoff_len", "cutoff_length"), encoding="utf-8")
    told = [{assumption.id for assumption in oomdoctor.plan(path, gpu="RTX 4090").now.assumptions} for path in (misspelt, right)]
    assert ["mended" in ids for ids in told] == [True, False]


@pytest.mark.parametrize(("text", "card", "first"), [
    pytest.param(TRL.replace("Qwen3-8B", "Qwen3-1.7B").replace("4096", "2048"), "RTX 4090", "half-precision", id="weights in 16 bit"),
    pytest.param(LLAMAFACTORY.format(kind="lora", more="lora_rank: 8"), "A100-40GB", "fused-cross-entropy", id="a loss without the logits"),
])  # fmt: skip
def test_what_costs_no_time_stands_before_offloading(text: str, card: str, first: str, tmp_path: Path) -> None:
    file = tmp_path / "sft.yaml"
    file.write_text(text, encoding="utf-8")
    fixes = [[measure.fix for measure in plan.measures] for plan in oomdoctor.plan(file, gpu=card).plans]
    assert first in fixes[0]
    assert not any(fix.startswith(("offload", "activation-offload", "paged")) for fix in fixes[0])
