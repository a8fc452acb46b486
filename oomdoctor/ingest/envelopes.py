"""What a collector of logs puts around the lines of a program: an object of JSON for each, with the line in one of its fields."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

_SAYS = ("log", "message", "msg", "MESSAGE", "textPayload", "body", "line")
"""The field with the line: of Docker, cloud loggers, structured loggers, journald, Cloud Logging, OpenTelemetry, Loki."""
_LEVELS = ("level", "severity", "levelname", "PRIORITY")
_TIMES = ("time", "timestamp", "ts", "@timestamp")
_OF_A_COLLECTOR = frozenset({
    *_SAYS, *_LEVELS, *_TIMES, "stream", "labels", "attrs", "tag", "kubernetes", "docker", "container_id", "container_name",
    "partial_message",
    "source", "source_type", "host", "hostname", "pod", "namespace", "container", "file", "offset", "insertId", "logName", "resource",
    "receiveTimestamp", "jsonPayload", "trace", "spanId",
})  # fmt: skip
"""Fields that collectors write; an object with others is a program's own record, and they are part of what it says."""
_SKIPPED = 2
"""A window may begin and end inside an object."""


class EnvelopeLine(Struct, frozen=True):
    """A line out of its envelope, and when the envelope says that it was printed."""

    text: str
    time: str | None = None


def open_envelopes(texts: Sequence[str]) -> list[EnvelopeLine] | None:
    """Return the lines of a program where each of `texts` is an object around one; None where they are none.

    A level is left before its line where lines have different ones: then the program gave them, and no collector.
    """
    objects = [_decoded(text) for text in texts]
    inner = [None if opened is None else _field(opened, _SAYS) for opened in objects]
    missing = sum(text is None for text, raw in zip(inner, texts) if raw.strip())
    if missing > _SKIPPED or missing == sum(bool(raw.strip()) for raw in texts):
        return None
    levels = [_field(opened, _LEVELS) or "" if opened is not None else "" for opened in objects]
    is_programs = len({level for level, text in zip(levels, inner) if text is not None}) > 1 or sum(map(bool, inner)) == 1
    out = []
    for raw, opened, text, level in zip(texts, objects, inner, levels):
        if opened is None or text is None:
            out.append(EnvelopeLine(raw))
        else:
            head = f"{level.upper()} " if is_programs and level else ""
            out.append(EnvelopeLine(head + text.removesuffix("\n"), _field(opened, _TIMES)))
    return out


def _decoded(text: str) -> dict[str, object] | None:
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        opened = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if not isinstance(opened, dict) or not all(name in _OF_A_COLLECTOR or name.startswith("_") for name in opened):
        return None
    return opened


def _field(opened: dict[str, object], names: Sequence[str]) -> str | None:
    """Return the first of some fields that is a text, in an object or in its payload."""
    payload = opened.get("jsonPayload")
    for part in (opened, payload if isinstance(payload, dict) else {}):
        for name in names:
            value = part.get(name)
            if isinstance(value, str):
                return value
    return None
