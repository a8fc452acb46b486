"""Extract the text of each job from JSON lines written by a log store or a container runtime.

Pieces of one line are joined: kubelet's P and F entries, and what Docker cuts at 16 KiB.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Union

from msgspec import DecodeError, Struct
from msgspec.json import decode

from oomdoctor.knowledge.records.layout import ExportRecord
from oomdoctor.triage.line_times import LineTime, stated_time

Json = Union[str, int, float, bool, None, list["Json"], dict[str, "Json"]]
_CRI_PIECE = re.compile(rb"^\S{20,40} (std(?:out|err)) ([FP]) ?", re.MULTILINE)
_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] ")
_SERVICE = ".service"
_HOST = re.compile(r"/algo-\d+-?\d*$")
"""The suffix that a training service adds to a job name for each host."""
_KEPT = 8 << 20
"""The number of bytes kept of one job's lines."""
_HELD = 64 << 20
"""The number of bytes held at once for the lines of all jobs together."""
_NAMES = 1 << 32
_LONGEST_NAME = 1000
_STACK = b'"py_callstack"'


class ExportLine(Struct, frozen=True):
    """The contents of one object."""

    text: str
    job: str | None
    name: str | None
    node: str | None
    user: str | None
    namespace: str | None = None
    time: str | None = None


class Labels(Struct, frozen=True):
    """What a job's lines state besides their text."""

    name: str | None = None
    node: str | None = None
    user: str | None = None
    namespace: str | None = None


class JobText:
    """The lines of one job in an export: all of them, or the first and last of very many."""

    __slots__ = ("_first", "_last", "_newest", "_since", "_until", "is_whole", "labels", "size")

    def __init__(self) -> None:
        self.labels = Labels()
        self.size = 0
        self.is_whole = True
        self._since = self._until = self._newest = (0, "")
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque()

    @property
    def data(self) -> bytes:
        """Return the lines as one text, oldest first: some stores list the newest first."""
        lines = (*self._first, *self._last)
        return b"".join(reversed(lines) if self._since > self._until else lines)

    @property
    def ended(self) -> LineTime | None:
        """Return when its newest line was written according to the store; None if the store does not say."""
        return stated_time(self._newest[1])

    def add(self, line: ExportLine) -> int:
        """Add a line, and return how many more bytes are held."""
        before = self.size
        if line.time is not None:
            self._until = (len(line.time) if line.time.isdigit() else 0, line.time)
            self._since = self._since if self._since[1] else self._until
            self._newest = max(self._newest, self._until)
        text = line.text.encode("utf-8", "replace")
        (self._first if self.size < _KEPT // 2 else self._last).append(text)
        self.size += len(text)
        while self.size > _KEPT and len(self._last) > 1:
            self.size -= len(self._last.popleft())
            self.is_whole = False
        known = self.labels
        self.labels = Labels(line.name or known.name, line.node or known.node, line.user or known.user, line.namespace or known.namespace)
        return self.size - before


def join_pieces(data: bytes) -> bytes:
    """Return kubelet's entries with the pieces of split lines joined; other text is unchanged."""
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
            held.setdefault(stream, []).append(line[piece.end() :] if held.get(stream) else line)
        elif stream in held:
            out.append(b"".join([*held.pop(stream), line[piece.end() :]]))
        else:
            out.append(line)
    return b"\n".join([*out, *(b"".join(pieces) for pieces in held.values())])


def unfinished_line(data: bytes) -> bytes:
    """Return the last line of joined entries if it continues in the next file of the log, otherwise nothing."""
    line = data[data.rfind(b"\n") + 1 :]
    piece = _CRI_PIECE.match(line)
    return line if piece is not None and piece[2] == b"P" else b""


def finish_line(begun: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Return an unfinished line completed from the next file, and that file without the completed part."""
    lines = join_pieces(begun + b"\n" + data).split(b"\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(begun))
    return lines[at], b"\n".join(lines[:at] + lines[at + 1 :])


def error_file_text(data: bytes) -> bytes | None:
    """Return the traceback in an error file written by torchelastic; None if the bytes are not such a file."""
    if _STACK not in data:
        return None
    read = _object(data)
    stack = _at(read, ("message", "extraInfo", "py_callstack")) if read is not None else None
    return stack.encode("utf-8", "replace") if isinstance(stack, str) else None


class ExportReader:
    """Recognizes log-store exports by one of their lines, and reads them."""

    def __init__(self, records: Sequence[ExportRecord]) -> None:
        self._records = list(records)

    def record_of(self, data: bytes) -> ExportRecord | None:
        """Return which log store's export some bytes begin; None if they are not the start of one."""
        data = data.lstrip()
        if data[:1] != b"{":
            return None
        line, end, _ = data.partition(b"\n")
        read = _object(line)
        if read is None and not end:  # a line longer than the available text
            return next((record for record in self._records if b'"%s":' % record.sign.encode() in line), None)
        return next((record for record in self._records if read is not None and record.sign in read), None)

    def lines(self, record: ExportRecord, lines: Iterable[bytes]) -> Iterator[ExportLine]:
        """Yield the contents of an export's lines; anything that is not an object is kept unchanged and assigned to the previous job."""
        job = name = node = user = None
        for raw in lines:
            read = _object(raw) if raw[:1] == b"{" else None
            if read is None:
                if raw.strip():
                    yield ExportLine(raw.decode("utf-8", "replace") + "\n", job, name, node, user)
                continue
            text = _message(_at(read, record.message)) if record.message[0] in read else self._other_text(record, read)
            job = _job_name(_first(read, record.job)) or job
            node, user, name = _first(read, record.node), _first(read, record.user), _first(read, record.name)
            namespace, at = _first(read, record.namespace), _first(read, [record.time])
            yield ExportLine(text if record.sign == "log" else text + "\n", job, name, node, user, namespace, at)

    @staticmethod
    def _other_text(record: ExportRecord, read: Json) -> str:
        """Return the text of an object without the usual message, as produced by a filter that spreads a line of JSON into fields."""
        return "\n".join(filter(None, (_message(_at(read, keys)) for keys in record.other_messages)))

    def jobs(self, record: ExportRecord, read: Callable[[], Iterator[bytes]], unnamed: str) -> Iterator[tuple[str, JobText]]:
        """Yield the jobs of an export with their lines; `read` gives its lines, and `unnamed` is the job for lines that name none.

        Where the jobs together hold more than fits, some of them wait, and the export is read again.
        """
        low = 0
        while low < _NAMES:
            high = _NAMES
            texts: dict[str, JobText] = {}
            held = 0
            for line in self.lines(record, read()):
                name = (line.job or unnamed)[:_LONGEST_NAME]
                if not low <= _place(name) < high:
                    continue
                held += texts.setdefault(name, JobText()).add(line)
                while held > _HELD and high - low > 1:
                    high = (low + high + 1) // 2
                    texts = {kept: text for kept, text in texts.items() if _place(kept) < high}
                    held = sum(text.size for text in texts.values())
            yield from texts.items()
            low = high


def _place(name: str) -> int:
    """Return a job's position among all jobs, regardless of its name: it decides which jobs are held."""
    return zlib.crc32(name.encode("utf-8", "replace"))


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
    """Return a message; journald writes one that is not plain text as a list of byte values."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        with suppress(TypeError, ValueError):
            return bytes(value).decode("utf-8", "replace")  # type: ignore[arg-type]  # what is no byte is told by an error
    return ""


def _job_name(name: str | None) -> str | None:
    return None if name is None else _HOST.sub("", name.removesuffix(_SERVICE))
