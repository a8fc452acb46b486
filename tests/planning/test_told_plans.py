"""A text without a log is answered by the memory model where it names model, card and method, and asked for more where it does not."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.planning.told.told_plans import judge_told


@pytest.mark.parametrize(("text", "fits", "fixes"), [
    pytest.param("Full fine-tuning of Qwen2.5-7B on one RTX 4090 24GB, batch 1, is OOM", "no", {"Fewer trainable parameters"}, id="states that fill several cards"),
    pytest.param("LoRA of Qwen2.5-7B on an RTX 4090 24GB, batch 4, length 4096, without gradient checkpointing, goes OOM", "no", {"Gradient checkpointing"}, id="activations that nothing computes again"),
    pytest.param("QLoRA of Qwen2.5-7B on an A100 80GB, batch 1, length 1024, gradient checkpointing on, and still OOM", "yes", set(), id="a run that fits, so that something else fills the card"),
    pytest.param("4090 24G 跑 Qwen2.5-7B 全量微调，爆显存", "no", {"Fewer trainable parameters"}, id="in Chinese"),
    pytest.param("inference with Qwen2.5-72B on one RTX 4090 24GB is OOM", "no", set(), id="weights that no setting makes smaller"),
])  # fmt: skip
def test_a_run_that_is_told_is_worked_out(text: str, fits: str, fixes: set[str]) -> None:
    told = judge_told(text, None, {}, load_pack())
    assert told is not None and told.plans is not None
    assert told.plans.fits == fits
    titles = {change.title.en.rstrip(".") for change in told.changes}
    assert fixes <= titles and bool(titles) == bool(fixes)


@pytest.mark.parametrize("text", [
    pytest.param("my 7B is OOM on a 24GB card, please help", id="no method"),
    pytest.param("LoRA of Qwen2.5-7B is OOM, please help", id="no card"),
    pytest.param("LoRA of Qwen2.5-7B on an A800 is OOM", id="a card of two sizes"),
    pytest.param("merging Qwen2.5-7B LoRA on an RTX 4090 24GB was killed, please help", id="the host's memory"),
])  # fmt: skip
def test_what_is_not_told_is_not_worked_out(text: str) -> None:
    told = judge_told(text, None, {}, load_pack())
    assert told is not None and told.plans is None


@pytest.mark.parametrize("text", [
    pytest.param("LoRA of Qwen2.5-7B on one RTX 4090 24GB works", id="nothing failed"),
    pytest.param("LoRA of Qwen2.5-7B on one RTX 4090 24GB, no OOM", id="nothing failed, said with the word"),
    pytest.param("[Feature] LoRA of Qwen2.5-7B on one RTX 4090 24GB without OOM", id="a wish"),
])  # fmt: skip
def test_a_text_that_reports_no_shortage_is_not_told(text: str) -> None:
    assert judge_told(text, None, {}, load_pack()) is None


def test_keys_are_those_of_the_framework_that_the_text_names() -> None:
    told = judge_told(
        "llamafactory-cli train, full fine-tuning of Qwen2.5-7B on 8 x A100 80GB with ZeRO-3, length 16384, OOM", None, {}, load_pack()
    )
    assert told is not None
    assert {setting.framework for change in told.changes for setting in change.settings} <= {"llamafactory", "deepspeed"}
