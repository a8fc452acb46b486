"""Where a command writes to, and what it wrote. Nothing stands in between: a pipe of ours would change its buffering and its terminal."""

from __future__ import annotations

import os
import stat
from typing import Literal, NamedTuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MOST = 4 << 20
"""Bytes of its end that are kept: secrets are taken out of them before the run is told of, a second for each MiB."""
_STREAMS = (2, 1)
"""Standard error first: what a program dies of stands there."""
OutputKind = Literal["file", "terminal", "pipe", "closed", "other"]


class OutputPlace(NamedTuple):
    """Where a stream of the command leads, with the offset at which its own part of a file begins."""

    kind: OutputKind
    path: str | None = None
    start_offset: int | None = None


class Recorded(NamedTuple):
    """The outputs of a command that can be read again, and how."""

    output: OutputPlace
    """The one whose place is said."""
    files: tuple[tuple[OutputPlace, int | None], ...] = ()
    """Files, each with a descriptor that leads there."""

    @property
    def folder(self) -> str | None:
        """Return the folder of the file that is written to, which may fill up."""
        path = self.files[0][0].path if self.files else None
        return None if path is None else os.path.dirname(path) or None

    def text(self) -> bytes | None:
        """Return the last of what was written; two files after each other, standard error last. None where nothing can be read."""
        texts = [text for output, handle in reversed(self.files) if (text := _text(output, handle)) is not None]
        return b"\n".join(text[-_MOST // len(texts) :] for text in texts) if texts else None


def outputs(log: str | None) -> Recorded:
    """Return where the command's outputs lead. `log` is a file that somebody names."""
    if log is not None:
        output = output_of(2, log)
        return Recorded(output, ((output, None),))
    streams = [(output_of(stream, None), stream) for stream in _STREAMS]
    files: list[tuple[OutputPlace, int | None]] = []
    seen = set[tuple[int, int]]()
    for output, stream in streams:
        if output.kind == "file" and (same := _identity(stream)) not in seen:
            seen.add(same)
            files.append((output, _kept(stream)))
    return Recorded(files[0][0] if files else streams[0][0], tuple(files))


def output_of(descriptor: int, log: str | None) -> OutputPlace:
    """Return where a descriptor leads, with the place at which the command's own part begins. `log` is a file that somebody names."""
    if log is not None:
        return OutputPlace(kind="file", path=os.path.abspath(log).encode("utf-8", "replace").decode(), start_offset=_size(log) or 0)
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return OutputPlace(kind="closed")
    if stat.S_ISREG(mode):
        return OutputPlace(kind="file", path=_path(descriptor), start_offset=_offset(descriptor))
    if os.isatty(descriptor):
        return OutputPlace(kind="terminal")
    return OutputPlace(kind="pipe" if stat.S_ISFIFO(mode) else "other")


def _text(output: OutputPlace, descriptor: int | None) -> bytes | None:
    """Return the last of what the command wrote to a file; None where that cannot be read again.

    The descriptor is read where the path leads nowhere any more: to a file that was deleted or lies in another container.
    """
    if output.kind != "file":
        return None
    paths = (*([] if output.path is None else [output.path]), *([] if descriptor is None else [f"/proc/self/fd/{descriptor}"]))
    return next((text for path in paths if (text := _end_of(path, output.start_offset or 0)) is not None), None)


def _end_of(path: str, start: int) -> bytes | None:
    """Return what stands behind an offset, the last of it where it is much."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(min(start, end), end - _MOST))
            return file.read(_MOST)
    except OSError:
        return None


def _identity(descriptor: int) -> tuple[int, int]:
    figures = os.fstat(descriptor)
    return figures.st_dev, figures.st_ino


def _kept(descriptor: int) -> int | None:
    """Return a copy of a descriptor, which the command does not inherit and that takes no place of the standard streams."""
    try:
        return os.dup(descriptor) if fcntl is None else int(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3))
    except OSError:
        return None


def _path(descriptor: int) -> str | None:
    try:
        return os.fsencode(os.readlink(f"/proc/self/fd/{descriptor}")).decode("utf-8", "replace")
    except OSError:
        return None


def _offset(descriptor: int) -> int:
    """Return where the next byte goes: the end of a file that is appended to."""
    try:
        if fcntl is not None and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
            return os.fstat(descriptor).st_size
        return os.lseek(descriptor, 0, os.SEEK_CUR)
    except OSError:
        return 0


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
