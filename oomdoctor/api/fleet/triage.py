"""Many jobs at once: one row per job, and a summary of the rows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Literal

from msgspec import Struct

from oomdoctor import __version__
from oomdoctor.api.fleet.stores import remember, store_of
from oomdoctor.errors import UsageError
from oomdoctor.triage.elsewhere.stores import is_in_store
from oomdoctor.triage.groups import Fleet, summarise
from oomdoctor.triage.listing import is_missing
from oomdoctor.triage.real_paths import real_paths
from oomdoctor.triage.store.changes import digest_of
from oomdoctor.triage.store.known import digest_of_parts, read_known
from oomdoctor.triage.store.known_groups import GROUPS_LOST, KnownGroups, are_lost, note_groups
from oomdoctor.triage.store.lock import alone
from oomdoctor.triage.store.parts import FORMAT, PARTS, Parts
from oomdoctor.triage.window import ALL, TimeWindow

_DAY = 86_400


class TriageResult(Struct, frozen=True, kw_only=True):
    """The result of a triage."""

    fleet: Fleet
    """Empty for a shard: `merge` sums up what all of them produced."""
    folder: str
    """The folder of the rows, in parts."""
    files: int
    """Files that were listed."""
    read: int
    """Families of files that were read in this run rather than known from before."""
    known: KnownGroups
    """What earlier runs of the store knew about the groups; empty for a shard."""
    problems: tuple[str, ...] = ()
    """Unreadable records, damaged parts of the store, and work not done, one line each."""


def triage(
    paths: Sequence[str] = (),
    *,
    redact: Callable[[str], str],
    files_from: str | None = None,
    store: str | None = None,
    records: Sequence[str] = (),
    rules: str | None = None,
    jobs: int = 1,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    refresh: bool = False,
    shard: tuple[int, int] | None = None,
    window: TimeWindow = ALL,
    keep: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TriageResult:
    """Create one row per job from all logs below some paths, and keep the rows in `store`: a second run reads only what is new.

    `files_from` is a file with more paths, `-` standard input: one per line, or each terminated by NUL. `records` are files or folders of
    `sacct --parsable2`, or of JSON from sacct, scontrol or kubectl (pods, events). `redact` removes names and secrets from quoted lines.
    `engine` is where the work runs: in `jobs` processes on this machine, or on the Ray cluster at `address` (default: the running one).
    `shard` (I, N) processes the I-th of N equal parts of the work, I from 0; shards may run concurrently in one store, and `merge` sums
    them up. `window` is the time whose jobs are summed up; all rows are kept, or only those that ended in the last `keep` seconds.
    `progress` is called with files done and the total number of files. Raise UsageError if there is nothing at the paths, or nothing can be
    written to `store`.
    """
    if shard is not None and not 0 <= shard[0] < shard[1] <= PARTS:
        raise UsageError(f"--shard {shard[0]}/{shard[1]}: shards are counted from 0, and there are at most {PARTS}")
    missing = [path for path in paths if is_missing(path)]
    if paths and len(missing) == len(paths) and files_from is None:
        raise UsageError(f"no such file or folder: {', '.join(missing)}")
    kept_in = store or store_of([*paths, files_from] if files_from is not None else paths)
    paths = list(real_paths(path for path in paths if path not in missing))
    folder = os.path.join(kept_in, "parts")
    lock = os.path.join(kept_in, "lock" if shard is None else f"lock-{shard[0]}-of-{shard[1]}")
    # The contents of a store or a list of paths are known only once it is listed.
    is_walked = files_from is None and not any(map(is_in_store, paths))
    # Whole days: what is kept changes once a day, so that a second run with nothing new reads nothing.
    expires = None if keep is None else (int(time.time()) - keep) // _DAY * _DAY
    depends_on = f"{__version__} {FORMAT} {expires or ''} {digest_of([*records, *([rules] if rules else [])])}"
    try:
        os.makedirs(folder, exist_ok=True)
        with alone(lock):
            last = None if refresh or shard is not None or not is_walked else read_known(folder)
            read, told = 0, [GROUPS_LOST] if are_lost(kept_in) else []
            if last is None or last.state != f"{digest_of(paths)} {depends_on}" or last.parts != digest_of_parts(folder):
                # If nothing has changed, the log reader is not loaded: that takes longer than finding out.
                read, last, repaired = import_module("oomdoctor.api.fleet.reading").read_logs(
                    paths,
                    folder,
                    lock,
                    is_walked=is_walked,
                    depends_on=depends_on,
                    redact=redact,
                    files_from=files_from,
                    records=records,
                    rules=rules,
                    jobs=jobs,
                    engine=engine,
                    address=address,
                    refresh=refresh,
                    shard=shard,
                    expires=expires,
                    progress=progress,
                )
                told += repaired
            known = note_groups(kept_in, last.fleet) if shard is None else KnownGroups()
    except OSError as why:
        raise UsageError(f"cannot write to {why.filename2 or why.filename or folder}: {(why.strerror or str(why)).lower()}") from why
    fleet = last.fleet if window.is_all or shard is not None else summarise(Parts(folder).rows(window), window)
    remember(kept_in)
    problems = (*(f"{path}: no such file or folder" for path in missing), *told, *last.problems)
    return TriageResult(fleet=fleet, folder=folder, files=last.files, read=read, known=known, problems=problems)
