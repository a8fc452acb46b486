"""A file -> what it holds, whatever it is wrapped in. Its bytes tell, not its name."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import msgspec

from oomdoctor.case.gap import Gap
from oomdoctor.opening import open_file, open_file_or_pipe
from oomdoctor.snapshots.convert import NotASnapshot, recording
from oomdoctor.snapshots.forms.chrome import chrome_trace, is_chrome_trace
from oomdoctor.snapshots.forms.packed import Bounded, most_unpacked, pickle_in_zip, plain_source, read_all
from oomdoctor.snapshots.forms.page import files_in_page, is_page
from oomdoctor.snapshots.forms.profiler_timeline import read_timeline
from oomdoctor.snapshots.opcodes import PROTOCOLS, NotReadable
from oomdoctor.snapshots.read import MEMORY_PER_BYTE, read_pickle
from oomdoctor.snapshots.recording import Recording

_PICKLE = b"\x80"
_ZIP, _LEGACY = b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""What torch.save writes, and what it wrote before torch 1.6."""
_JSON_PER_BYTE = 16
"""Frames that a pickle names once stand in JSON each time."""
_PICKLES = tuple(_PICKLE + bytes((protocol,)) for protocol in PROTOCOLS)
_NAME_WITHIN = 256
_OTHER_FORMS = re.compile(
    rb"""<.{0,4096}?\blocal_files\b|\{.{0,65536}?"traceEvents"|[{\[].{0,4096}?"(?:device_traces|total_size|segment_type)"|\[\s*\[\s*-?[\d.]{1,24}\s*[],]""",
    re.DOTALL,
)
"""Pages of memory_viz, traces and timelines of the profiler, snapshots as JSON."""
_TEXT_MARK = b"\xef\xbb\xbf"

Limit = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A recording in a file, or one line on why there is none; pages hold several."""

    name: str | None
    """Its name in a page."""
    recording: Recording | None
    why: str = ""


def unlimited(size: int, per_byte: int) -> None:  # noqa: ARG001 - stands in for limit_memory
    """Set no limit."""


def read_file(path: str, size: int, limit: Limit = unlimited) -> tuple[FilePart, ...]:
    """Return what a file holds. `limit` is told how many bytes are to be read, and how much memory each may take.

    Raise NotReadable or NotASnapshot where it holds nothing, OSError where it cannot be read.
    """
    damage: list[str] = []
    limit(size, MEMORY_PER_BYTE)
    with open_file_or_pipe(path) as file:
        source, is_packed = plain_source(file, damage)
        first = source.first.removeprefix(_TEXT_MARK).lstrip()
        if not first:
            raise NotReadable(damage[0] if damage else "it is empty: the process ended before writing it")
        if first[:1] in b"{[" and is_chrome_trace(first):
            return _with_damage((FilePart(None, chrome_trace(source)),), damage)
        _refuse_others(first)
        if is_packed:
            limit(most_unpacked(size), 2)
        if first.startswith(_PICKLE) and not first.startswith(_LEGACY):
            unpacked = most_unpacked(size) if is_packed else size
            return _with_damage((FilePart(None, read_pickle(Bounded(source, file), unpacked)),), damage)
        if first.startswith(_ZIP) and not is_packed:
            return (FilePart(None, _zipped(file, size)),)
        data = read_all(source, file)
    return _with_damage(tuple(parts_of(data, first, limit)), damage)


def begins_as_snapshot(path: str) -> bool:
    """Return whether the first bytes of a file, unpacked, are those of a snapshot, and of nothing else that is compared.

    Raise OSError where it cannot be read, NotReadable where what unpacks it is missing.
    """
    with open_file(path) as file:
        first = plain_source(file, [])[0].first.removeprefix(_TEXT_MARK).lstrip()
    if first.startswith(_ZIP):
        return b"data.pkl" in first[:_NAME_WITHIN]
    return first[:2] in _PICKLES or _OTHER_FORMS.match(first) is not None


def _refuse_others(first: bytes) -> None:
    """Raise NotReadable for what is none of the forms: before all of it is unpacked."""
    start = first[:256].lower()
    if b"<svg" in start:
        raise NotReadable("it is a flame graph, which shows only sums; give the snapshot it was made from")
    if not (first[:1] in (_PICKLE, b"{", b"[") or first.startswith(_ZIP) or is_page(first)):
        raise NotReadable("it is neither a PyTorch snapshot, nor a memory_viz page, nor a profiler trace or timeline")


def parts_of(data: bytes, first: bytes, limit: Limit = unlimited) -> Iterator[FilePart]:
    """Yield what plain bytes hold; `first` are the ones that tell the form. Raise NotReadable or NotASnapshot as `read_file` does."""
    if first.startswith(_PICKLE):
        limit(len(data), MEMORY_PER_BYTE)
        yield FilePart(None, _pickle(data))
    elif first.startswith(_ZIP):
        limit(len(data), MEMORY_PER_BYTE + 2)
        yield FilePart(None, _zipped(io.BytesIO(data), len(data)))
    elif first[:1] in b"{[":
        limit(len(data), _JSON_PER_BYTE)
        yield FilePart(None, _json(data))
    else:
        limit(len(data), MEMORY_PER_BYTE + 2)
        for name, inside in files_in_page(data):
            yield _in_page(name, inside)


def _pickle(data: bytes) -> Recording:
    """Read a pickle, or the fourth of those in a row that torch.save wrote before torch 1.6: a number, a version, the system."""
    if not data.startswith(_LEGACY):
        return read_pickle(io.BytesIO(data), len(data))
    at = len(_LEGACY)
    for _ in range(2):
        at = data.find(b".\x80\x02", at) + 1
        if not at:
            raise NotReadable("it is truncated before the snapshot begins")
    return read_pickle(io.BytesIO(data[at:]), len(data))


def _zipped(file: BinaryIO, size: int) -> Recording:
    """Read the pickle in a zip, piece by piece."""
    with pickle_in_zip(file) as source:
        return read_pickle(source, most_unpacked(size))


def _in_page(name: str, inside: bytes | str) -> FilePart:
    if isinstance(inside, str):
        return FilePart(name, None, inside)
    try:
        read = read_pickle(io.BytesIO(inside), len(inside))
    except (NotReadable, NotASnapshot) as error:
        return FilePart(name, None, str(error))
    return FilePart(name, replace(read, form="html"))


def _json(data: bytes) -> Recording:
    try:
        value = msgspec.json.decode(data.removeprefix(_TEXT_MARK))
    except RecursionError:
        raise NotReadable("it is JSON nested more deeply than any snapshot") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotReadable(f"it is damaged or truncated JSON: {error}") from None
    read = read_timeline(value) if isinstance(value, list) else None
    return recording(value, len(data)) if read is None else read


def _with_damage(parts: tuple[FilePart, ...], damage: list[str]) -> tuple[FilePart, ...]:
    """Add what was wrong with the archive to what the recordings cannot tell."""
    gaps = tuple(Gap("part of the file", why) for why in damage)
    return tuple(part if part.recording is None else replace(part, recording=_lacking(part.recording, gaps)) for part in parts)


def _lacking(read: Recording, gaps: tuple[Gap, ...]) -> Recording:
    return replace(read, gaps=(*read.gaps, *gaps))
