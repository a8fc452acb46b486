"""A run in somebody's words: model, card, how many, how trained; what is not said stays unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.setups.words.told import read_told


@pytest.mark.parametrize(("text", "model", "card", "cards", "finetuning"), [
    pytest.param("GLM-4V-9B LoRA on one A100 80 GB goes out of memory", "GLM-4V-9B", "A100 80 GB", 1, "lora", id="in one sentence"),
    pytest.param("4090 24G 跑 Qwen2.5-7B 全量微调 爆显存", "Qwen2.5-7B", "4090 24G", 1, "full", id="in Chinese"),
    pytest.param("full fine-tuning of Llama 3.1 8B, 2x A100 80GB", "Llama-3.1-8B", "A100 80GB", 2, "full", id="a name with blanks, cards with a times sign"),
    pytest.param("QLoRA, Qwen2.5 14B, a single RTX 3090", "Qwen2.5-14B", "RTX 3090", 1, "qlora", id="a single card"),
    pytest.param("用两张 V100 32G LoRA 微调 glm4-9b", "glm4-9b", "V100 32G", 2, "lora", id="two cards in Chinese, a dash left out"),
    pytest.param("RTX 3060 显存 12G，chatglm3-6b lora", "chatglm3-6b", "RTX 3060 12GB", 1, "lora", id="a card whose size is told apart from it"),
    pytest.param("lora of a 7B model, 24GB card", "7B", "24GB", 1, "lora", id="only sizes"),
    pytest.param("4-bit LoRA of mistral 7b with four RTX 4090 cards", "mistral-7b", "RTX 4090", 4, "qlora", id="a number in words"),
    pytest.param("my training fails", None, None, 1, None, id="nothing told"),
    pytest.param("7B or 13B, which of them?", None, None, 1, None, id="two sizes are none"),
    pytest.param("Qwen9-30B-A3B full training", None, None, 1, "full", id="a mixture of experts is as large as nothing here"),
])  # fmt: skip
def test_what_is_told(text: str, model: str | None, card: str | None, cards: int, finetuning: str | None) -> None:
    run = read_told(text)
    assert (run.settings.model, run.card_name, run.cards, run.settings.finetuning) == (model, card, cards, finetuning)
    assert (run.shape is None) == (model is None)


@pytest.mark.parametrize(("text", "batch", "length", "checkpointing"), [
    pytest.param("batch size 4, length 2048, gradient checkpointing on", 4, 2048, True, id="numbers behind their names"),
    pytest.param("bs=2, 8k context, without gradient checkpointing", 2, 8192, False, id="short forms"),
    pytest.param("batch 1", 1, None, None, id="the batch alone"),
    pytest.param("批大小 8，长度 4096，开了梯度检查点", 8, 4096, True, id="in Chinese"),
    pytest.param("step 12 of 900, 16 bit", None, None, None, id="other numbers"),
])  # fmt: skip
def test_the_numbers_that_are_told(text: str, batch: int | None, length: int | None, checkpointing: bool | None) -> None:
    settings = read_told(text).settings
    assert (settings.micro_batch, settings.sequence_length, settings.gradient_checkpointing) == (batch, length, checkpointing)


def test_a_card_of_several_sizes_is_named_and_not_known() -> None:
    run = read_told("LoRA of Qwen2.5-7B on an A800")
    assert (run.card_name, run.card) == ("A800", None)


@pytest.mark.parametrize(("text", "card", "cards"), [
    pytest.param("LoRA on MI300X 192GB is OOM", "MI300X 192GB", 1, id="of AMD, and its size is no number of cards"),
    pytest.param("8 张昇腾910B2 微调时爆显存", "昇腾910B2", 8, id="of Huawei"),
    pytest.param("M3 Max 64GB runs out of memory", "M3 Max 64GB", 1, id="of Apple"),
    pytest.param("Kaggle T4 x2, lora", "T4", 2, id="a short name where cards are lent"),
    pytest.param("it is OOM on a T4", "T4", 1, id="a short name on which something runs"),
    pytest.param("two RTX 3090s", "RTX 3090s", 2, id="a plural"),
    pytest.param("RTX PRO 6000, full fine-tuning", "RTX PRO 6000", 1, id="a name of three words"),
])  # fmt: skip
def test_cards_in_prose(text: str, card: str, cards: int) -> None:
    run = read_told(text)
    assert run.card is not None
    assert (run.card_name, run.cards) == (card, cards)


@pytest.mark.parametrize("text", [
    pytest.param("see appendix A10 for the loss", id="a part of a document"),
    pytest.param("with L2 regularisation and an L2 loss", id="a norm"),
    pytest.param("table A2 shows the memory", id="a table"),
    pytest.param("it stops at step 4090 of 10000", id="a step"),
    pytest.param("the server listens on localhost:3090", id="a port"),
    pytest.param("after 3080 samples it is OOM", id="a number of samples"),
    pytest.param("embeddings of bge-m3", id="the end of a model's name"),
])  # fmt: skip
def test_what_looks_like_a_card_is_none(text: str) -> None:
    run = read_told(text)
    assert (run.card_name, run.card) == (None, None)


@given(st.text(max_size=400))
def test_any_text_tells_something_or_nothing(text: str) -> None:
    assert read_told(text).cards >= 1
