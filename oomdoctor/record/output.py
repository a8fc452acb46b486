"""Where a command writes to, and what it wrote. Nothing stands in between: a pipe of ours would change its buffering and its terminal."""

from __future__ import annotations

import os
import stat

from oomdoctor.record.evidence import Output

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MOST = 16 << 20


def output_of(descriptor: int, log: str | None) -> Output:
    """Return where a descriptor leads, with the place at which the command's own part begins. `log` is a file that somebody names."""
    if log is not None:
        return Output(kind="file", path=os.path.abspath(log), start_offset=_size(log) or 0)
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return Output(kind="closed")
    if stat.S_ISREG(mode):
        return Output(kind="file", path=_path(descriptor), start_offset=_offset(descriptor))
    if os.isatty(descriptor):
        return Output(kind="terminal")
    return Output(kind="pipe" if stat.S_ISFIFO(mode) else "other")


def output_text(output: Output, descriptor: int | None) -> bytes | None:
    """Return the last of what the command wrote to a file; None where that cannot be read again.

    The descriptor is read where the path leads nowhere any more: to a file that was deleted or lies in another container.
    """
    if output.kind != "file" or output.path is None:
        return None
    paths = (output.path, *([] if descriptor is None else [f"/proc/self/fd/{descriptor}"]))
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


def _path(descriptor: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
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
