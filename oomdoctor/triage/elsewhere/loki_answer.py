"""The answer of Loki's HTTP API, one object over streams -> a line of JSON an entry, as logcli writes them (rules/layouts.yaml, `loki`).

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
"""An answer is one object and held whole, of 5,000 entries where nobody asks for more; a larger one is read as it lies."""


class _LokiStream(Struct):
    labels: dict[str, str] = field(default_factory=dict, name="stream")
    values: list[list[object]] = field(default_factory=list)
    """Nanoseconds since 1970 and the line of each entry; newer releases put what they know of it behind."""


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
    """Return whether the beginning of a file is that of an answer with lines in it."""
    return _BEGINS.match(start) is not None


def entries_in(path: str) -> Iterator[bytes]:
    """Yield the entries of the answer in a file, a line each; none of one that is cut off or too large to be held."""
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
