"""Converts a response of Loki's HTTP API, one object for several streams, to one JSON line per entry, like logcli (`loki` in layouts.yaml).

The form: https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-within-a-range-of-time
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder, encode

from oomdoctor.triage.texts import lines_of

_BEGINS = re.compile(rb'\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{\s*"resultType"\s*:\s*"streams"')
LARGEST = 32 << 20
"""A response is one object and is held whole (5,000 entries by default); a larger one is read in place."""


class _LokiStream(Struct):
    labels: dict[str, str] = field(default_factory=dict, name="stream")
    values: list[list[object]] = field(default_factory=list)
    """Nanoseconds since 1970 and the line of each entry; newer releases append metadata."""


class _LokiData(Struct):
    result: list[_LokiStream] = field(default_factory=list)


class _LokiAnswer(Struct):
    data: _LokiData


class _LokiEntry(Struct):
    labels: dict[str, str]
    line: object
    timestamp: object


_DECODER = Decoder(_LokiAnswer)


def is_answer(start: bytes) -> bool:
    """Return whether a file begins like a response that contains lines."""
    return _BEGINS.match(start) is not None


def entries_in(path: str) -> Iterator[bytes]:
    """Yield the entries of the response in a file, one line each; none if it is truncated or too large to be held."""
    held, size = [], 0
    for line in lines_of(path):
        held.append(line)
        size += len(line)
        if size > LARGEST:
            return
    try:
        answer = _DECODER.decode(b"".join(held))
    except (DecodeError, RecursionError):
        return
    for stream in answer.data.result:
        for time, text, *_ in (value for value in stream.values if len(value) > 1):
            yield encode(_LokiEntry(stream.labels, text, time))
