"""Questions in words, in English and in Chinese: what of them is understood, and that the answer says so."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli
from oomdoctor.setups.words.question import is_question, read_question

# What is asked: the model, what is done with it (None: answering), the card, how many, and what else is said.
QUESTIONS: list[tuple[str, str, str | None, str | None, int | None, dict[str, Any]]] = [
    ("will Qwen3-32B QLoRA fit on a 4090?", "Qwen3-32B", "qlora", "4090", None, {}),
    ("Can I full fine-tune Qwen3-8B on 4x A100-80GB with ZeRO-3, batch size 2, seq length 4096?", "Qwen3-8B", "full", "A100-80GB", 4, {"zero_stage": 3, "micro_batch": 2, "sequence_length": 4096}),
    ("does Llama-3.1-8B LoRA fit in 24GB of VRAM with batch size 1 and max length 8192", "Llama-3.1-8B", "lora", "24", None, {"micro_batch": 1, "sequence_length": 8192}),
    ("How much memory do I need to fine-tune Mistral-7B with LoRA rank 64?", "Mistral-7B", "lora", None, None, {"lora_rank": 64}),
    ("is an RTX 3090 enough for QLoRA of Qwen2.5-14B at 2k tokens", "Qwen2.5-14B", "qlora", "3090", None, {"sequence_length": 2048}),
    ("can two RTX 4090 serve Qwen3-32B-AWQ with vLLM?", "Qwen3-32B-AWQ", None, "4090", 2, {}),
    ("I want to run Qwen2.5-72B-Instruct on 4x H100, will it work", "Qwen2.5-72B-Instruct", None, "H100", 4, {}),
    ("full SFT of Qwen2.5-7B with LLaMA-Factory on 8x A100-40GB, ZeRO-2", "Qwen2.5-7B", "full", "A100-40GB", 8, {"zero_stage": 2}),
    ("unsloth QLoRA Llama-3.1-8B on a T4, batch size 2, 2048 tokens?", "Llama-3.1-8B", "qlora", "T4", None, {"micro_batch": 2, "sequence_length": 2048}),
    ("What card do I need to train gemma-2-9b with LoRA?", "gemma-2-9b", "lora", None, None, {}),
    ("deploy Qwen3-14B on one L40S with 32k context", "Qwen3-14B", None, "L40S", None, {"max_model_len": 32768}),
    ("axolotl lora on Llama-3.1-8B, RTX 4090, sequence length 4096, gradient checkpointing off, fits?", "Llama-3.1-8B", "lora", "4090", None, {"gradient_checkpointing": False, "sequence_length": 4096}),
    ("could I pretrain Qwen2.5-1.5B on a single A100-80GB with batch size 8?", "Qwen2.5-1.5B", "full", "A100-80GB", None, {"micro_batch": 8}),
    ("Does a 4-bit LoRA of Mistral-7B run on an RTX 3060 12GB", "Mistral-7B", "qlora", "3060", None, {}),
    ("fine-tune Qwen3-8B with fsdp on 2x L40S, full fine-tuning, context 2048", "Qwen3-8B", "full", "L40S", 2, {"fsdp": True, "sequence_length": 2048}),
    ("training Qwen3-4B with TRL lora r=32 on a 4080, does it fit", "Qwen3-4B", "lora", "4080", None, {"lora_rank": 32}),
    ("sglang with Qwen3-30B-A3B on 2 H100 cards, ok?", "Qwen3-30B-A3B", None, "H100", 2, {}),
    ("ollama Qwen2.5-32B on a 3090 with 8k context, will it fit in memory", "Qwen2.5-32B", None, "3090", None, {"max_model_len": 8192}),
    ("is 80GB enough to full fine tune Llama-3.1-8B with adafactor? I have an A100-80GB", "Llama-3.1-8B", "full", "A100-80GB", None, {"optimizer": "adafactor"}),
    ("Can I do LoRA on Qwen2.5-72B with 8 x A100-80GB, ZeRO-3, batch size 1, 4k tokens", "Qwen2.5-72B", "lora", "A100-80GB", 8, {"zero_stage": 3, "sequence_length": 4096}),
    ("will Qwen3-8B in fp8 run on an L4 with vllm", "Qwen3-8B", None, "L4", None, {"quantization": "fp8"}),
    ("ms-swift lora training for Qwen2.5-7B, one A10, max length 2048, how much vram?", "Qwen2.5-7B", "lora", "A10", None, {"sequence_length": 2048}),
    ("torchtune full finetune of Llama-3.2-3B on a RTX 4090 possible?", "Llama-3.2-3B", "full", "4090", None, {}),
    ("How do I fit a DPO run of Qwen2.5-7B with lora on a 4090", "Qwen2.5-7B", "lora", "4090", None, {}),
    ("which batch can I use for QLoRA with Qwen3-14B on an A6000, length 4096", "Qwen3-14B", "qlora", "A6000", None, {"sequence_length": 4096}),
    ("need to serve Llama-3.1-70B on 2x H200, enough?", "Llama-3.1-70B", None, "H200", 2, {}),
    ("does gradient checkpointing make Llama-3.1-8B lora fit on a 4090 at batch size 4", "Llama-3.1-8B", "lora", "4090", None, {"gradient_checkpointing": True, "micro_batch": 4}),
    ("Will freeze tuning of Qwen2.5-7B fit on an RTX 3090?", "Qwen2.5-7B", "freeze", "3090", None, {}),
    ("qlora yi-34b on a single 4090 with 1024 tokens?", "yi-34b", "qlora", "4090", None, {"sequence_length": 1024}),
    ("can my RTX 5090 train Qwen3-8B with QLoRA and packing, using packing at 8k tokens", "Qwen3-8B", "qlora", "5090", None, {"sequence_length": 8192, "packing": True}),
    ("能用一张 4090 跑 Qwen3-32B 的 QLoRA 微调吗？", "Qwen3-32B", "qlora", "4090", None, {}),
    ("两张 4090 能部署 Qwen3-32B-AWQ 吗", "Qwen3-32B-AWQ", None, "4090", 2, {}),
    ("8 张 A100-80GB 全参微调 Qwen2.5-72B，ZeRO-3，够不够？", "Qwen2.5-72B", "full", "A100-80GB", 8, {"zero_stage": 3}),
    ("Qwen3-8B 用 LoRA 微调，批大小 2，长度 4096，单张 3090 显存够吗", "Qwen3-8B", "lora", "3090", None, {"micro_batch": 2, "sequence_length": 4096}),
    ("请问 Llama-3.1-8B 全量微调需要多少显存？", "Llama-3.1-8B", "full", None, None, {}),
    ("用 LLaMA-Factory 对 Qwen2.5-7B 做 LoRA，4 张 A100-40GB，ZeRO-2，会爆显存吗", "Qwen2.5-7B", "lora", "A100-40GB", 4, {"zero_stage": 2}),
    ("一张 24GB 显卡能训练 Qwen2.5-14B 的 QLoRA 吗？上下文 2048", "Qwen2.5-14B", "qlora", "24", None, {"sequence_length": 2048}),
    ("vLLM 在 L40S 上部署 Qwen3-14B，上下文 32k，够吗", "Qwen3-14B", None, "L40S", None, {"max_model_len": 32768}),
    ("不开梯度检查点，Llama-3.1-8B LoRA 在 4090 上能跑吗，关闭梯度检查点", "Llama-3.1-8B", "lora", "4090", None, {}),
    ("unsloth 用 T4 微调 Qwen2.5-7B QLoRA，批大小为 2，可以吗", "Qwen2.5-7B", "qlora", "T4", None, {"micro_batch": 2}),
    ("Qwen2.5-72B-Instruct 推理需要几张 A100-80GB", "Qwen2.5-72B-Instruct", None, "A100-80GB", None, {}),
    ("用 SGLang 跑 Qwen3-30B-A3B，两张 H100 够吗", "Qwen3-30B-A3B", None, "H100", 2, {}),
    ("单卡 A100-80GB 预训练 Qwen2.5-1.5B，批大小 8", "Qwen2.5-1.5B", "full", "A100-80GB", None, {"micro_batch": 8}),
    ("四张 L40S 用 FSDP 全参训练 Qwen3-8B，长度 2048", "Qwen3-8B", "full", "L40S", 4, {"fsdp": True, "sequence_length": 2048}),
    ("4 比特量化微调 Mistral-7B，RTX 3060 12GB 行吗", "Mistral-7B", "qlora", "3060", None, {}),
    ("Gemma-2-9b LoRA 秩 64 在 3090 上训练够吗", "Gemma-2-9b", "lora", "3090", None, {"lora_rank": 64}),
    ("ollama 运行 Qwen2.5-32B，3090 放得下吗", "Qwen2.5-32B", None, "3090", None, {}),
    ("冻结微调 Qwen2.5-7B 用 3090 可以吗", "Qwen2.5-7B", "freeze", "3090", None, {}),
    ("两块 H200 部署 Llama-3.1-70B 显存够吗", "Llama-3.1-70B", None, "H200", 2, {}),
    ("Qwen3-8B 的 fp8 用 vLLM 在 L4 上能跑吗", "Qwen3-8B", None, "L4", None, {"quantization": "fp8"}),
    ("ms-swift 训练 Qwen2.5-7B LoRA，A10 一张，max_length 2048", "Qwen2.5-7B", "lora", "A10", None, {"sequence_length": 2048}),
    ("torchtune 全参微调 Llama-3.2-3B，4090 行不行", "Llama-3.2-3B", "full", "4090", None, {}),
    ("用 TRL 给 Qwen3-4B 做 LoRA，r=32，4080 够吗", "Qwen3-4B", "lora", "4080", None, {"lora_rank": 32}),
    ("A6000 上 QLoRA 训练 Qwen3-14B，长度 4096", "Qwen3-14B", "qlora", "A6000", None, {"sequence_length": 4096}),
    ("5090 能用 QLoRA 训练 Qwen3-8B 吗，8k 上下文", "Qwen3-8B", "qlora", "5090", None, {"sequence_length": 8192}),
    ("axolotl 在 4090 上 LoRA 训练 Llama-3.1-8B，长度 4096 会 OOM 吗", "Llama-3.1-8B", "lora", "4090", None, {"sequence_length": 4096}),
    ("4 张 H100 能跑 Qwen2.5-72B-Instruct 吗", "Qwen2.5-72B-Instruct", None, "H100", 4, {}),
    ("DPO 训练 Qwen2.5-7B LoRA，4090 上怎么放得下", "Qwen2.5-7B", "lora", "4090", None, {}),
    ("yi-34b QLoRA 单卡 4090，1024 token 可以吗", "yi-34b", "qlora", "4090", None, {"sequence_length": 1024}),
    ("A100-80GB 全参微调 Llama-3.1-8B，用 adafactor，够吗", "Llama-3.1-8B", "full", "A100-80GB", None, {"optimizer": "adafactor"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "model", "trained", "card", "cards", "settings"), [pytest.param(*each, id=each[0]) for each in QUESTIONS])
def test_what_is_understood(
    text: str, model: str, trained: str | None, card: str | None, cards: int | None, settings: dict[str, Any]
) -> None:
    assert is_question(text)
    read = read_question(text)
    assert (read.model or "").lower().endswith(model.lower())
    assert read.serves == (trained is None)
    assert read.settings.finetuning == trained
    assert (card or "") in (read.gpu or "")
    assert (read.gpu is None) == (card is None)
    assert read.gpus == cards
    assert {name: getattr(read.settings, name) for name in settings} == settings


@pytest.mark.parametrize(
    "name", ["Qwen3 8B", "meta-llama/Llama-3.1-8B-Instruct", "Qwen2.5 VL 7B Instruct AWQ", "./my model folder", "sft.yaml"]
)
def test_the_name_of_a_model_is_no_question(name: str) -> None:
    assert not is_question(name)


def test_the_answer_begins_with_what_was_understood_and_options_go_before() -> None:
    asked = ["estimate", "will Qwen3-8B QLoRA fit on a 4090 with batch size 2?", "--length", "1024", "--lang", "en"]
    first, *_ = CliRunner().invoke(cli, asked).output.splitlines()
    assert first == "Qwen/Qwen3-8B, QLoRA (nf4) of rank 8, batch 2, 1,024 tokens, 1 card"


def test_a_question_without_a_model_says_so() -> None:
    done = CliRunner().invoke(cli, ["estimate", "will my model fit on a 4090?"])
    assert done.exit_code != 0
    assert "no model found in" in (done.output + str(done.exception))
