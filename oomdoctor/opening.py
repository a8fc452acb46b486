"""Opening files named by a person or by another file: nothing endless, no waiting forever, and no way out of the fence.

`confine` sets up the fence: from then on this process, and those that it starts, open named files only below some folders. The
check is where the opened file actually is, not what its name looked like before: a link that is swapped in between leads nowhere.
A file with a second name elsewhere (a hard link) is in both places.
"""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import sys
from collections.abc import Sequence
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OUTSIDE = "outside the folders that may be read"
DEVICE = "a device, not a file"
PIPE = "a pipe, not a file"
NO_WRITER = "no process writes to this pipe"
_FENCE = "OOMDOCTOR_ONLY_BELOW"
"""The environment variable that holds the folders, as JSON: processes inherit it."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_FIRST_BYTES_S = 10.0
_LONGEST_PATH = 1024
_KERNEL_MESSAGES = "/proc/kmsg"


def confine(folders: Sequence[str]) -> None:
    """Allow named files to be opened only below some folders from now on."""
    os.environ[_FENCE] = json.dumps([os.path.realpath(folder) for folder in folders])


def lies_inside(real: str) -> bool:
    """Return whether a path without links is where files may be opened."""
    fence = os.environ.get(_FENCE)
    return fence is None or any(real == folder or real.startswith(os.path.join(folder, "")) for folder in json.loads(fence))


def open_descriptor(path: str, flags: int = _FLAGS, mode: int = 0o666) -> int:
    """Open what a path names, whatever it is, without waiting. Raise OSError on failure, or if it is outside the fence."""
    handle = os.open(path, flags, mode)
    if _FENCE in os.environ:
        try:
            if not lies_inside(_real_path(handle, path)):
                raise OSError(errno.EXDEV, OUTSIDE, path)  # the error of openat2 with RESOLVE_BENEATH
        except BaseException:
            os.close(handle)
            raise
    return handle


def open_file(path: str) -> BinaryIO:
    """Open a regular file. Raise OSError if it is not one."""
    return _checked(open_descriptor(path), path)


def open_rule_file(path: str) -> BinaryIO:
    """Open a regular rule file: whoever started this process named its folder, and no fence applies to it. Raise OSError on failure."""
    return _checked(os.open(path, _FLAGS), path)


def open_file_or_pipe(path: str) -> BinaryIO:
    """Open a regular file, or a pipe that has a writer: only if a person named it. Raise OSError if it is neither."""
    handle = open_descriptor(path)
    if not stat.S_ISFIFO(os.fstat(handle).st_mode):
        return _checked(handle, path)
    try:
        wait_for_writer(handle)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _checked(handle: int, path: str) -> BinaryIO:
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and (status.st_size or _has_end(handle, path)):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a folder", path)
    raise OSError(errno.ENODEV, PIPE if stat.S_ISFIFO(status.st_mode) else DEVICE, path)


def _has_end(handle: int, path: str) -> bool:
    """Return whether a file can be read without waiting; some kernel files, which report themselves as regular, cannot.

    Kernel messages that are read are lost to all other readers, however many are waiting.
    """
    if sys.platform == "win32":
        return True
    return _real_path(handle, path) != _KERNEL_MESSAGES and bool(select.select([handle], [], [], 0)[0])


def wait_for_writer(handle: int) -> None:
    """Wait until a pipe has data, and allow it to be read to its end. Raise OSError if nothing comes."""
    if not select.select([handle], [], [], _FIRST_BYTES_S)[0]:
        raise OSError(errno.EAGAIN, NO_WRITER)
    os.set_blocking(handle, True)


def _real_path(handle: int, path: str) -> str:
    """Return where an open file is. Raise OSError if the system does not report it."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        pass
    if fcntl is not None and sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(handle, fcntl.F_GETPATH, bytes(_LONGEST_PATH)).rstrip(b"\0"))
    real = os.path.realpath(path)
    if not os.path.samestat(os.lstat(real), os.fstat(handle)):
        raise OSError(errno.EXDEV, OUTSIDE, path)
    return real
