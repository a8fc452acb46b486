"""From a config and a card to the file that fits: `check` says no, `fix` writes a plan, `check` says yes, and `fix` has nothing left to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from in_process import Done, oomdoctor

FILES = {
    "sft.yaml": """\
### model
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
lora_rank: 16
bf16: true
cutoff_len: 2048
enable_liger_kernel: true
### train
per_device_train_batch_size: 16   # as on the big card
gradient_accumulation_steps: 2
""",
    "args.json": """\
{
  "model_name_or_path": "Qwen/Qwen2.5-0.5B",
  "output_dir": "out",
  "bf16": true,
  "max_length": 1024,
  "per_device_train_batch_size": 32,
  "gradient_accumulation_steps": 1
}
""",
    "lora.yml": """\
base_model: Qwen/Qwen2.5-7B-Instruct
adapter: lora
lora_r: 16
lora_target_linear: true
bf16: true
sequence_len: 2048
micro_batch_size: 16   # as on the big card
gradient_accumulation_steps: 2
datasets:
  - path: data.jsonl
    type: alpaca
output_dir: out
""",
    "sft.sh": """\
#!/bin/bash
CUDA_VISIBLE_DEVICES=0 swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --tuner_type lora \\
    --lora_rank 16 \\
    --torch_dtype bfloat16 \\
    --max_length 2048 \\
    --per_device_train_batch_size 16 \\
    --gradient_accumulation_steps 2 \\
    --output_dir out
""",
    "serve.sh": """\
#!/bin/bash
vllm serve Qwen/Qwen2.5-14B --max-model-len 131072 \\
  --gpu-memory-utilization 0.9 > vllm.log 2>&1 &
""",
    "train.sh": """\
deepspeed --num_gpus 4 train.py \\
    --model_name_or_path Qwen/Qwen2.5-7B-Instruct \\
    --bf16 true \\
    --model_max_length 2048 \\
    --per_device_train_batch_size 1 \\
    --gradient_accumulation_steps 8 \\
    --gradient_checkpointing true \\
    --output_dir out \\
    --deepspeed ds.json
""",
    "lists.sh": """\
#!/bin/bash
GPUS=4
LAUNCH="torchrun --nproc_per_node $GPUS --nnodes 1"
ARGS=(
    --model_name_or_path Qwen/Qwen2.5-7B-Instruct
    --bf16 true   # as on the big card
    --model_max_length 2048
    --per_device_train_batch_size 4
    --gradient_accumulation_steps 8
    --gradient_checkpointing true
    --deepspeed ds.json
)
ARGS+=(--optim adamw_torch)
$LAUNCH finetune.py "${ARGS[@]}" --output_dir out 2>&1 | tee train.log
""",
    "ds.json": """\
{
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 2
    },
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto"
}
""",
}


def run(*arguments: str, here: Path) -> Done:
    return oomdoctor(arguments, here=here)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def files_in(here: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in here.iterdir() if ".bak-" not in path.name}


ROUNDS = [
    pytest.param(["sft.yaml", "--gpu", "RTX 4090"], {"sft.yaml"}, id="LLaMA-Factory"),
    pytest.param(["args.json", "--gpu", "RTX 3090"], {"args.json"}, id="arguments of a Trainer in JSON"),
    pytest.param(["lora.yml", "--gpu", "RTX 4090"], {"lora.yml"}, id="axolotl"),
    pytest.param(["sft.sh", "--gpu", "RTX 4090"], {"sft.sh"}, id="a script of ms-swift"),
    pytest.param(["train.sh", "--gpu", "A100-40GB", "--gpus", "4"], {"train.sh", "ds.json"}, id="DeepSpeed and its JSON"),
    pytest.param(["lists.sh", "--gpu", "A100-40GB"], {"lists.sh", "ds.json"}, id="a script that keeps its options in an array"),
    pytest.param(["serve.sh", "--gpu", "A100-40GB"], {"serve.sh"}, id="a server"),
]


@pytest.mark.parametrize(("run_on", "changed"), ROUNDS)
def test_from_a_config_that_does_not_fit_to_one_that_does(here: Path, run_on: list[str], changed: set[str]) -> None:
    assert run("check", *run_on, here=here).returncode == 1
    done = run("fix", *run_on, "--yes", here=here)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    new = files_in(here)
    assert {name for name in new if new[name] != FILES.get(name)} <= changed
    checked = run("check", *run_on, here=here)
    assert checked.returncode == 0, checked.stdout
    again = run("fix", *run_on, "--yes", here=here)
    assert (again.returncode, files_in(here)) == (0, new) and "as is" in again.stdout


def test_the_numbers_are_those_of_plan(here: Path) -> None:
    shown = json.loads(run("plan", "train.sh", "--gpu", "A100-40GB", "--gpus", "4", "--format", "json", here=here).stdout)["plans"]
    for number, plan in enumerate(shown, 1):
        done = run("fix", "train.sh", "--gpu", "A100-40GB", "--gpus", "4", "--only", f"plan-{number}", "--yes", "--dry-run", here=here)
        title = next(line for line in done.stdout.splitlines() if f"plan-{number}  " in line)
        assert title.count("; ") + 1 == len({measure["fix"] for measure in plan["measures"]})


def test_what_a_person_decides_waits_and_is_shown(here: Path) -> None:
    done = run("fix", "sft.sh", "--gpu", "RTX 4090", here=here)
    assert (done.returncode, files_in(here)) == (1, FILES)
    assert "decide   plan-1" in done.stdout and "--use_liger_kernel true" in done.stdout and "only with --yes" in done.stdout
    assert "待决定的改动加上 --yes 才会写入。" in run("fix", "sft.sh", "--gpu", "RTX 4090", "--lang", "zh", here=here).stdout


def test_a_safe_plan_asks_and_needs_no_yes(here: Path) -> None:
    done = run("fix", "sft.yaml", "--gpu", "RTX 4090", here=here)
    assert (done.returncode, files_in(here)) == (1, FILES) and "Write these changes?" in done.stdout and "change   plan-1" in done.stdout


def test_a_dry_run_ends_like_the_run_that_writes(here: Path) -> None:
    done = run("fix", "sft.yaml", "--gpu", "RTX 4090", "--dry-run", here=here)
    assert (done.returncode, files_in(here)) == (0, FILES) and "\n+per_device_train_batch_size: " in done.stdout


def test_a_misspelt_key_counts_when_it_is_spelt_right(here: Path) -> None:
    (here / "sft.yaml").write_text(FILES["sft.yaml"].replace("cutoff_len:", "cutoff_length:"), encoding="utf-8")
    assert run("fix", "sft.yaml", "--gpu", "RTX 4090", "--yes", here=here).returncode == 0
    new = files_in(here)["sft.yaml"]
    assert "cutoff_len: 2048\n" in new and "per_device_train_batch_size: 16 " not in new


def test_a_file_that_a_plan_needs_is_made_and_read_by_check(here: Path) -> None:
    (here / "full.yaml").write_text(
        FILES["sft.yaml"].replace("lora\nlora_rank: 16", "full").replace("size: 16", "size: 1"), encoding="utf-8"
    )
    cards = ["full.yaml", "--gpu", "A100-40GB", "--gpus", "4"]
    assert run("check", *cards, here=here).returncode == 1
    done = run("fix", *cards, "--yes", here=here)
    new = files_in(here)
    made = sorted(set(new) - set(FILES) - {"full.yaml"})
    assert done.returncode == 0 and made and "then run: " in done.stdout
    assert run("check", *made, *cards, here=here).returncode == 0
    assert (run("fix", *cards, "--yes", here=here).returncode, files_in(here)) == (0, new)


def test_where_nothing_fits_nothing_is_written_and_it_is_said(here: Path) -> None:
    (here / "sft.yaml").write_text(FILES["sft.yaml"].replace("2.5-7B", "2.5-72B"), encoding="utf-8")
    done = run("fix", "sft.yaml", "--gpu", "8GB", "--yes", here=here)
    assert done.returncode == 1 and "No combination of settings fits" in done.stdout and "oomdoctor plan" in done.stdout
    assert [path.name for path in here.iterdir() if ".bak-" in path.name] == []


def test_a_server_that_starts_with_no_settings_is_said_not_to(here: Path) -> None:
    done = run("fix", "serve.sh", "--gpu", "4GB", "--yes", here=here)
    assert (done.returncode, files_in(here)) == (1, FILES) and "No combination of settings lets the server start" in done.stdout
    assert "没有哪种设置组合能让服务启动" in run("fix", "serve.sh", "--gpu", "4GB", "--lang", "zh", here=here).stdout


LOG = """\
{'train_runtime': 1}
***** Running training *****
  Instantaneous batch size per device = 16
  Gradient Accumulation steps = 2
Traceback (most recent call last):
  File "/x/torch/_tensor.py", line 581, in backward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free. \
Of the allocated memory 21.50 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.mark.parametrize("file", ["sft.yaml", "serve.sh"])
def test_the_size_that_was_taken_for_a_card_is_said(here: Path, file: str) -> None:
    said = "A100 80GB (also sold with 40 GB)"
    assert said in " ".join(run("fix", file, "--gpu", "A100", "--dry-run", here=here).stdout.split())
    assert "also come with" not in run("fix", file, "--gpu", "A100-80GB", "--dry-run", here=here).stdout


def test_a_log_of_a_known_run_gets_the_plan_and_not_every_fix(here: Path) -> None:
    (here / "train.log").write_text(LOG, encoding="utf-8")
    done = run("fix", "train.log", "sft.yaml", "--yes", here=here)
    assert done.returncode == 0 and "change   plan-1" in done.stdout and "smaller-batch" in done.stdout.partition("Also possible")[2]
    again = run("fix", "train.log", "sft.yaml", "--yes", here=here)
    assert again.returncode == 0 and "already  plan-1" in again.stdout


@pytest.mark.parametrize(("arguments", "message"), [
    pytest.param(["sft.yaml", "--plan", "1"], "which card", id="a plan for no card"),
    pytest.param(["sft.yaml", "--gpu", "RTX 4090", "--plan", "40"], "the last one is", id="a number that no plan has"),
    pytest.param(["sft.yaml", "--gpu", "RTX 4090", "--plan", "1", "--only", "smaller-batch"], "mutually exclusive", id="a plan and a fix"),
    pytest.param(["sft.yaml", "--gpu", "a card"], "unknown", id="a card that nobody knows"),
    pytest.param(["ds.json", "--gpu", "RTX 4090"], "which model", id="a config that names no model"),
])  # fmt: skip
def test_wrong_use_ends_with_two_and_changes_nothing(here: Path, arguments: list[str], message: str) -> None:
    done = run("fix", *arguments, here=here)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert files_in(here) == FILES


OLD_CARDS = [
    pytest.param("sft.yaml", "flash_attn: fa2\n", "V100-32GB", ["+flash_attn: sdpa", "+bf16: false", "+fp16: true"], id="LLaMA-Factory"),
    pytest.param("sft.sh", "--attn_impl flash_attn", "T4", ["--attn_impl sdpa", "--torch_dtype float16"], id="a script of ms-swift"),
    pytest.param("lora.yml", "flash_attention: true\n", "V100-32GB", ["+flash_attention: false", "+bf16: auto"], id="axolotl"),
]


@pytest.mark.parametrize(("name", "adds", "gpu", "expected"), OLD_CARDS)
def test_what_a_card_cannot_do_is_written_otherwise(here: Path, name: str, adds: str, gpu: str, expected: list[str]) -> None:
    text = FILES[name].replace("--output_dir out", f"{adds} --output_dir out") if name.endswith(".sh") else FILES[name] + adds
    (here / name).write_text(text, encoding="utf-8")
    shown = run("fix", name, "--gpu", gpu, "--yes", "--dry-run", here=here).stdout
    assert [line for line in expected if line not in shown] == []
    run("fix", name, "--gpu", gpu, "--yes", here=here)
    assert "-before-" not in run("fix", name, "--gpu", gpu, "--yes", "--dry-run", here=here).stdout


def test_another_precision_is_for_a_person_to_decide(here: Path) -> None:
    done = run("fix", "sft.yaml", "--gpu", "V100-32GB", "--dry-run", here=here)
    assert "decide   bf16-before-ampere" in done.stdout and "+fp16: true" not in done.stdout
