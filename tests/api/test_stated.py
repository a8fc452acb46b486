"""What a report states in a whole diagnosis: it counts where log and configs are silent, and nothing that is in force or was tried is advised."""

from __future__ import annotations

import pytest

import oomdoctor
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.diagnosis.needs import tells_need
from oomdoctor.report.render.terminal import render
from oomdoctor.report.wording.wording import Wording

REFUSED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total} GiB of which 57.06 MiB is free."
    " Including non-PyTorch memory, this process has {total} GiB memory in use. Of the allocated memory {live} GiB is allocated by PyTorch,"
    " and 216.98 MiB is reserved by PyTorch but unallocated.\n"
)
ON_40, ON_24 = (
    REFUSED.format(asked="172.00 MiB", total="39.39", live="38.22"),
    REFUSED.format(asked="9.28 GiB", total="23.53", live="20.90"),
)
FORWARD = '  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward\n'
LOSS = '  File "/opt/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy\n'
WHOLE = "I'm full fine-tuning Llama-2-7b with Hugging Face Trainer on a single A100 40GB, batch size 1, seq len 1024.\n\n"


def screen(diagnosis: Diagnosis, language: str = "en") -> str:
    shown = render(compose(diagnosis, Wording(language), "0"), width=400, color=False, full=True)
    return " ".join(shown.split())


def settings_of(text: str) -> dict[str, object]:
    training = oomdoctor.diagnose(text).case.training
    return {} if training is None else dict(training.settings.known())


def test_a_report_is_read_where_nothing_else_says_it() -> None:
    diagnosis = oomdoctor.diagnose(WHOLE + FORWARD + ON_40)
    training = diagnosis.case.training
    assert training is not None
    assert {"model", "finetuning", "micro_batch", "sequence_length", "world_size"} == set(training.stated)
    assert (training.places["micro_batch"].line, diagnosis.case.facts["log.framework"]) == (1, "transformers")


def test_what_the_run_printed_goes_before_what_is_stated() -> None:
    text = WHOLE + "  per_device_train_batch_size: 4\n" + FORWARD + ON_40
    assert settings_of(text)["micro_batch"] == 4


def test_no_text_is_read_where_nothing_failed() -> None:
    assert oomdoctor.diagnose(WHOLE + "{'train_runtime': 12.5, 'train_loss': 1.2}\n").case.stated.facts == ()


def test_a_card_of_another_size_than_the_one_that_failed_is_not_taken() -> None:
    assert "log.gpu_name" not in oomdoctor.diagnose("GPU: RTX 3090\n\n" + FORWARD + ON_40).case.facts


def test_a_card_of_several_sizes_is_the_one_that_failed() -> None:
    assert "40" in str(oomdoctor.diagnose("GPU: A100\n\n" + FORWARD + ON_40).case.facts["log.gpu_name"])


def test_a_server_has_no_settings_of_training() -> None:
    settings = settings_of("Provider: vLLM\nBatch size: 4\nContext length: 8192\n\n" + FORWARD + ON_40)
    assert (settings.get("micro_batch"), settings.get("max_model_len")) == (None, 8192)


def test_cards_of_a_list_count_where_the_run_is_sharded() -> None:
    assert settings_of("GPUs: 2x A100 40GB\nZeRO stage: 2\n\n" + FORWARD + ON_40)["world_size"] == 2
    assert "world_size" not in settings_of("GPUs: 2x A100 40GB\n\n" + FORWARD + ON_40)


@pytest.mark.parametrize(("language", "words"), [
    pytest.param("en", "The memory model estimates that Llama-2-7b-hf needs about 50", id="in English"),
    pytest.param("zh", "按显存模型估算，Llama-2-7b-hf 每张卡约需 50", id="in Chinese"),
])  # fmt: skip
def test_the_cause_says_what_the_run_needs(language: str, words: str) -> None:
    state = '  File "/opt/conda/lib/python3.10/site-packages/torch/optim/adamw.py", line 112, in _init_group\n'
    shown = screen(oomdoctor.diagnose(WHOLE + state + ON_40), language)
    assert words in shown
    assert ("This relies on statements in the report" if language == "en" else "依据报告中的说明") in shown


def test_what_stands_whatever_batch_and_length_are_is_told_without_them() -> None:
    diagnosis = oomdoctor.diagnose("I'm full fine-tuning Llama-2-7b on a single A100 40GB.\n\n" + FORWARD + ON_40)
    assert diagnosis.case.estimate is not None
    assert (diagnosis.case.estimate.is_told, diagnosis.case.estimate.stands_too_large) == (False, True)
    assert "before any activation" in screen(diagnosis)


@pytest.mark.parametrize("report", [
    pytest.param("I'm fine-tuning Llama-2-7b with LoRA on a single A100 40GB.\n\n", id="adapters stand on it"),
    pytest.param("I'm fine-tuning Llama-2-7b on a single A100 40GB.\n\n", id="nobody says what is trained"),
    pytest.param("I'm full fine-tuning my own model on a single A100 40GB.\n\n", id="nobody says which model"),
])  # fmt: skip
def test_a_run_of_which_too_little_is_known_needs_nothing(report: str) -> None:
    assert not tells_need(oomdoctor.diagnose(report + FORWARD + ON_40).case)


def test_a_run_that_had_trained_was_another_one_than_it_is_said_to_be() -> None:
    steps = "  4%|4         | 21/520 [00:58<23:11,  2.79s/it]\n"
    assert not tells_need(oomdoctor.diagnose("I'm full fine-tuning Llama-2-7b on a single A100 40GB.\n\n" + steps + FORWARD + ON_40).case)


def test_the_first_step_is_the_plan_that_fits() -> None:
    text = "我用两张4090微调 Qwen2.5-7B，LoRA，ZeRO-2，batch size 是 4，长度 4096，一开始训练就爆显存。\n" + LOSS + ON_24
    first = oomdoctor.diagnose(text).findings[0].fixes[0]
    assert first.fits == "yes"
    assert ("train_micro_batch_size_per_gpu", "1") in {(setting.key, setting.to) for setting in first.settings}


def test_what_was_tried_is_left_out_and_told() -> None:
    report = "I am fine-tuning Qwen2.5-7B with LoRA using LLaMA-Factory on a 4090, cutoff_len 4096."
    proposed, tried = (
        {setting.sets for finding in diagnosis.findings for fix in finding.fixes for setting in fix.settings}
        for diagnosis in (oomdoctor.diagnose(f"{report}{more}\n{LOSS}{ON_24}") for more in ("", " I have tried batch size 1, still OOM."))
    )
    assert ("micro_batch" in proposed, "micro_batch" in tried) == (True, False)
    assert "Left out because, according to the report, it was tried: I have tried batch size 1." in screen(
        oomdoctor.diagnose(f"{report} I have tried batch size 1.\n{LOSS}{ON_24}")
    )


@pytest.mark.parametrize(("command", "framework", "settings"), [
    pytest.param("openrlhf.cli.train_ppo --zero_stage 2 --pretrain meta-llama/Llama-3.1-8B --micro_train_batch_size 2 --adam_offload", "openrlhf", {"zero_stage": 2, "micro_batch": 2, "model": "meta-llama/Llama-3.1-8B", "offload_optimizer": "cpu"}, id="a module without its interpreter"),
    pytest.param("NPROC_PER_NODE=2 \\\nswift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n    --per_device_train_batch_size 1", "ms-swift", {"world_size": 2, "micro_batch": 1}, id="variables before the program"),
    pytest.param("see.the.module docs for --zero_stage 2", None, {}, id="a sentence is no command"),
])  # fmt: skip
def test_commands_that_are_cut(command: str, framework: str | None, settings: dict[str, object]) -> None:
    diagnosis = oomdoctor.diagnose(f"{command}\n\n{FORWARD}{ON_40}")
    training = diagnosis.case.training
    shown = diagnosis.case.facts.get("log.framework") or (training.framework if training is not None else None)
    known = {} if training is None else training.settings.known()
    assert (shown, {name: known.get(name) for name in settings}) == (framework, settings)
