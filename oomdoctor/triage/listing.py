"""List the files below the given paths, folder by folder, each file once; paths that cannot be entered are reported.

Nothing is opened. Links to files are followed only where they lead out of what is listed, links to folders never, so no circle is walked.
"""

from __future__ import annotations

import errno
import glob
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct

from oomdoctor.ingest.sources import SKIPPED_FOLDERS, is_of_the_kernel, is_other_data
from oomdoctor.triage.elsewhere.stores import is_in_store, list_stores
from oomdoctor.triage.log_file import LogFile

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
_BATCH = 20_000
_UNPRINTABLE = re.compile("[\ud800-\udfff]")
"""Python's representation of name bytes that are not UTF-8."""
_NAMED = 10_000
"""How many entries of a path list are looked up at a time."""
_EXPORTS = (".json", ".jsonl", ".ndjson")
"""Data elsewhere, and the format in which log stores export lines."""


_NAME = attrgetter("name")
_OF_A_STORE = re.compile(r"lock(?:-\d+-of-\d+)?|parts|(?:groups|held|told|whole)\.json|rows-.+|.+\.(?:new|part|tmp)")
_OF_THE_KERNEL = frozenset({"proc", "sys", "dev", ""})
"""Names of folders that are checked before they are entered."""


class VisitedFolder(Struct, frozen=True):
    """A folder that was encountered, or a part of it."""

    path: str
    folders: tuple[str, ...] = ()
    """Names of its subfolders."""
    entries: Sequence[os.DirEntry[str]] = ()
    problem: str | None = None
    """Why it was not entered, or not read to the end."""


Note = Callable[[VisitedFolder], None]
"""Called for the folders that a listing walks through."""


class ListedFolder(Struct, frozen=True):
    """The files directly in one folder."""

    path: str
    folders: tuple[str, ...]
    """Names of its subfolders."""
    files: tuple[LogFile, ...]


def list_folders(paths: Sequence[str], note: Note | None = None) -> Iterator[ListedFolder]:
    """Yield the folders below the paths (files, folders, globs, store URLs) with their files, in a fixed order.

    `note` is told of what is met below those paths that are folders.
    """
    in_stores = [path for path in paths if is_in_store(path)]
    if in_stores:
        for folder, folders, listed in list_stores(in_stores):
            yield ListedFolder(
                folder, folders, tuple(file for file in listed if file.path in in_stores or _is_log(file.path.rpartition("/")[2]))
            )
        paths = [path for path in paths if not is_in_store(path)]
    roots = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
    seen: set[tuple[int, int]] = set()
    for path in paths:
        matched = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) and not os.path.lexists(path) else [path]
        if not matched:
            yield ListedFolder(os.path.dirname(path), (), (LogFile(path, 0, 0, problem="no such file"),))
        alone: dict[str, list[LogFile]] = {}
        for named in matched:
            if os.path.isdir(named):
                yield from _walk(named, roots, seen, note if named is path else None)
            elif (file := _file(named, [], seen)) is not None:
                alone.setdefault(os.path.dirname(named), []).append(file)
        for folder, files in alone.items():
            yield ListedFolder(folder, _folders_in(folder), tuple(files))


def is_missing(path: str) -> bool:
    """Return whether a path matches no file or folder, directly or as a pattern. The contents of a store are seen only later."""
    if is_in_store(path) or os.path.lexists(path):
        return False
    return not glob.has_magic(path) or next(glob.iglob(path, recursive=True), None) is None


def list_named(paths: Iterable[str], note: Note | None = None) -> Iterator[ListedFolder]:
    """Yield what a list of paths names, however long it is, in the same way as `list_folders`."""
    paths = iter(paths)
    while some := list(itertools.islice(paths, _NAMED)):
        yield from list_folders(some, note)


@lru_cache(maxsize=1024)
def _folders_in(path: str) -> tuple[str, ...]:
    """Return the subfolder names of a folder some of whose files were named."""
    try:
        with os.scandir(path or os.curdir) as entries:
            return tuple(sorted(_folders(entries)))
    except OSError:
        return ()


def visit(root: str) -> Iterator[VisitedFolder]:
    """Yield a folder and its subfolders, in pieces if it has very many entries; kernel and tool folders are skipped."""
    waiting = [iter((root,))]
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        if path.rpartition(os.sep)[2] in _OF_THE_KERNEL and is_of_the_kernel(path):
            yield VisitedFolder(path, problem="kernel or device files, not logs")
            continue
        folders: tuple[str, ...] = ()
        try:
            for folders, entries in _batches(path):
                if _is_store(entries):
                    folders, entries = (), []
                yield VisitedFolder(path, folders, entries)
        except OSError as why:
            yield VisitedFolder(path, problem=(why.strerror or str(why)).lower())
        if folders:
            waiting.append(map(os.path.join(path, "").__add__, folders))


def _is_store(entries: Iterable[os.DirEntry[str]]) -> bool:
    """Return whether a folder contains only triage's own output, which is not a job log."""
    names = {entry.name for entry in entries}
    return any(name.startswith("lock") for name in names) and all(_OF_A_STORE.fullmatch(name) for name in names)


def _walk(root: str, roots: Sequence[str], seen: set[tuple[int, int]], note: Note | None) -> Iterator[ListedFolder]:
    """Yield a folder and its subfolders with their files; `note` is called for each."""
    for met in visit(root):
        if note is not None:
            note(met)
        if met.problem is not None:
            yield ListedFolder(met.path, (), (_file_of(met.path, 0, 0, problem=met.problem),))
            continue
        files = (_listed(entry, roots, seen) for entry in met.entries if _is_log(entry.name))
        yield ListedFolder(met.path, met.folders, tuple(file for file in files if file is not None))


def _batches(path: str) -> Iterator[tuple[tuple[str, ...], list[os.DirEntry[str]]]]:
    """Yield subfolder names with some of the folder's entries: a folder with millions is never held whole. Raise OSError."""
    with os.scandir(path) as entries:
        batch = list(itertools.islice(entries, _BATCH))
        if len(batch) < _BATCH:
            batch.sort(key=_NAME)
            yield _folders(batch), batch
            return
        with os.scandir(path) as again:
            folders = tuple(sorted(_folders(again)))
        while batch:
            yield folders, batch
            batch = list(itertools.islice(entries, _BATCH))


def _folders(entries: Iterable[os.DirEntry[str]]) -> tuple[str, ...]:
    return tuple([entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED_FOLDERS])


def _unread(path: str, why: OSError) -> LogFile:
    return _file_of(path, 0, 0, problem=(why.strerror or str(why)).lower())


def _file_of(path: str, size: int, modified: int, owner: int = 0, problem: str | None = None) -> LogFile:
    """Return a file; if its name cannot be represented as text, it is named as closely as possible and not read."""
    if path.isascii() or not _UNPRINTABLE.search(path):
        return LogFile(path, size, modified, owner, problem)
    return LogFile(os.fsencode(path).decode("utf-8", "backslashreplace"), 0, modified, owner, "a name that is not UTF-8")


def _listed(entry: os.DirEntry[str], roots: Sequence[str], seen: set[tuple[int, int]]) -> LogFile | None:
    """Return an entry of a folder as a file; None if it is not a file or was encountered elsewhere."""
    if entry.is_symlink():
        return _file(entry.path, roots, seen)
    if not entry.is_file(follow_symlinks=False):
        return None
    try:
        return _described(entry.path, entry.stat(follow_symlinks=False), seen)
    except OSError as why:
        return _unread(entry.path, why)


def _file(path: str, roots: Sequence[str], seen: set[tuple[int, int]]) -> LogFile | None:
    """Return a file that is named or that a link points to; None if its target is listed on its own."""
    if os.path.islink(path) and any(target.startswith(os.path.join(root, "")) for target in _targets(path) for root in roots):
        return None
    try:
        status = os.stat(path)
    except ValueError as why:  # the name contains a NUL
        return _file_of(path, 0, 0, problem=str(why))
    except OSError as why:
        return _file_of(path, 0, 0, problem="a broken link") if os.path.islink(path) else _unread(path, why)
    if stat.S_ISDIR(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        return _file_of(path, 0, 0, problem="a pipe, a socket or a device, not a log")
    return _described(path, status, seen)


def _targets(path: str) -> Iterator[str]:
    """Yield the target of a link, and the link that names it; a broken link is reported at its own path."""
    try:
        os.stat(path)
        yield os.path.realpath(path)
    except OSError as why:
        if why.errno == errno.ELOOP:
            return
    named = os.path.join(os.path.dirname(path), os.readlink(path))
    if os.path.lexists(named):
        yield os.path.join(os.path.realpath(os.path.dirname(named)), os.path.basename(named))


def _described(path: str, status: os.stat_result, seen: set[tuple[int, int]]) -> LogFile | None:
    """Return what distinguishes a file from its later versions; None for a second name of a known file."""
    if status.st_nlink > 1:
        known = (status.st_dev, status.st_ino)
        if known in seen:
            return None
        seen.add(known)
    return _file_of(path, status.st_size, status.st_mtime_ns, status.st_uid)


def _is_log(name: str) -> bool:
    """Return whether a file in a folder may be a log: not source code, weights or data."""
    return name.endswith((*ARCHIVES, *_EXPORTS)) or not is_other_data(name)
