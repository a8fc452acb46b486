"""Errors of any program: which line states one, which came first, and what only follows from it."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.api import pipeline
from oomdoctor.case.case import Case
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.reading.errors import find_error, is_error, last_error

TRACE = 'Traceback (most recent call last):\n  File "fit.py", line 8, in <module>\n    use(row)\n'


@cache
def pack() -> Pack:
    return load_pack()


def case(log: str) -> Case:
    return pipeline.diagnose_logs(["fit.log"], pack(), text=log.encode()).case


@pytest.mark.parametrize("line", [
    pytest.param("ValueError: shapes differ", id="an exception"),
    pytest.param("farm.errors.FarmFailure: the queue is gone", id="one of a package"),
    pytest.param("AssertionError", id="one that says nothing"),
    pytest.param("[core.py:7] BarError: it broke", id="behind a logger's place"),
    pytest.param("[Bug]: FooError: it broke", id="behind a headline's label"),
    pytest.param("│   KeyError: 'target'", id="in a box"),
    pytest.param("terminate called after throwing an instance of 'farm::full'", id="of C++"),
    pytest.param("thread 'main' panicked at src/a.rs:3:9:", id="of Rust"),
    pytest.param("src/a.cu(12): fatal error: cut.h: No such file", id="of a compiler, with its column in brackets", marks=pytest.mark.xfail(strict=True)),
    pytest.param("Segmentation fault (core dumped)", id="of a shell"),
])  # fmt: skip
def test_a_line_states_an_error(line: str) -> None:
    assert is_error(line)


@pytest.mark.parametrize("line", [
    pytest.param("    raise ValueError('no rows')", id="source code"),
    pytest.param("Error handling is described below", id="prose"),
    pytest.param("epoch 3 error: 0.12", id="a figure"),
    pytest.param("except KeyError:", id="a handler"),
    pytest.param("0 errors, 2 warnings", id="a count"),
    pytest.param(" " * 4000 + "x", id="a very long line of blanks"),
])  # fmt: skip
def test_a_line_states_none(line: str) -> None:
    assert not is_error(line)


def test_an_error_is_raised_below_a_traceback_and_stated_elsewhere() -> None:
    raised = f"{TRACE}KeyError: 'target'\n"
    found = find_error(raised, raised.index("KeyError"), len(raised), pack().lexicon)
    stated = find_error("KeyError: 'target'\n", 0, 18, pack().lexicon)
    assert found is not None and found.is_raised and found.name == "KeyError"
    assert stated is not None and not stated.is_raised


@pytest.mark.parametrize(("log", "error"), [
    pytest.param(f"{TRACE}KeyError: 'target'\n", "KeyError: 'target'", id="a traceback"),
    pytest.param("step 4\nValueError: shapes differ\n", "ValueError: shapes differ", id="without its frames"),
    pytest.param(f"[rank5]: {TRACE.splitlines()[0]}\n[rank5]:   File \"fit.py\", line 8, in <module>\n[rank5]:     use(row)\n[rank5]: KeyError: 'target'\n"
                 "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", "KeyError: 'target'", id="a rank, then its launcher"),
    pytest.param(f"{TRACE}ValueError: no such layer\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}RuntimeError: Engine core initialization failed. See root cause above.\n",
                 "ValueError: no such layer", id="a cause, then a wrapper"),
    pytest.param(f"{TRACE}KeyError: 'target'\n[rank1]: RuntimeError: Connection closed by peer [10.0.0.3]:2201\n", "KeyError: 'target'", id="the other rank's broken connection"),
])  # fmt: skip
def test_the_first_error_is_the_answer(log: str, error: str) -> None:
    found = case(log)
    assert (found.verdict.memory_failure, found.verdict.reason, found.facts.get("log.last_error")) == ("no", "other-error", error)


@pytest.mark.parametrize(("log", "answer"), [
    pytest.param("[rank1]: RuntimeError: Connection closed by peer [10.0.0.3]:2201\n", "possible", id="an aftermath alone leaves open what came first"),
    pytest.param(f"{TRACE}KeyError: 'target'\n" + "".join(f"step {n} loss 0.{n}\n" for n in range(20, 40)) + "fit.sh: line 3: 4117 Killed  python fit.py\n", "yes", id="an error that the run outlived explains no kill"),
    pytest.param(f"{TRACE}KeyError: 'target'\nfit.sh: line 3: 4117 Killed  python fit.py\n", "no", id="a kill right behind an error is its end"),
    pytest.param(f"{TRACE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.02 GiB is free.\n{TRACE}KeyError: 'target'\n", "yes", id="memory that was refused outweighs another error"),
])  # fmt: skip
def test_an_error_beside_other_messages(log: str, answer: str) -> None:
    assert case(log).verdict.memory_failure == answer


@given(st.text(max_size=400))
def test_any_text_may_be_asked_for_its_last_error(text: str) -> None:
    found = last_error(text)
    assert found is None or found in text
