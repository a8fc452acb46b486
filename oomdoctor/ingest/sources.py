"""Inputs as the user gives them -> the files to read: files, folders, globs, standard input."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

from msgspec import Struct

_NOT_LOGS = frozenset(
    [
        ".py",
        ".pyc",
        ".pyi",
        ".ipynb",
        ".c",
        ".cc",
        ".cpp",
        ".cu",
        ".cuh",
        ".h",
        ".hpp",
        ".rs",
        ".go",
        ".java",
        ".js",
        ".ts",
        ".css",
        ".html",
        ".md",
        ".rst",
        ".yaml",
        ".yml",
        ".toml",
        ".cfg",
        ".ini",
        ".lock",
        ".csv",
        ".parquet",
        ".so",
        ".a",
        ".o",
        ".whl",
        ".zip",
        ".tar",
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".svg",
        ".pdf",
        ".bin",
        ".pt",
        ".pth",
        ".ckpt",
        ".safetensors",
        ".gguf",
        ".onnx",
        ".npy",
        ".npz",
        ".pickle",
        ".pkl",
        ".arrow",
        ".model",
        ".idx",
        ".pack",
        ".json",
        ".ndjson",
    ]
)
"""Left out of folders (a file that is named itself is always read): source code, documents, weights, data."""
_MOST_FILES = 100_000
_NAMED = 3
SKIPPED_FOLDERS = frozenset(
    (".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)
"""Folders of tools, which hold no logs of runs."""


class MissingSource(Struct, frozen=True):
    """An input that names nothing that can be read."""

    name: str
    reason: str
    is_log: bool = True
    """Whether a log may be missing with it; not so for a pipe, a socket or a device in a folder."""


def expand_sources(paths: Sequence[str], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Iterator[str | MissingSource]:
    """Yield the files behind the inputs, each once, in a fixed order.

    A folder is walked without following links; `include` and `exclude` are globs over names and relative paths there.
    """
    seen: set[str] = set()
    for path in paths:
        for source in _behind(path, include, exclude):
            name = source.name if isinstance(source, MissingSource) else source
            if name not in seen:
                seen.add(name)
                yield source


def _behind(path: str, include: Sequence[str], exclude: Sequence[str]) -> Iterator[str | MissingSource]:
    if path == "-":
        yield path
        return
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as why:
        matched = _glob(path)
        if matched:
            for match in matched:
                yield from _behind(match, include, exclude)
        else:
            yield MissingSource(path, "no such file" if isinstance(why, FileNotFoundError) else str(getattr(why, "strerror", why)).lower())
        return
    if stat.S_ISDIR(mode):
        yield from _walk(path, include, exclude)
    else:
        yield path


def _glob(path: str) -> list[str]:
    if not any(char in path for char in "*?["):
        return []
    return sorted(glob.glob(path, recursive=True))


def _walk(root: str, include: Sequence[str], exclude: Sequence[str]) -> Iterator[str | MissingSource]:
    broken: list[OSError] = []
    special: list[str] = []
    count = 0
    for folder, folders, names in os.walk(root, onerror=broken.append):
        if is_of_the_kernel(folder):
            folders.clear()
            yield MissingSource(folder, "kernel or device files, not logs", is_log=False)
            continue
        folders[:] = sorted(folder_name for folder_name in folders if folder_name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            full = os.path.join(folder, name)
            if not _wanted(name, os.path.relpath(full, root), include, exclude):
                continue
            is_plain = _is_plain(full)
            if is_plain:
                count += 1
                if count > _MOST_FILES:
                    yield MissingSource(root, f"more than {_MOST_FILES:,} files; the rest was not read")
                    return
                yield full
            elif is_plain is not None:
                special.append(full)
        while broken:
            yield _cannot_enter(broken.pop(), root)
    while broken:
        yield _cannot_enter(broken.pop(), root)
    if special:
        named = ", ".join(special[:_NAMED]) + (" ..." if special[_NAMED:] else "")
        yield MissingSource(named, f"pipes, sockets and devices in the folder were skipped ({len(special)})", is_log=False)


def is_of_the_kernel(folder: str) -> bool:
    """Return whether a folder lies in a file system that the kernel makes up: reading there can wait, or never end."""
    try:
        return os.stat(folder).st_dev in _kernel_devices()
    except OSError:
        return False


@cache
def _kernel_devices() -> frozenset[int]:
    """Return the file systems of `/proc`, `/sys` and `/dev`, unless one of them is that of everything."""
    devices = set()
    for path in ("/proc", "/sys", "/dev"):
        with suppress(OSError):
            devices.add(os.stat(path).st_dev)
    with suppress(OSError):
        devices.discard(os.stat("/").st_dev)
    return frozenset(devices)


def _cannot_enter(why: OSError, root: str) -> MissingSource:
    return MissingSource(str(why.filename or root), (why.strerror or str(why)).lower())


def _wanted(name: str, relative: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if include:
        if not _matches(name, relative, include):
            return False
    elif is_other_data(name):
        return False
    return not exclude or not _matches(name, relative, exclude)


def is_other_data(name: str) -> bool:
    """Return whether the name of a file in a folder is that of source code, a document, weights or data."""
    return os.path.splitext(name)[1].lower() in _NOT_LOGS or name.startswith("LICENSE")


def _matches(name: str, relative: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name, glob) or fnmatch.fnmatch(relative, glob) for glob in globs)


def _is_plain(path: str) -> bool | None:
    """Return whether it is an ordinary file; pipes and devices inside folders are not opened. None for a link to nothing."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return None
