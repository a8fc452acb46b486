"""The answer to a reporter and the issue to file: short, kind, exact, in the right language, and never more than is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report import samples

from oomdoctor.api import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.document import Document
from oomdoctor.report.issue.issue import compose_issue
from oomdoctor.report.issue.missing_info import missing_info
from oomdoctor.report.issue.reply import compose_reply, language_of
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wording.phrases import setting_line
from oomdoctor.report.wording.wording import Wording

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "fixtures" / "cases").glob("*/train.log"))
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.69 GiB of which 1.02 GiB is free."


@cache
def of_case(case: Path) -> Diagnosis:
    config = sorted(str(path) for pattern in ("*config*.*", "*.json") for path in case.glob(pattern))
    return pipeline.diagnose_logs(["train.log"], load_pack(), text=(case / "train.log").read_bytes(), config=config)


def named(name: str) -> Path:
    return next(case for case in CASES if case.name == name)


def of_text(text: str) -> Diagnosis:
    return pipeline.diagnose_logs(["-"], load_pack(), text=text.encode())


def shown(document: Document) -> str:
    """What is seen before anything is opened."""
    return re.sub(r"<details>.*?</details>\n\n", "", markdown(redact(document)), flags=re.S)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_an_answer_is_short_and_an_issue_fits_its_page(case: Path, lang: str) -> None:
    assert len(shown(compose_reply(of_case(case), Wording(lang), "0")).splitlines()) < 20
    assert len(shown(compose_issue(of_case(case), Wording(lang), "0")).splitlines()) < 60


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("form", [compose_reply, compose_issue])
@pytest.mark.parametrize("sample", samples.ALL.values(), ids=samples.ALL)
def test_every_kind_of_verdict_can_be_written(sample: Callable[[], Diagnosis], form: Callable[..., Document], lang: str) -> None:
    text = markdown(form(sample(), Wording(lang), "0"))
    assert "{" not in text and "None" not in text
    assert bool(re.search("[\u4e00-\u9fff]", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S))) is (lang == "zh") or lang == "en"


def test_an_answer_says_what_the_log_shows_with_its_line() -> None:
    reply = shown(compose_reply(of_text(f"step 1\n{OOM}\n"), Wording("en"), "0"))
    assert reply.startswith(
        "Thank you for the report. GPU memory ran out on GPU 1: 2.00 GiB requested, 1.02 GiB of 23.69 GiB free. (line 2)"
    )


def test_an_answer_names_at_most_three_steps_and_asks_for_at_most_two_things() -> None:
    reply = shown(compose_reply(samples.device_oom(), Wording("en"), "0"))
    assert re.findall(r"^(\d)\. ", reply, re.M) in (["1", "2", "3"], ["1", "2"], ["1"])
    assert reply.count("; and ") <= 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_person_on_windows_is_not_sent_to_the_linux_kernel(lang: str) -> None:
    assert not {"dmesg", "cgroup"} & set(
        re.findall(r"[a-z]+", shown(compose_reply(of_case(named("windows-page-file")), Wording(lang), "0")))
    )


def test_steps_come_in_the_order_of_the_findings() -> None:
    diagnosis = of_case(named("vllm-full-card"))
    first = diagnosis.findings[0].fixes[0].title.en.rstrip(".")
    assert f"1. **{first}.**" in shown(compose_reply(diagnosis, Wording("en"), "0"))


@pytest.mark.parametrize(("lang", "part"), [("en", "This is not a memory failure. "), ("zh", "这不是内存或显存不足：")])
def test_a_look_alike_is_said_to_be_one(lang: str, part: str) -> None:
    diagnosis = of_text(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading"
    )
    assert part in shown(compose_reply(diagnosis, Wording(lang), "0"))


def test_what_is_void_in_a_config_comes_before_what_to_try(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text("stage: sft\ndo_train: true\nfinetuning_type: lora\nfp16: true\nbf16: true\n", encoding="utf-8")
    diagnosis = pipeline.diagnose_logs(["-"], load_pack(), text=OOM.encode(), config=[str(config)])
    reply = shown(compose_reply(diagnosis, Wording("en"), "0"))
    assert reply.index("In the config, ") < reply.index("Worth trying")
    assert len(reply.splitlines()) < 20
    assert "In your config" in shown(compose_issue(diagnosis, Wording("en"), "0"))


def test_a_survived_shortage_is_not_asked_about() -> None:
    reply = shown(compose_reply(samples.survived(), Wording("en"), "0"))
    assert "please add" not in reply and "No failure" in reply


def test_where_nothing_failed_the_whole_log_is_asked_for() -> None:
    reply = shown(compose_reply(of_text("all is well\n"), Wording("en"), "0"))
    assert "shows no failure" in reply and "from the start of the run to its last line" in reply and "Worth trying" not in reply


NO_LOG = "the log as text"


@pytest.mark.parametrize(("text", "parts", "absent"), [
    pytest.param("After an upgrade I get\n\nImportError: cannot import name 'a' from 'b'\n", ["This is not a memory failure", "ImportError", "the complete traceback"], ["every rank"], id="another error is named"),
    pytest.param("It dies.\n\nTraceback (most recent call last):\n  File \"a.py\", line 2, in f\nAttributeError: 'X' object has no attribute 'y'\n", ["AttributeError"], ["the complete traceback"], id="a traceback that is there is not asked for"),
    pytest.param("training is OOM, 24GB card, 7B model, urgent", ["You write that memory ran out", NO_LOG, "launch command"], ["nvidia-smi"], id="nothing but words, and the card is told"),
    pytest.param("training is OOM, please help", ["You write that memory ran out", NO_LOG, "launch command", "which model"], [], id="nothing but words"),
    pytest.param("My run is OOM.\n\n$ python train.py --rows 4\n", [NO_LOG], ["launch command"], id="the command is there"),
    pytest.param("My loss becomes nan after step 40, no OOM.\n{'loss': nan, 'grad_norm': nan, 'epoch': 0.1}\n", ["not a number"], ["shows no failure"], id="a loss of nan"),
    pytest.param("{'loss': 1.9, 'grad_norm': nan, 'epoch': 0.1}\nDone.\n", ["shows no failure"], ["not a number"], id="one gradient that overflowed"),
    pytest.param("### Feature request\nHalve the batch when a run is out of memory.\n", ["requests a change"], [NO_LOG, "please add"], id="a wish"),
    pytest.param("Docs: the out of memory page has a dead link\n", ["requests a change"], [NO_LOG], id="a request about documents"),
    pytest.param("Loss is NaN after 90 steps. No OOM.\n", ["not a number"], ["shows no failure", "You write that memory ran out"], id="another trouble"),
    pytest.param("LoRA of GLM-4-9B on one RTX 4090 24GB with batch 8 and length 4096 is OOM", ["Calculated from the description", "does not fit", "Expected use of the card", NO_LOG], ["which model", "nvidia-smi"], id="a run that is told is worked out"),
    pytest.param(f"PyTorch version: 2.6.0+cu124\ntransformers==4.50.0\n\n```\n{OOM}\n```\n", ["GPU memory ran out"], ["collect_env", "pip list"], id="versions that are there are not asked for"),
])  # fmt: skip
def test_an_answer_fits_what_was_posted(text: str, parts: list[str], absent: list[str]) -> None:
    reply = shown(compose_reply(of_text(text), Wording("en"), "0", text))
    assert [part for part in parts if part not in reply] == []
    assert [part for part in absent if part in reply] == []


def test_a_run_that_is_told_in_chinese_is_answered_in_chinese() -> None:
    text = "求助：4090 24G 跑 Qwen2.5-7B 全量微调，爆显存，怎么办？"
    reply = shown(compose_reply(of_text(text), Wording(language_of(text) or "en"), "0", text))
    assert "放不下" in reply and "占用显存的是" in reply and "日志" in reply


def test_an_open_verdict_says_what_would_settle_it_and_does_not_ask_for_it_again() -> None:
    reply = shown(compose_reply(of_text("Killed\n"), Wording("en"), "0"))
    assert reply.count("dmesg -T | grep -iE 'killed process|oom'") == 1


@pytest.mark.parametrize(("text", "lang"), [
    pytest.param("训练到一半显存就不够了，请问怎么办？\n```\nCUDA error\n```", "zh", id="a question in Chinese above the log"),
    pytest.param("RuntimeError: x\n\n请问这是什么原因", "zh", id="a question below it"),
    pytest.param("我用 LLaMA-Factory 微调 GLM-4-9B，batch size 为 1 也 OOM，求助", "zh", id="Chinese with names in Latin letters"),
    pytest.param("Training dies.\n```\n[INFO] 样本：你好，请介绍一下你自己。\n```\nAny idea?", None, id="Chinese data inside the log of an English report"),
    pytest.param("### Reproduction\n```text\n训练到一半就报错退出了，请问怎么解决？\nRuntimeError: x\n```\n", "zh", id="a question in the block of a form"),
    pytest.param("CUDA out of memory\n", None, id="a log alone"),
    pytest.param("File \"/home/张三/train.py\", line 3, in main", None, id="a name in a path"),
    pytest.param("", None, id="nothing"),
])  # fmt: skip
def test_the_language_is_that_of_the_sentences_around_the_log(text: str, lang: str | None) -> None:
    assert language_of(text) == lang


@given(st.text(max_size=400))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text) in ("zh", None)


def test_an_issue_shows_the_message_word_by_word_and_a_ledger_that_adds_up() -> None:
    text = markdown(compose_issue(of_case(named("glm4-lora-multi-gpu")), Wording("en"), "0"))
    assert "```text\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 222.00 MiB." in text
    total = next(part for part in text.split("\n") if part.startswith("| total |"))
    assert "23.69 GiB" in total


def test_an_issue_holds_no_secret_of_the_log() -> None:
    log = f'  File "/home/somebody/run.py", line 3, in main\nper_device_train_batch_size=4\n{OOM}\n'
    assert "somebody" in markdown(compose_issue(of_text(log), Wording("en"), "0"))
    assert "somebody" not in markdown(redact(compose_issue(of_text(log), Wording("en"), "0")))


def test_what_the_log_shows_is_not_asked_for() -> None:
    plain, richer = of_text(OOM), of_text(f"per_device_train_batch_size=4\ntorch version: 2.4.0\n{OOM}")
    questions = [{question.what.en.split(",")[0] for question in missing_info(diagnosis.case)} for diagnosis in (plain, richer)]
    assert "batch size" in questions[0] and "batch size" not in questions[1]


@pytest.mark.parametrize(("key", "value", "text"), [
    ("--max-model-len", "8192", "--max-model-len 8192"), ("docker run --shm-size", "16g", "docker run --shm-size 16g"),
    ("OLLAMA_NUM_PARALLEL", "1", "OLLAMA_NUM_PARALLEL=1"), ("BitsAndBytesConfig(load_in_4bit)", "True", "BitsAndBytesConfig(load_in_4bit=True)"),
    ("training_args.bf16", "true", "training_args.bf16: true"),
])  # fmt: skip
def test_a_setting_is_written_as_a_person_types_it(key: str, value: str, text: str) -> None:
    assert setting_line(key, value) == text
