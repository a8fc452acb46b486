"""Objects of JSON around the lines of a program -> the lines."""

from __future__ import annotations

import json

import pytest

from oomdoctor.ingest.envelopes import open_envelopes

LINES = ['  File "/srv/train.py", line 3, in main', "RuntimeError: CUDA out of memory\n"]


def opened(*objects: object) -> list[str] | None:
    told = open_envelopes([text if isinstance(text, str) else json.dumps(text) for text in objects])
    return None if told is None else [one.text for one in told]


@pytest.mark.parametrize("around", [
    pytest.param(lambda line: {"log": line, "stream": "stderr", "time": "2026-01-05T10:00:01Z"}, id="Docker"),
    pytest.param(lambda line: {"severity": "ERROR", "message": line, "labels": {"pod": "a"}}, id="a cloud's collector with one level"),
    pytest.param(lambda line: {"jsonPayload": {"message": line}, "timestamp": "2026-01-05T10:00:01Z"}, id="a payload in the object"),
])  # fmt: skip
def test_lines_come_out_of_their_objects(around: object) -> None:
    assert callable(around)
    assert opened(*map(around, LINES)) == [line.removesuffix("\n") for line in LINES]


def test_the_time_of_an_object_is_kept() -> None:
    told = open_envelopes([json.dumps({"log": "a", "time": "2026-01-05T10:00:01Z"}), json.dumps({"log": "b"})])
    assert told is not None and [one.time for one in told] == ["2026-01-05T10:00:01Z", None]


def test_levels_that_differ_are_the_programs_own() -> None:
    assert opened({"level": "info", "msg": "a"}, {"level": "error", "msg": "b"}) == ["INFO a", "ERROR b"]


def test_the_level_of_a_single_line_is_the_programs_own() -> None:
    assert opened({"level": "info", "msg": "out of memory was seen"}) == ["INFO out of memory was seen"]


@pytest.mark.parametrize("texts", [
    pytest.param(["plain", "text"], id="plain text"),
    pytest.param(['{"loss": 2.1, "step": 3}', '{"loss": 2.0, "step": 4}'], id="objects of figures"),
    pytest.param(["{'log': 'of Python'}", "{}"], id="a dictionary of Python"),
    pytest.param(["[" * 100_000, "{" * 100_000 + "}"], id="brackets without end"),
    pytest.param(["a", "b", "c", '{"log": "one object in a text"}'], id="one object in a text"),
])  # fmt: skip
def test_is_no_envelope(texts: list[str]) -> None:
    assert open_envelopes(texts) is None


def test_the_ends_of_a_window_may_lie_inside_an_object() -> None:
    assert opened('half of it"}', {"log": "a"}, {"log": "b"}, '{"log": "half') == ['half of it"}', "a", "b", '{"log": "half']
