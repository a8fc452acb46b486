"""The limits of a process (`ulimit`), which whatever it starts has, too."""

from __future__ import annotations

from types import ModuleType

_LIMITS = {
    "address_space_bytes": "RLIMIT_AS",
    "data_bytes": "RLIMIT_DATA",
    "stack_bytes": "RLIMIT_STACK",
    "locked_bytes": "RLIMIT_MEMLOCK",
    "resident_bytes": "RLIMIT_RSS",
    "file_bytes": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
    "processes": "RLIMIT_NPROC",
}
"""By the names of getrlimit(2)."""

try:
    import resource as _resource

    _RESOURCE: ModuleType | None = _resource
except ImportError:  # Windows has no such limits
    _RESOURCE = None


def limits() -> dict[str, int]:
    """Return the soft limits of this process that are set, in bytes or as a number of files or processes."""
    if _RESOURCE is None:
        return {}
    soft = {
        name: _RESOURCE.getrlimit(getattr(_RESOURCE, constant))[0] for name, constant in _LIMITS.items() if hasattr(_RESOURCE, constant)
    }
    return {name: limit for name, limit in soft.items() if limit != _RESOURCE.RLIM_INFINITY}
