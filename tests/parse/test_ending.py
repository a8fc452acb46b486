"""What a log ends with when no message in it is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.parse.ending import find_log_ending


@pytest.mark.parametrize(("log", "text", "memory", "device"), [
    pytest.param("step 4\nValueError: shapes differ\n", "ValueError: shapes differ", False, False, id="another error"),
    pytest.param("x\nFooError: cannot allocate memory for 3 blocks\n", "FooError: cannot allocate memory for 3 blocks", True, False, id="of memory"),
    pytest.param("x\nMyError: out of device memory\n", "MyError: out of device memory", True, True, id="of the device's memory"),
    pytest.param("FooError: Attempting to allocate ...\n", "FooError: Attempting to allocate ...", True, False, id="cut before its figure"),
    pytest.param("FooError: model requires more system memory\n", "FooError: model requires more system memory", True, False, id="more than there is"),
    pytest.param("FooError: requires more arguments\n", "FooError: requires more arguments", False, False, id="more of something else"),
    pytest.param("x\n错误：RuntimeError\nRuntimeError: 显存不足\n", "RuntimeError: 显存不足", True, True, id="in Chinese"),
    pytest.param("[Bug]: FooError: it broke\n", "[Bug]: FooError: it broke", False, False, id="behind a headline's label"),
    pytest.param("ERROR 10-01 10:00:00 [core.py:7] BarError: it broke\n", "[core.py:7] BarError: it broke", False, False, id="behind a logger's place"),
    pytest.param("why is there not enough memory for the cache\n", "why is there not enough memory for the cache", True, False, id="a quoted sentence"),
    pytest.param("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n", "Traceback (most recent call last)", False, False, id="cut"),
])  # fmt: skip
def test_the_last_error_is_named(log: str, text: str, memory: bool, device: bool) -> None:
    found = find_log_ending(log.encode())
    assert found is not None
    assert (found.text, found.speaks_of_memory, found.on_the_device) == (text, memory, device)


@pytest.mark.parametrize("log", [
    pytest.param("", id="nothing"),
    pytest.param("epoch 3 done\nsaved model\n", id="a run that ended well"),
    pytest.param("ValueError: an old one\n" + "step done, loss 0.1\n" * 900, id="an error far from the end"),
    pytest.param("Error handling is described below\nsee the manual\n", id="prose"),
    pytest.param("allocated memory 3.2 GB\nloss 0.3\n" * 8, id="healthy memory lines"),
])  # fmt: skip
def test_a_log_without_an_error_at_its_end_has_none(log: str) -> None:
    assert find_log_ending(log.encode()) is None


@given(st.binary(max_size=300))
def test_anything_may_stand_at_the_end_of_a_log(last: bytes) -> None:
    found = find_log_ending(last)
    assert found is None or len(found.text) <= 300
