"""What the text around a log states of a run: what counts, what does not, and that a program's own lines are left to their readers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.stated import StatedRun
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.tables.stated_words import labels, programs
from oomdoctor.setups.words.labels import labelled_values
from oomdoctor.setups.words.passages import mood_of, read_passages
from oomdoctor.setups.words.stated import read_stated

REPORTS: list[tuple[str, str, dict[str, Any]]] = [
    ("an environment in a list", "Environment\n\t•\tGPUs: 4× NVIDIA A100 (40GB each)\n\t•\tModel: acme/Nimbus-8B-Instruct\n\t•\tPrecision: bfloat16\n\t•\tZeRO stage: 2 (with CPU offload)\n\t•\tMicro batch size: 2 per device\n\t•\tGradient accumulation: 8",
        {"gpu_name": "NVIDIA A100 40GB", "gpu_count": 4, "model": "acme/Nimbus-8B-Instruct", "precision": "bf16", "zero_stage": 2, "offload_optimizer": "cpu", "micro_batch": 2, "accumulation": 8}),
    ("a provider and a model", "Model: Qwen3 235B\nProvider: ollama", {"model": "Qwen3 235B", "framework": "ollama"}),
    ("a card times two of which one is used", "GPU: NVIDIA L40S (48GB VRAM) x 2 (I use 1 when running.)", {"gpu_name": "NVIDIA L40S 48GB", "gpu_count": 1, "world_size": 1}),
    ("a library with its stage behind one label", "GPUs: 2*A100(80G)\nDeepSpeed: ZeRO3", {"gpu_name": "A100(80G)", "gpu_count": 2, "zero_stage": 3}),
    ("a phrase without a verb", "using LoRA r=16, seq len 4096, on a single 3090", {"finetuning": "lora", "lora_rank": 16, "sequence_length": 4096, "gpu_name": "3090", "world_size": 1}),
    ("a sentence", "I'm full fine-tuning Llama-2-7b with LLaMA-Factory on 4 A100 80GB GPUs, batch size 2.", {"model": "Llama-2-7b", "finetuning": "full", "framework": "llamafactory", "gpu_name": "A100 80GB", "world_size": 4, "micro_batch": 2}),
    ("a sentence in Chinese", "我用两张4090微调 Qwen2.5-7B，LoRA，batch size 是 4，长度 2048", {"model": "Qwen2.5-7B", "finetuning": "lora", "micro_batch": 4, "sequence_length": 2048, "gpu_name": "4090", "world_size": 2}),
    ("a sentence in Chinese that ends in a question", "全量微调 Qwen2.5-72B，8卡A800，请问怎么解决？", {"model": "Qwen2.5-72B", "finetuning": "full", "gpu_count": 8}),
    ("labels in Chinese", "显卡：RTX 4090 24G\n批大小：4\n微调方式：QLoRA\n序列长度：8192", {"gpu_name": "RTX 4090 24G", "micro_batch": 4, "finetuning": "qlora", "sequence_length": 8192}),
    ("the title of a thread", "# Out of memory when fine-tuning an 8B model with PPO on 8 A100 GPUs using openrlhf", {"model": "8B", "method": "ppo", "gpu_name": "A100", "world_size": 8, "framework": "openrlhf"}),
    ("headings of an issue form", "### GPU\n\nRTX 3090 24GB\n\n### Batch size\n\n2", {"gpu_name": "RTX 3090 24GB", "micro_batch": 2}),
    ("a table in Markdown", "| GPU | 2x RTX 3090 |\n|---|---|\n| Batch size | 4 |", {"gpu_name": "NVIDIA GeForce RTX 3090", "gpu_count": 2, "micro_batch": 4}),
    ("an item that is a card alone", "- linux\n- 4090 24G显存", {"gpu_name": "4090 24G"}),
    ("the version of a program in backticks", "- `llamafactory` version: 0.9.3\n- TRL version: 0.9.6", {"framework": "llamafactory", "llamafactory_version": "0.9.3", "trl_version": "0.9.6"}),
    ("the size of a card before its name", "I'm trying to train a 7B PPO model on 4*40G A100s", {"model": "7B", "gpu_name": "A100 40GB", "world_size": 4}),
    ("cards that somebody has and does not say to use", "I have 2x L40S with 48GB VRAM each, this should be enough", {"gpu_name": "L40S", "gpu_count": 2, "world_size": None}),
    ("cards of each of several machines", "I'm running Llama-405B on 4 nodes of 4xA40", {"gpu_count": None, "world_size": None}),
    ("a label goes before a sentence", "I am training on my 3090\nGPU: RTX 4090", {"gpu_name": "NVIDIA GeForce RTX 4090"}),
    ("two places that disagree", "I use batch size 4.\nWe train with batch size 8.", {"micro_batch": None}),
    ("no effective batch", "I'm using a total batch size of 64 on my 4090", {"micro_batch": None, "gpu_name": "4090"}),
    ("an effective batch behind its label", "Effective batch size: 64", {"micro_batch": None, "global_batch": 64}),
    ("what somebody does not use", "I am not using LoRA and train with gradient checkpointing disabled", {"finetuning": None, "gradient_checkpointing": False}),
    ("two methods are none", "I compare LoRA and full fine-tuning on my 4090", {"finetuning": None}),
    ("two models are none", "I use full fine-tuning on BaiChuan-7B/13B", {"model": None, "finetuning": "full"}),
    ("alternatives behind a label", "Batch size: 2 or 4\nModel: Qwen2.5-7B and Llama-3.1-8B", {"micro_batch": None, "model": None}),
    ("another run that works", "it works with batch size 2 on my A100 80GB", {"micro_batch": None, "gpu_name": None}),
    ("what would be", "If I set batch size 2 on my 4090 it may fit", {"micro_batch": None, "gpu_name": None}),
    ("a question", "Can I train Llama-2-7b on my 3090?", {"model": None, "gpu_name": None}),
    ("what others have", "我之前在 A100 上 batch size 8 是正常的", {"micro_batch": None, "gpu_name": None}),
    ("keys of a config", "model_name_or_path: acme/Nimbus-8B\nper_device_train_batch_size: 4\nstage: sft\nmodel: other", {"micro_batch": None, "method": None, "model": None}),
    ("a line of a program", "2024-05-01 12:00:01 INFO Training on 4 GPUs with batch size 8", {"world_size": None, "micro_batch": None}),
    ("a version in the name of a model is no rank", "用 DeepSeek-R1-Distill-Llama-70B 做 LoRA", {"finetuning": "lora", "lora_rank": None}),
    ("the rank of a process is no rank of adapters", "I see the error on rank 5 with my 4090", {"lora_rank": None}),
    ("what the author of a program uses", "I notice you use one 3090, but I train with 2x RTX 4090", {"gpu_name": "RTX 4090", "world_size": 2}),
    ("a number of points times another", "The same batch size 6 and N = 4096*11 on my card", {"gpu_count": None}),
    ("a sentence with keys in Chinese", "目前在4 * A100-SXM4-40GB, 使用deepspeed zero2, per_device_train_batch_size=1, 全参微调, 报错显存不够", {"gpu_name": "A100-SXM4-40GB", "zero_stage": 2, "finetuning": "full"}),
    ("a command is no sentence", "$ litgpt finetune_lora acme/Nimbus-3B --data my.json --train.micro_batch_size 1", {"model": None, "micro_batch": None}),
    ("what a trainer prints of its steps", "  Instantaneous batch size per device = 1\n  Gradient Accumulation steps = 4", {"accumulation": None}),
    ("figures that TensorRT-LLM labels as a model", "Model: 139.55 / 110.70", {"model": None}),
    ("a label without a value of its kind", "GPU: 0\nZeRO stage: none\nBatch size: auto", {"gpu_name": None, "zero_stage": None, "micro_batch": None}),
]  # fmt: skip


def stated_in(text: str) -> StatedRun:
    return read_stated([("report.txt", *read_passages(text.encode()))])


@pytest.mark.parametrize(("text", "facts"), [pytest.param(text, facts, id=name) for name, text, facts in REPORTS])
def test_what_a_report_states(text: str, facts: dict[str, Any]) -> None:
    run = stated_in(text)
    found = {name: run.first(name) for name in facts}
    assert {name: None if fact is None else fact.value for name, fact in found.items()} == facts


def test_each_thing_that_is_stated_has_its_line() -> None:
    run = stated_in("hello\n\nGPU: RTX 4090\n\nI use batch size 4.")
    assert [(fact.name, fact.file, fact.line) for fact in run.facts] == [("gpu_name", "report.txt", 3), ("micro_batch", "report.txt", 5)]


@pytest.mark.parametrize(("sentence", "mood"), [
    pytest.param("I tried to fine-tune Llama-2-7b on my 3090", "run", id="who tried to train tells of the run"),
    pytest.param("尝试使用一张RTX4090去训练Qwen14B", "run", id="the same in Chinese"),
    pytest.param("I tried batch size 1", "tried", id="a setting that was tried"),
    pytest.param("even with a batch size of 1 it is out of memory", "tried", id="even with"),
    pytest.param("已经把 batch size 调到 1 了", "tried", id="a setting that was tried, in Chinese"),
    pytest.param("it works with 2 GPUs", "aside", id="another run"),
    pytest.param("the README says that 24 GB are enough", "aside", id="what a document says"),
    pytest.param("为什么 4090 也会爆显存？", "aside", id="a question in Chinese"),
    pytest.param("I train on 2 GPUs", "run", id="the run"),
])  # fmt: skip
def test_the_mood_of_a_sentence(sentence: str, mood: str) -> None:
    assert mood_of(sentence) == mood


def test_what_was_tried_is_known_apart() -> None:
    run = stated_in("I train Qwen2.5-7B on my 4090. I have tried batch size 1 and gradient checkpointing, still OOM.")
    assert {fact.name: fact.value for fact in run.tried} == {"micro_batch": 1, "gradient_checkpointing": True}
    assert run.first("micro_batch") is None


@pytest.mark.parametrize(("means", "value", "values"), [
    pytest.param("zero_stage", "ZeRO-3 without offload", {"zero_stage": 3}, id="no offload"),
    pytest.param("zero_stage", "FSDP (full shard)", {"fsdp": True}, id="another way to shard behind the label of a strategy"),
    pytest.param("micro_batch", "1,024 tokens", {"micro_batch": 1024}, id="a number with a comma"),
    pytest.param("max_model_len", "32k", {"max_model_len": 32768}, id="thousands"),
    pytest.param("micro_batch", "4-8", {}, id="a range is no number"),
    pytest.param("quantization", "4bit (nf4)", {"load_bits": 4}, id="bits"),
    pytest.param("quantization", "AWQ", {"quantization": "awq"}, id="a format"),
    pytest.param("memory_share", "0.9", {"memory_share": 0.9}, id="a share"),
    pytest.param("memory_share", "95%", {"memory_share": 0.95}, id="a share in per cent"),
    pytest.param("attention", "flash attention 2", {"attention": "flash_attention_2"}, id="a kernel"),
    pytest.param("method", "SFT, LoRA rank 64", {"finetuning": "lora", "method": "sft", "lora_rank": 64}, id="a method and its rank"),
    pytest.param("os", "Windows 11 WSL2", {"os": "Windows 11 WSL2"}, id="a system"),
    pytest.param("os", "prompt: you are helpful", {}, id="a system prompt is none"),
    pytest.param("program", "vLLM 0.8.5", {"framework": "vllm", "vllm_version": "0.8.5"}, id="a program with its version"),
    pytest.param("program", "PyTorch", {}, id="no program of the table"),
    pytest.param("gradient_checkpointing", "off", {"gradient_checkpointing": False}, id="a switch"),
])  # fmt: skip
def test_values_behind_labels(means: str, value: str, values: dict[str, Any]) -> None:
    assert dict(labelled_values(means, value)) == values


def test_every_program_of_the_table_is_a_framework() -> None:
    known = {record.framework for record in load_pack().frameworks}
    assert [name for name, _ in programs() if name not in known] == []


def test_labels_are_written_as_they_are_compared() -> None:
    assert [label for label in labels() if label != " ".join(label.lower().replace("-", " ").replace("_", " ").split())] == []


@given(st.text(max_size=600))
def test_any_text_states_something_or_nothing(text: str) -> None:
    assert all(fact.line >= 1 for fact in stated_in(text).facts)
