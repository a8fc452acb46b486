"""What the kernel says of memory while a run lasts."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress

try:
    import fcntl
except ImportError:  # Windows, which has no such log
    fcntl = None  # type: ignore[assignment]

_ABOUT_MEMORY = (
    rb"out of memory|oom[-_ ]kill|oom_reaper|killed process|invoked oom|page allocation failure|memory cgroup out of memory|"
    rb"NVRM: .{0,40}Xid|segfault at|traps: |hung_task|blocked for more than"
)
_MOST_LINES, _MOST_READ = 200, 20_000


class KernelLog:
    """The messages of the kernel from now on; none where they may not be read (CAP_SYSLOG, most containers)."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self._handle: int | None = None
        with suppress(OSError, AttributeError):
            self._handle = _above_streams(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            os.lseek(self._handle, 0, os.SEEK_END)

    def lines(self) -> list[str] | None:
        """Return what was said of memory since; None where that may not be read."""
        if self._handle is None:
            return None
        lines: list[str] = []
        try:
            for _ in range(_MOST_READ):
                with suppress(BrokenPipeError):  # that record was overwritten meanwhile
                    record = os.read(self._handle, 8192)
                    if not record:  # something else lies in the place of the log
                        return lines or None
                    if (line := _line(record)) is not None:
                        lines.append(line)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EPERM):
                return lines[-_MOST_LINES:] or None
        return lines[-_MOST_LINES:]


def _above_streams(handle: int) -> int:
    """Return a descriptor that takes no place of a standard stream, which may be closed."""
    if handle > 2:
        return handle
    moved: int = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(handle)
    return moved


def _line(record: bytes) -> str | None:
    """Return the text of a record of /dev/kmsg (`priority,number,microseconds,flags;text`) where it is about memory."""
    head, _, text = record.partition(b";")
    fields = head.split(b",")
    text = text.partition(b"\n")[0]
    if len(fields) < 3 or not fields[2].isdigit() or not re.search(_ABOUT_MEMORY, text, re.IGNORECASE):
        return None
    return f"[{int(fields[2]) / 1e6:12.6f}] {text.decode('utf-8', 'replace')}"
