"""Logs in an object store, or anything else that fsspec can read: what is below a URL, and the bytes of some files.

Who names s3:// brings s3fs, who names gs:// gcsfs: fsspec says which package it lacks. Credentials and endpoints are those packages' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from oomdoctor.errors import UsageError
from oomdoctor.extras import load_extra
from oomdoctor.triage.log_file import LogFile

_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_TOGETHER = 16
"""How many folders are listed at once: a store responds slowly, but to many requests at a time."""
_TIMES = ("LastModified", "last_modified", "mtime", "updated")
_TAGS = ("ETag", "etag", "e_tag", "md5Hash", "content_md5")
"""The stores' names for an object's write time and the hash of its contents."""

Listed = tuple[str, tuple[str, ...], tuple[LogFile, ...]]
"""A folder, the names of its subfolders, its own files."""


def is_in_store(path: str) -> bool:
    """Return whether a path is a store URL."""
    return _URL.match(path) is not None


def list_stores(urls: Sequence[str]) -> Iterator[Listed]:
    """Yield the folders at and below some URLs with their files, several at a time. Raise UsageError if such URLs cannot be read here."""
    with ThreadPoolExecutor(_TOGETHER) as pool:
        waiting = [url.rstrip("/") for url in reversed(urls)]
        for url in waiting:
            _store(url)
        while waiting:
            some = waiting[-_TOGETHER:][::-1]
            del waiting[-_TOGETHER:]
            for listed in pool.map(_list_one, some):
                yield listed
                waiting += [f"{listed[0]}/{name}" for name in reversed(listed[1])]


def _list_one(url: str) -> Listed:
    """Return the direct contents of a URL, or the file it names."""
    store = _store(url)
    own = store._strip_protocol(url)  # noqa: SLF001 - fsspec has no other name for it
    try:
        entries = sorted(store.ls(own, detail=True), key=lambda entry: str(entry["name"]))
    except FileNotFoundError:
        return _parent(url), (), (LogFile(url, 0, 0, problem="no such file"),)
    except Exception as why:  # noqa: BLE001 - each store raises its own
        return _parent(url), (), (LogFile(url, 0, 0, problem=_reason(why)),)
    if len(entries) == 1 and entries[0]["name"] == own and entries[0]["type"] == "file":
        return _parent(url), (), (_file(url, entries[0]),)
    named = [(str(entry["name"]).rstrip("/").rpartition("/")[2], entry) for entry in entries if str(entry["name"]).rstrip("/") != own]
    folders = tuple(name for name, entry in named if entry["type"] == "directory")
    files = tuple(_file(f"{url}/{name}", entry) for name, entry in named if entry["type"] == "file")
    return url, folders, files


def fetch_small(files: Sequence[LogFile]) -> list[bytes | str]:
    """Return the bytes of each file, fetching many at once, or why a file could not be fetched."""
    out: list[bytes | str] = [b""] * len(files)
    filled = [number for number, file in enumerate(files) if file.size]
    by_store: dict[str, list[int]] = {}
    for number in filled:
        by_store.setdefault(files[number].path.partition("://")[0], []).append(number)
    for numbers in by_store.values():
        store = _store(files[numbers[0]].path)
        names = [store._strip_protocol(files[number].path) for number in numbers]  # noqa: SLF001
        ends = [files[number].size for number in numbers]
        for number, got in zip(numbers, store.cat_ranges(names, [0] * len(names), ends, on_error="return")):
            out[number] = got if isinstance(got, bytes) else _reason(got)
    return out


def fetch_large(file: LogFile, path: str) -> str | None:
    """Write the bytes of a file to `path`; return why if that failed."""
    store = _store(file.path)
    try:
        store.get_file(store._strip_protocol(file.path), path)  # noqa: SLF001
    except Exception as why:  # noqa: BLE001 - each store raises its own
        return _reason(why)
    return None


def _store(url: str) -> Any:
    """Return fsspec's reader for a URL; it keeps one per kind."""
    fsspec = load_extra("fsspec", "fleet", url)
    try:
        # A cached listing would hold all names in memory, and miss new files.
        return fsspec.core.url_to_fs(url, use_listings_cache=False)[0]
    except (ImportError, ValueError) as why:
        raise UsageError(f"{url}: {why}") from why


def _file(url: str, entry: Any) -> LogFile:
    tag = next((str(entry[name]).strip('"') for name in _TAGS if entry.get(name)), None)
    return LogFile(url, int(entry.get("size") or 0), _nanoseconds(next((entry[name] for name in _TIMES if entry.get(name)), 0)), tag=tag)


def _nanoseconds(value: object) -> int:
    """Return a store's time in nanoseconds since 1970; 0 if it has no known time."""
    if isinstance(value, datetime):
        return int(value.timestamp()) * 10**9
    if isinstance(value, (int, float)):
        return int(value * 10**9)
    try:
        return int(datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()) * 10**9
    except ValueError:
        return 0


def _parent(url: str) -> str:
    return url.rpartition("/")[0]


def _reason(why: BaseException) -> str:
    return "no such file" if isinstance(why, FileNotFoundError) else (str(why).splitlines() or [type(why).__name__])[0][:200].lower()
