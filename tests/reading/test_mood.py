"""A word is not a death: lines that name a failure without stating it, and their near misses that do state one."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.reading.mood import is_quoted, says_it_drops, says_it_goes_on, states

WORDS = "out of memory"


def is_stated(line: str) -> bool:
    start = line.lower().index(WORDS)
    return states(line, start, start + len(WORDS), load_pack().lexicon)


@pytest.mark.parametrize("line", [
    pytest.param("the run did not go out of memory", id="denied"),
    pytest.param("0 workers killed while out of memory", id="of none of several"),
    pytest.param("if you are out of memory, use a smaller batch", id="supposed"),
    pytest.param("Tip: lower the batch when out of memory", id="a tip"),
    pytest.param("out of memory errors: 0", id="counted at nought"),
    pytest.param("Out Of Memory (OOM) Killer started", id="a thing of that name"),
    pytest.param("fix out of memory in the loader", id="the title of a change"),
    pytest.param('    134 raise RuntimeError("out of memory in the loader")', id="a numbered line of source code"),
    pytest.param('diagnose("torch.OutOfMemoryError: CUDA out of memory.', id="the argument of a call"),
    pytest.param("simulated: out of memory", id="simulated"),
    pytest.param("如果 out of memory，请调小 batch", id="supposed, in Chinese"),
])  # fmt: skip
def test_it_is_only_named(line: str) -> None:
    assert not is_stated(line)


@pytest.mark.parametrize("line", [
    pytest.param("the run went out of memory", id="stated"),
    pytest.param("could not go on: out of memory", id="could not is no could"),
    pytest.param("GPU 0 out of memory", id="the number of a card"),
    pytest.param("out of memory: 0 bytes left", id="nought of something else"),
    pytest.param("there is no way round it. The run is out of memory", id="a denial in another sentence"),
    pytest.param("RuntimeError: out of memory. Try a smaller batch.", id="advice behind it"),
])  # fmt: skip
def test_it_is_stated(line: str) -> None:
    assert is_stated(line)


@pytest.mark.parametrize(("line", "goes_on"), [
    pytest.param("retrying with batch 8", True, id="tried again"),
    pytest.param("falling back to the host", True, id="another way"),
    pytest.param("Try reducing the batch", False, id="advice"),
    pytest.param("reducing the batch may help", False, id="what may help"),
    pytest.param("Unknown scaling type", False, id="a word that is part of a name"),
    pytest.param("Warning Evicted kubelet node was low on memory", False, id="somebody was put out"),
    pytest.param("evicting 12 cached blocks", True, id="something was put out"),
    pytest.param("ran out of memory; this is not a failure, but may cost speed", True, id="no failure, whatever it may cost"),
    pytest.param("ran out of memory; this may be a failure", False, id="it may be a failure"),
])  # fmt: skip
def test_a_program_says_that_it_goes_on(line: str, goes_on: bool) -> None:
    assert says_it_goes_on(line, load_pack().lexicon) is goes_on


def test_one_of_several_tries_is_given_up() -> None:
    assert says_it_drops("Trial 12 failed with parameters: {'bs': 96}", load_pack().lexicon)
    assert not says_it_drops("the trial version expired", load_pack().lexicon)


@pytest.mark.parametrize(("text", "quoted"), [
    pytest.param('Received request a-1: prompt: "my job is out of memory, why?", params: 3', True, id="a prompt"),
    pytest.param('Received request a-1: prompt: "hello", params: 3; out of memory', False, id="behind a prompt"),
    pytest.param('{"role": "user", "content": "out of memory"}', True, id="a turn of a conversation"),
    pytest.param('{"message": "out of memory"}', False, id="the message of a record"),
])  # fmt: skip
def test_words_of_somebody_are_quoted(text: str, quoted: bool) -> None:
    assert is_quoted(text, text.index(WORDS)) is quoted
