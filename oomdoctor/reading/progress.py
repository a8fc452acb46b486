"""How far a run has progressed, read from progress bars and metric lines: a run that continues after an error survived it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_VALUE = rb"[\"']?\s{0,3}[:=/ ]\s{0,3}"
_STEPS = re.compile(
    rb"\|\s{0,3}(?P<bar>\d{1,9})/\d{1,9} \["  # tqdm
    rb"|g(?<!\wg)lobal_step" + _VALUE + rb"(?P<step>\d{1,9})\b"
    rb"|s(?<!\ws)tep" + _VALUE + rb"(?P<step2>\d{1,9})\b"
    rb"|i(?<!\wi)ter(?:ation)?" + _VALUE + rb"(?P<step3>\d{1,9})\b"
    rb"|E(?<!\wE)poch ?:?\[?\d{1,5}(?:/\d{1,5})?\]? ?[\[(](?P<batch>\d{1,9})/\d{1,9}[\])]"
    rb"|, it (?P<it>\d{1,9}),"  # a line of figures: epoch 2, it 5210, loss ...
    rb"|\n\s{0,6}(?P<keras>\d{1,9})/\d{1,9} \[[=>.]{5,60}\]"
)
"""Each alternative begins with a character and only then looks behind it: `re` searches for these five times as fast."""
_NEAR_THE_END = 2 << 10

_OTHER_BARS = (
    rb"(?i)\bload|shard|\bmap\b|filter|token|download|upload|generat|sampling|saving|convert|fetch|evaluat|validat|predict|test|captur|"
    rb"pack|cach|compil|warm|examples?/s|B/s\]|it/s, examples"
)
"""What the line of a bar contains if it does not count training steps."""
_AT_ITS_END = rb"\b(\d+)/\1\b"
_LOSS = rb"\b[Ll]oss[\"']?(?:\s{0,3}[:=]\s{0,3}|\s{1,3})\d{1,6}\.\d"
_EPOCH = rb"(?m)^\s{0,6}[Ee]poch ?:?\[?(\d{1,5})/\d{1,5}"
_LOSSES = 2
"""This many metric lines after an error show that the run continued."""


def find_last_steps(data: bytes) -> dict[str, int]:
    """Return the last counter of each kind in part of a log."""
    return {kind.rstrip("0123456789"): value for kind, value in _counters(data)}


def find_steps_passed(data: bytes) -> int | None:
    """Return the number of training steps shown by the last counter in part of a log.

    Bars for loading, data and evaluation do not count, and neither does a completed bar: the failure came after it.
    """
    data = b"\n" + data
    end = len(data)
    while end:
        start = max(0, data.rfind(b"\n", 0, max(0, end - _NEAR_THE_END)))
        for counter in reversed(list(_STEPS.finditer(data, start, end))):
            if not re.search(_AT_ITS_END, counter[0]) and not re.search(_OTHER_BARS, _line(data, counter)):
                return _value(counter)
        end = start
    return None


def has_trained(data: bytes) -> bool:
    """Return whether part of a log shows more than a first step: a higher training counter, a later epoch, or several losses."""
    data = b"\n" + data
    return (
        any(
            _value(counter) > 1 and not re.search(_AT_ITS_END, counter[0]) and not re.search(_OTHER_BARS, _line(data, counter))
            for counter in _STEPS.finditer(data)
        )
        or len(set(re.findall(_EPOCH, data))) > 1
        or len(re.findall(_LOSS, data)) >= _LOSSES
    )


def _counters(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the kind and value of every counter in part of a log; bars of different lengths are different kinds."""
    for counter in _STEPS.finditer(b"\n" + data):
        kind = str(counter.lastgroup).rstrip("23")
        length = counter[0].rpartition(b"/")[2].rstrip(b" [") if kind == "bar" else b""
        yield kind + length.decode(), _value(counter)


def _value(counter: re.Match[bytes]) -> int:
    return int(counter[str(counter.lastgroup)])


def _line(data: bytes, counter: re.Match[bytes]) -> bytes:
    """Return the line of a counter, up to shortly after it."""
    at = counter.start(str(counter.lastgroup))
    start = data.rfind(b"\n", 0, at) + 1
    return data[max(start, data.rfind(b"\r", start, at) + 1) : counter.end() + 60].partition(b"\n")[0]


def went_on(before: bytes, after: bytes, steps: int) -> bool:
    """Return whether a counter seen before an error is at least `steps` higher after it."""
    start, end = dict(_counters(before)), dict(_counters(after))
    if any(end[kind] - start[kind] >= steps for kind in start.keys() & end.keys()):
        return True
    return runs(after)


def runs(data: bytes) -> bool:
    """Return whether part of a log shows a run making progress: a rising counter, or metric lines."""
    return _rises(data) or len(set(re.findall(_EPOCH, data))) > 1 or len(re.findall(_LOSS, data)) >= _LOSSES


def _rises(data: bytes) -> bool:
    """Return whether a counter that was not there before an error rises after it."""
    values: dict[str, list[int]] = {}
    for kind, value in _counters(data):
        values.setdefault(kind, []).append(value)
    return any(rising[-1] > rising[0] for rising in values.values())
