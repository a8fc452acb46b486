"""How far a run has come, read from progress bars and metric lines: a run that goes on after an error survived it."""

from __future__ import annotations

import re

_STEPS = re.compile(
    rb"\|\s{0,3}(?P<bar>\d{1,9})/\d{1,9} \["  # tqdm
    rb"|\b(?:global_step|iteration|iter|step)[\"']?\s{0,3}[:=/ ]\s{0,3}(?P<step>\d{1,9})\b"
    rb"|\bEpoch ?:?\[?\d{1,5}(?:/\d{1,5})?\]? ?[\[(](?P<batch>\d{1,9})/\d{1,9}[\])]"
    rb"|, it (?P<it>\d{1,9}),"  # a line of figures: epoch 2, it 5210, loss ...
    rb"|^\s{0,6}(?P<keras>\d{1,9})/\d{1,9} \[[=>.]{5,60}\]",
    re.MULTILINE,
)

_OTHER_BARS = re.compile(
    rb"(?i)\bload|shard|\bmap\b|filter|token|download|upload|generat|sampling|saving|convert|fetch|evaluat|validat|predict|test|captur|"
    rb"pack|cach|compil|warm|examples?/s|B/s\]|it/s, examples"
)
"""What stands on the line of a bar that counts no training steps."""
_AT_ITS_END = re.compile(rb"\b(\d+)/\1\b")
_LOSS = re.compile(rb"\b[Ll]oss[\"']?(?:\s{0,3}[:=]\s{0,3}|\s{1,3})\d{1,6}\.\d")
_EPOCH = re.compile(rb"^\s{0,6}[Ee]poch ?:?\[?(\d{1,5})/\d{1,5}", re.MULTILINE)
_LOSSES = 2
"""So many metric lines after an error are a run that goes on."""


def find_last_steps(data: bytes) -> dict[str, int]:
    """Return the last counter of each kind in a piece of a log."""
    steps: dict[str, int] = {}
    for counter in _STEPS.finditer(data):
        kind = counter.lastgroup
        if kind is not None:
            steps[kind] = int(counter[kind])
    return steps


def find_steps_passed(data: bytes) -> int | None:
    """Return how many training steps the last counter in a piece of a log shows.

    Bars of loading, of data and of evaluation do not count, and no bar that is at its end: what failed came after it.
    """
    passed = None
    for counter in _STEPS.finditer(data):
        line = data[max(data.rfind(b"\n", 0, counter.start()), data.rfind(b"\r", 0, counter.start())) + 1 : counter.end() + 60]
        kind = counter.lastgroup
        if kind is not None and not _AT_ITS_END.search(counter[0]) and not _OTHER_BARS.search(line.partition(b"\n")[0]):
            passed = int(counter[kind])
    return passed


def went_on(before: bytes, after: bytes, steps: int) -> bool:
    """Return whether a counter that stood before an error is higher by `steps` at least after it."""
    start, end = find_last_steps(before), find_last_steps(after)
    if any(end[kind] - start[kind] >= steps for kind in start.keys() & end.keys()):
        return True
    return runs(after)


def runs(data: bytes) -> bool:
    """Return whether a piece of a log shows a run at work: a counter that rises, or lines of metrics."""
    return _rises(data) or len(set(_EPOCH.findall(data))) > 1 or len(_LOSS.findall(data)) >= _LOSSES


def _rises(data: bytes) -> bool:
    """Return whether a counter that was not there before an error rises after it."""
    values: dict[str, list[int]] = {}
    for counter in _STEPS.finditer(data):
        if counter.lastgroup is not None:
            values.setdefault(counter.lastgroup, []).append(int(counter[counter.lastgroup]))
    return any(rising[-1] > rising[0] for rising in values.values())
