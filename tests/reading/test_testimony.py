"""What people write of a run is told from what they ask: tables of sentences, in English and Chinese."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.reading import testimony


def told(text: str, *, describes_a_run: bool = False) -> testimony.Testimony | None:
    return testimony.find_testimony(text, load_pack().lexicon, describes_a_run=describes_a_run)


@pytest.mark.parametrize(("line", "whose"), [
    ("I keep running out of VRAM at the second epoch on my 3060, any ideas?", "device"),
    ("Training crashes with CUDA OOM as soon as the eval loop begins, can anyone help?", "device"),
    ("We are getting an OOM error when we set the length to 8192", None),
    ("I don't have enough VRAM to load the 32B in fp16", "device"),
    ("If I set num_workers to 8 it runs out of shared memory on my machine", None),
    ("When I increase the context to 32k, the server fails to allocate memory on the GPU", "device"),
    ("Actual behavior: the server dies with out of memory after about 200 requests", None),
    ("After updating to the latest version I'm having OOM issues that I did not have before", None),
    ("I can train for 500 steps and then it OOMs", None),
    ("- **Problem:** the GPU process runs out of memory as soon as I enable the VAE", "device"),
    ("the model does not fit on my 16 GB card", "device"),
    ("请问24G显存微调7B为什么还是爆显存？", "device"),
    ("用单张3090跑官方脚本，显存不够，怎么办", "device"),
    ("训练到一半内存爆了，求助", None),
    ("你好，我按照README.md里的命令跑，爆显存了", "device"),
    ("如果我把长度改成4096就会OOM，请问有什么办法", None),
])  # fmt: skip
def test_somebody_says_in_plain_words_that_memory_was_not_enough(line: str, whose: str | None) -> None:
    found = told(line)
    assert found is not None
    assert found.is_plain
    assert not found.is_killed
    assert whose in (None, found.whose)


@pytest.mark.parametrize("line", [
    "Hi, the script gets killed while loading the checkpoint, no error message at all",
    "Our pods were killed when the second replica started, please help",
    "My process was SIGKILLed during the decode, it held 25 GB",
    "Kernel died when I ran the second cell",
    "程序加载模型的时候被kill了，没有任何提示，为什么",
    "jupyter 内核挂掉了，我有16G内存",
])  # fmt: skip
def test_somebody_says_that_the_run_was_killed(line: str) -> None:
    found = told(line)
    assert found is not None
    assert found.is_killed
    assert not found.is_plain


@pytest.mark.parametrize("line", [
    "The VRAM fills up until the program crashes, I have a 4070",
    "GPU memory keeps increasing every step until it crashes. I use Lightning 2.4",
    "it can only allocate 15.5 GB although my card has 96 GB of memory",
    "显存占用过高，无法继续训练，我已经把batch调到1了",
    "问题描述：推理时显存持续增长，最后报错退出",
])  # fmt: skip
def test_somebody_says_what_it_looked_like(line: str) -> None:
    found = told(line)
    assert found is not None
    assert not found.is_plain


@pytest.mark.parametrize("line", [
    pytest.param("How much VRAM do I need to fine-tune a 7B model?", id="a question before the run"),
    pytest.param("Feature request: handle OOM gracefully by retrying with a smaller batch", id="a wish"),
    pytest.param("It would be great if the trainer caught out of memory errors", id="a wish in words"),
    pytest.param("I fixed the OOM by lowering the batch size, thanks", id="it is over"),
    pytest.param("no OOM anymore after upgrading, thank you", id="it is over, and denied"),
    pytest.param("I have not run out of memory so far, but it is slow", id="denied"),
    pytest.param("Is there a way to avoid OOM before I start?", id="to be avoided"),
    pytest.param("We added an OOM killer to the scheduler, please review", id="a thing of that name"),
    pytest.param("my run crashed with a KeyError, memory looks fine", id="another crash"),
    pytest.param("the port is in use and the server fails to start, please help", id="another failure"),
    pytest.param("our download failed because the disk is full", id="a disk"),
    pytest.param("I killed the server and started it again, it works now", id="somebody killed it by hand"),
    pytest.param("怎么避免爆显存？", id="to be avoided, in Chinese"),
    pytest.param("没有出现OOM，但是很慢，怎么办", id="denied, in Chinese"),
    pytest.param("请问微调7B需要多少显存？", id="a question before the run, in Chinese"),
])  # fmt: skip
def test_nobody_says_that_memory_was_not_enough(line: str) -> None:
    assert told(line) is None


def test_a_program_is_no_person() -> None:
    assert told("2026-05-04 10:11:12 INFO memory pool is out of memory, my retry follows") is None


def test_words_without_anybody_count_where_the_text_describes_a_run() -> None:
    line = "LoRA of an 8B model on one card of 24 GB with batch 8 is OOM"
    assert told(line) is None
    assert told(line, describes_a_run=True) is not None


def test_somebody_may_speak_in_one_line_and_tell_of_it_in_another() -> None:
    assert told("Can anybody help?\n- card: 24 GB\n- result: out of memory after the first step") is not None


@pytest.mark.parametrize(("line", "phase"), [
    ("my GPU runs out of memory when validation starts", "evaluation"),
    ("I get OOM while loading the model", "model-load"),
    ("推理的时候我的显存不够", "generation"),
    ("OOM when saving the checkpoint, please help", "checkpoint-save"),
    ("I get OOM between loading the model and generating", None),
])  # fmt: skip
def test_the_line_may_tell_what_the_run_did(line: str, phase: str | None) -> None:
    found = told(line)
    assert found is not None
    assert found.phase == phase
