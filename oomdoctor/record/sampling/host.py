"""The machine's memory at a moment."""

from __future__ import annotations

import os
import re

_CARD_DEVICES = ("/dev/nvidiactl", "/dev/dxg")
"""What a driver of NVIDIA makes, on Linux and in WSL."""


def has_card_driver() -> bool:
    """Return whether there is a driver that can be asked what cards hold."""
    return any(map(os.path.exists, _CARD_DEVICES))


def memory() -> tuple[int | None, int | None]:
    """Return what the machine has left, and what it has."""
    sizes: dict[bytes, int] = {}
    try:
        for line in (read("/proc/meminfo") or b"").splitlines()[:8]:
            name, _, value = line.partition(b":")
            sizes[name] = int(value.split()[0]) * 1024
    except (ValueError, IndexError):
        pass
    return sizes.get(b"MemAvailable"), sizes.get(b"MemTotal")


def swap() -> tuple[int | None, int | None]:
    """Return the swap space that is free, and all of it."""
    sizes = dict(re.findall(rb"^(SwapFree|SwapTotal):\s+(\d{1,15}) kB", read("/proc/meminfo") or b"", re.MULTILINE))
    free, total = sizes.get(b"SwapFree"), sizes.get(b"SwapTotal")
    return None if free is None else int(free) * 1024, None if total is None else int(total) * 1024


def pressure() -> float | None:
    """Return the share of the last ten seconds in which something waited for memory, in percent."""
    stalled = re.match(rb"some avg10=(\d{1,3}\.\d\d)", read("/proc/pressure/memory") or b"")
    return float(stalled[1]) if stalled else None


def oom_kills() -> int | None:
    """Return how many processes the kernel killed for memory since it started (Linux 4.13)."""
    counted = re.search(rb"^oom_kill (\d{1,18})$", read("/proc/vmstat") or b"", re.MULTILINE)
    return int(counted[1]) if counted else None


def started_processes() -> int | None:
    """Return how many processes and threads the machine started since it did itself."""
    counted = re.search(rb"^processes (\d{1,18})$", read("/proc/stat", 1 << 20) or b"", re.MULTILINE)
    return int(counted[1]) if counted else None


def has_machine_pids() -> bool:
    """Return whether this process is in the first name space of process numbers (PROC_PID_INIT_INO of include/linux/proc_ns.h)."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC
    except OSError:
        return False


def file_system(path: str) -> tuple[int | None, int | None]:
    """Return what is free of a file system, and its size."""
    try:
        figures = os.statvfs(path)
    except (OSError, AttributeError):
        return None, None
    return figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize


def read(path: str, most: int = 1 << 16) -> bytes | None:
    """Return the beginning of a file of the system."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(handle, most)
    except OSError:
        return None
    finally:
        os.close(handle)
