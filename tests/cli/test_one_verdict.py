"""Whether a run fits is judged in one place: `estimate`, `check`, `plan` and `diagnose` say the same of the same run on the same card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oomdoctor.cli.main import cli
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.units import MIB

RUNS = st.fixed_dictionaries({
    "model_name_or_path": st.sampled_from(["Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-7B", "zai-org/glm-4-9b-chat", "meta-llama/Llama-3.1-8B"]),
    "finetuning_type": st.sampled_from(["lora", "full"]),
    "per_device_train_batch_size": st.integers(1, 16),
    "cutoff_len": st.sampled_from([512, 2048, 8192]),
    "disable_gradient_checkpointing": st.booleans(),
    "packing": st.booleans(),
    "eval_strategy": st.sampled_from(["no", "steps"]),
})  # fmt: skip
CARDS = st.sampled_from([8, 16, 24, 48, 80])
ROOMY = {"model_name_or_path": "Qwen/Qwen2.5-7B", "finetuning_type": "lora", "per_device_train_batch_size": 1, "cutoff_len": 1024}
NEAR_THE_LIMIT = {
    "model_name_or_path": "Qwen/Qwen2.5-1.5B", "finetuning_type": "full", "per_device_train_batch_size": 7, "cutoff_len": 512,
    "disable_gradient_checkpointing": True, "packing": True, "eval_strategy": "no",
}  # fmt: skip
"""The least that it needs lies between what a card of 24 GB has and 24 GiB."""
LOG = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB (GPU 0; {total}.00 MiB total capacity; 3.00 GiB already "
    "allocated; 1.00 GiB free; 3.50 GiB reserved in total by PyTorch)\n"
)


def report_of(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, [*arguments, "--format", "json"])
    assert done.exit_code in (0, 1), done.output
    report: dict[str, Any] = json.loads(done.output)
    return report


def config_with(folder: Path, run: dict[str, object]) -> str:
    path = folder / "sft.yaml"
    path.write_text(json.dumps({"stage": "sft", "do_train": True, "bf16": True, **run}), encoding="utf-8")
    return str(path)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RUNS, CARDS)
@example(NEAR_THE_LIMIT, 24)
def test_four_commands_agree_on_one_card(tmp_path: Path, run: dict[str, object], size: int) -> None:
    gpu, card = ("--gpu", f"{size}GB"), card_named(f"{size}GB")
    assert card is not None
    config, log = config_with(tmp_path, run), tmp_path / "train.log"
    log.write_text(LOG.format(total=card.bytes // MIB), encoding="utf-8")
    verdicts = {
        "estimate": report_of("estimate", config, *gpu)["card"]["fits"],
        "check": report_of("check", config, *gpu)["fits"],
        "plan": report_of("plan", config, *gpu, "--top", "1")["fits"],
        "diagnose": report_of("diagnose", str(log), "--config", config, "--env", "none")["estimate"]["fits"],
    }
    assert len(set(verdicts.values())) == 1, verdicts


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RUNS, CARDS, st.integers(2, 8))
def test_three_commands_agree_on_several_cards(tmp_path: Path, run: dict[str, object], total: int, cards: int) -> None:
    where = (config_with(tmp_path, run), "--gpu", f"{total}GB", "--gpus", str(cards))
    verdicts = {
        report_of("estimate", *where)["card"]["fits"],
        report_of("check", *where)["fits"],
        report_of("plan", *where, "--top", "1")["fits"],
    }
    assert len(verdicts) == 1


@pytest.mark.parametrize("command", ["estimate", "check"])
@pytest.mark.parametrize(("lang", "sentences"), [
    pytest.param("en", ["The run needs ", " usable. It needs the most during this phase: ", "nvidia-smi may show ", ", because torch keeps freed blocks."], id="English"),
    pytest.param("zh", ["这次运行需要 ", "可规划的显存为 ", "需要最多的阶段：", "nvidia-smi 可能显示", "，因为 torch 会缓存已释放的显存块。"], id="Chinese"),
])  # fmt: skip
def test_it_is_said_by_what_the_verdict_is(tmp_path: Path, command: str, lang: str, sentences: list[str]) -> None:
    outputs = (
        CliRunner()
        .invoke(cli, [command, config_with(tmp_path, dict(ROOMY)), "--gpu", "80GB", "--lang", lang, "--format", "markdown"])
        .output
    )
    assert all(sentence in outputs for sentence in sentences)


def test_what_torch_would_give_back_is_no_reason_to_refuse_a_run(tmp_path: Path) -> None:
    """Lengths differ, so that nvidia-smi may show more than the card has; the live tensors are far from that."""
    run = {**ROOMY, "per_device_train_batch_size": 8, "disable_gradient_checkpointing": False}
    report = report_of("estimate", config_with(tmp_path, run), "--gpu", "48GB")
    assert report["card"]["needed_bytes"]["high"] <= report["card"]["usable_bytes"]
    assert report["per_gpu_bytes"]["high"] > report["card"]["needed_bytes"]["high"]
    assert report["card"]["fits"] == "yes"


def test_cards_that_differ_are_listed(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        "megatron sft --model Qwen/Qwen2.5-7B --pipeline_model_parallel_size 4 --micro_batch_size 1 --max_length 2048 --train_type full\n",
        encoding="utf-8",
    )
    where = (str(script), "--framework", "ms-swift", "--model", "Qwen/Qwen2.5-7B", "--gpus", "4")
    ranks = report_of("estimate", *where)["ranks"]
    assert [(rank["first"], rank["last"], rank["embedding"], rank["head"]) for rank in ranks] == [
        (0, 0, True, False),
        (1, 2, False, False),
        (3, 3, False, True),
    ]
    assert report_of("estimate", *where)["per_gpu_bytes"]["expected"] == max(rank["per_gpu_bytes"]["expected"] for rank in ranks)
    english, chinese = (
        CliRunner().invoke(cli, ["estimate", *where, "--lang", lang, "--format", "markdown"]).output for lang in ("en", "zh")
    )
    assert all(label in english for label in ("Card by card", "stage 1 of 4", "stages 2 to 3, at most", "on the fullest of 4 cards"))
    assert all(label in chinese for label in ("各张卡", "流水线第 1 级，共 4 级", "流水线第 2 至 3 级，至多", "4 张卡中最满的一张"))


def test_cards_that_are_alike_are_not_listed(tmp_path: Path) -> None:
    where = (config_with(tmp_path, dict(ROOMY)), "--gpus", "4")
    assert report_of("estimate", *where)["ranks"] == []
    assert "Card by card" not in CliRunner().invoke(cli, ["estimate", *where, "--lang", "en"]).output
