"""Files of monitors -> columns. What a file is, its content tells; what cannot be read is a gap of one line."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.case.gap import Gap
from oomdoctor.case.recorded.series import SeriesColumn
from oomdoctor.ingest.streams import Unreadable, open_path
from oomdoctor.opening import open_descriptor
from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.comma_tables import NO_HEAD, NO_MEMORY, read_comma_table
from oomdoctor.series.exporters import is_exporter_text, is_metric_file, read_exporter_text, read_metric_file
from oomdoctor.series.monitor_tables import is_monitor_table, read_monitor_table
from oomdoctor.series.own import is_ring, is_samples, read_ring_series, read_samples
from oomdoctor.series.tensorboard import is_event_file, read_event_file

_MOST_BYTES = 64 << 20
_HEAD = 4 << 10
_MOST_FILES = 64
_BLOCK = 1 << 20
_CUT = "only the beginning was read: it is longer than 64 MiB"
_MANY = "there are more samples than the limit: only the first were read"
_NO_SERIES = "it is not a known memory series"
_HOW = "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 1 > FILE"


class ReadSeries(Struct, frozen=True):
    """What files say, and what could not be read."""

    columns: tuple[SeriesColumn, ...]
    sizes: dict[str, int]
    """How many bytes of each file were read."""
    gaps: tuple[Gap, ...]


def read_series(paths: Sequence[str]) -> ReadSeries:
    """Read files of monitors; of a folder those files that are some."""
    columns: list[SeriesColumn] = []
    gaps: list[Gap] = []
    sizes: dict[str, int] = {}
    for path in paths:
        names = list(_files(path))
        tried = [_read_file(name) for name in names]
        known = [read for read in tried if read.columns] or tried[:1]
        if not tried:
            known = [ReadSeries((), {}, (Gap(path, "a folder without files"),))]
        for read in known:
            columns += read.columns
            gaps += read.gaps
            sizes.update(read.sizes)
    return ReadSeries(tuple(columns), sizes, tuple(gaps))


def _files(path: str) -> Iterator[str]:
    """Yield a file, or the files in a folder, a few levels deep."""
    if not os.path.isdir(path):
        yield path
        return
    count = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        if folder[len(path) :].count(os.sep) >= 4:
            folders.clear()
        for name in sorted(names):
            if count < _MOST_FILES:
                count += 1
                yield os.path.join(folder, name)


def _read_file(path: str) -> ReadSeries:
    builder = SeriesBuilder(path)
    gaps: list[Gap] = []
    binary = _binary(path)
    if binary is not None:
        size = len(binary)
        why = read_ring_series(binary, builder) if is_ring(binary) else read_event_file(binary, builder)
    else:
        text = _text(path, gaps)
        size = 0 if text is None else len(text)
        why = None if text is None else _read_text(text, path, builder)
    columns = builder.columns()
    if gaps and not columns:
        return ReadSeries((), {path: size}, tuple(gaps[:1]))
    if not columns and why in (None, NO_HEAD):
        why = NO_MEMORY
    if why is not None:
        gaps.append(Gap(path, why, _HOW if not columns else None))
    if builder.left_out:
        gaps.append(Gap(path, _MANY))
    return ReadSeries(columns, {path: size}, tuple(gaps))


def _binary(path: str) -> bytes | None:
    """Return the bytes of a ring or an event file; None for anything else."""
    try:
        handle = open_descriptor(path)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        try:
            head = file.read(_HEAD)
            if not (is_ring(head) or is_event_file(head)):
                return None
            return head + _rest(file.readinto, _MOST_BYTES - len(head))
        except OSError:
            return None


def _text(path: str, gaps: list[Gap]) -> str | None:
    """Return the text of a file, unpacked and as UTF-8."""
    opened = open_path(path)
    if isinstance(opened, Unreadable):
        gaps.append(Gap(path, opened.reason, opened.how))
        return None
    try:
        data = _rest(opened.reader.readinto, _MOST_BYTES + 1)
    finally:
        opened.close()
    gaps += [Gap(path, why) for why in opened.broken]
    if len(data) > _MOST_BYTES:
        gaps.append(Gap(path, _CUT))
    return data[:_MOST_BYTES].decode("utf-8-sig", "replace")


def _rest(readinto: object, most: int) -> bytes:
    """Return up to `most` bytes of what fills buffers."""
    data = bytearray()
    block = memoryview(bytearray(_BLOCK))
    while len(data) < most:
        count = readinto(block[: min(_BLOCK, most - len(data))])  # type: ignore[operator]
        if not count:
            break
        data += block[:count]
    return bytes(data)


def _read_text(text: str, path: str, builder: SeriesBuilder) -> str | None:
    """Read a text by what it holds; return why it says nothing, or what was taken for granted."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = [line for line in lines if line.strip() and "\0" not in line]
    name = os.path.basename(path)
    if is_samples(lines):
        return read_samples(lines, builder)
    if is_exporter_text(lines):
        return read_exporter_text(lines, builder)
    if is_metric_file(lines):
        return read_metric_file(lines, builder, name)
    if is_monitor_table(lines):
        return read_monitor_table(lines, builder)
    # A log has commas too: most lines of a table have as many as its first.
    commas = [line.count(",") for line in lines[:50]]
    if commas and commas[0] and sum(count == commas[0] for count in commas) * 2 > len(commas):
        return read_comma_table(lines, builder, os.path.splitext(name)[0])
    return read_one_column(lines, builder)


def read_one_column(lines: Sequence[str], builder: SeriesBuilder) -> str | None:
    """Read `--query-gpu=memory.used` alone: a head, or sizes with their unit."""
    if not lines:
        return "it is empty"
    is_named = lines[0].strip().lower().startswith("memory.used")
    rest = [line.strip() for line in lines[1 if is_named else 0 :]]
    if not is_named and not all((line.endswith(" MiB") and line[:1].isdigit()) or line.startswith("[") for line in rest[:50]):
        return _NO_SERIES
    return read_comma_table(["memory.used [MiB],", *(f"{line}," for line in rest)], builder)
