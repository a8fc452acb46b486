"""Lines of JSON that a log store or a runtime wrote -> the text of each job in them.

Pieces of one line are joined: kubelet's P and F entries, and what Docker cuts at 16 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Union

from msgspec import DecodeError, Struct
from msgspec.json import decode

from oomdoctor.knowledge.records.layout import ExportRecord

Json = Union[str, int, float, bool, None, list["Json"], dict[str, "Json"]]
_CRI_PIECE = re.compile(rb"^\S{20,40} (std(?:out|err)) ([FP]) ?", re.MULTILINE)
_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
_SERVICE = ".service"
_HOST = re.compile(r"/algo-\d+-?\d*$")
"""What a training service adds to the name of a job for each of its hosts."""
_STACK = b'"py_callstack"'


class ExportLine(Struct, frozen=True):
    """What one object says."""

    text: str
    job: str | None
    name: str | None
    node: str | None
    user: str | None


class Labels(Struct):
    """What the lines of a job say beside their text."""

    name: str | None = None
    node: str | None = None
    user: str | None = None


def join_pieces(data: bytes) -> bytes:
    """Return kubelet's entries with those joined that are pieces of one line; other text as it is."""
    if _CRI.match(data) is None or (b" P " not in data):
        return data
    held: dict[bytes, list[bytes]] = {}
    out: list[bytes] = []
    for line in data.split(b"\n"):
        piece = _CRI_PIECE.match(line)
        if piece is None:
            out.append(line)
            continue
        stream, mark = piece[1], piece[2]
        if mark == b"P":
            held.setdefault(stream, []).append(line if stream not in held else line[piece.end() :])
        elif stream in held:
            out.append(b"".join([*held.pop(stream), line[piece.end() :]]))
        else:
            out.append(line)
    return b"\n".join([*out, *(b"".join(pieces) for pieces in held.values())])


def error_file_text(data: bytes) -> bytes | None:
    """Return the traceback in the error file that torchelastic writes; None where the bytes are no such file."""
    if _STACK not in data:
        return None
    read = _object(data)
    stack = _at(read, ("message", "extraInfo", "py_callstack")) if read is not None else None
    return stack.encode("utf-8", "replace") if isinstance(stack, str) else None


class ExportReader:
    """Tells the exports of log stores by a line of theirs, and reads them."""

    def __init__(self, records: Sequence[ExportRecord]) -> None:
        self._records = list(records)

    def record_of(self, data: bytes) -> ExportRecord | None:
        """Return whose export some bytes begin; None where they begin none."""
        first = data.lstrip()[:1]
        if first != b"{":
            return None
        read = _object(data.split(b"\n", 1)[0])
        return next((record for record in self._records if read is not None and record.sign in read), None)

    def lines(self, record: ExportRecord, lines: Iterable[bytes]) -> Iterator[ExportLine]:
        """Yield what the lines of an export say; what is no object of it stands as it is, of the job before it."""
        job = name = node = user = None
        for raw in lines:
            read = _object(raw) if raw[:1] == b"{" else None
            if read is None:
                if raw.strip():
                    yield ExportLine(raw.decode("utf-8", "replace") + "\n", job, name, node, user)
                continue
            text = _message(_at(read, record.message) if record.message[0] in read else _at(read, record.other_message))
            job = _job_name(_first(read, record.job)) or job
            node, user, name = _first(read, record.node), _first(read, record.user), _first(read, record.name)
            yield ExportLine(text if record.sign == "log" else text + "\n", job, name, node, user)

    def split(self, record: ExportRecord, lines: Iterable[bytes]) -> Iterator[tuple[str | None, str, Labels]]:
        """Yield the job, the text and the labels of each line."""
        for line in self.lines(record, lines):
            yield line.job, line.text, Labels(line.name, line.node, line.user)


def _object(raw: bytes) -> dict[str, Json] | None:
    try:
        read = decode(raw)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _at(read: Json, keys: Sequence[str]) -> Json:
    at = read
    for key in keys:
        if not isinstance(at, dict):
            return None
        at = at.get(key)
    return at if keys else None


def _first(read: Json, ways: Sequence[Sequence[str]]) -> str | None:
    for keys in ways:
        value = _at(read, keys)
        if isinstance(value, (str, int)) and value != "":
            return str(value)
    return None


def _message(value: Json) -> str:
    """Return a message; journald writes one that is no plain text as the numbers of its bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        with suppress(TypeError, ValueError):
            return bytes(value).decode("utf-8", "replace")  # type: ignore[arg-type]  # what is no byte is told by an error
    return ""


def _job_name(name: str | None) -> str | None:
    return None if name is None else _HOST.sub("", name.removesuffix(_SERVICE))
