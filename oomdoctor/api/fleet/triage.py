"""Many jobs at once: one row a job, and what the rows come to together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal

from msgspec import Struct

from oomdoctor import __version__
from oomdoctor.api.fleet.stores import remember, store_of
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.triage.elsewhere.path_lists import read_paths
from oomdoctor.triage.elsewhere.stores import is_in_store
from oomdoctor.triage.engines import local, ray_cluster
from oomdoctor.triage.engines.part_work import Finished, Task
from oomdoctor.triage.groups import Fleet, summarise
from oomdoctor.triage.listing import is_missing, list_named
from oomdoctor.triage.placing import Layouts
from oomdoctor.triage.scheduler.records import keep_records
from oomdoctor.triage.store.changes import PathsDigest, digest_of, digest_of_file
from oomdoctor.triage.store.known import Known, forget_known, keep_known, read_known
from oomdoctor.triage.store.known_groups import KnownGroups, note_groups
from oomdoctor.triage.store.lock import alone
from oomdoctor.triage.store.parts import PARTS, Parts
from oomdoctor.triage.work import Redact

Engine = Callable[[Task, Sequence[int]], Iterator[Finished]]
"""Works on parts by their numbers, and yields each when it is finished."""


class TriageResult(Struct, frozen=True, kw_only=True):
    """What a triage came to."""

    fleet: Fleet
    """Empty for a shard: `merge` sums up what all of them made."""
    folder: str
    """Where the rows lie, in parts."""
    files: int
    """Files that were listed."""
    read: int
    """Families of files that were read now, and not known from before."""
    known: KnownGroups
    """What earlier runs of the store knew of the groups; of a shard nothing."""
    problems: tuple[str, ...] = ()
    """What of the records could not be read and what of the work was not done, a line each."""


def triage(
    paths: Sequence[str] = (),
    *,
    redact: Redact,
    files_from: str | None = None,
    store: str | None = None,
    records: Sequence[str] = (),
    rules: str | None = None,
    jobs: int = 1,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    refresh: bool = False,
    shard: tuple[int, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TriageResult:
    """Make one row a job of all logs below some paths, and keep the rows in `store`: a second run reads only what is new.

    `files_from` is a file with more paths, `-` standard input: a line each, or each ended by NUL.
    `records` are files or folders of `sacct --parsable2`, or of JSON of sacct, scontrol or kubectl (pods, events). `redact` takes names and
    secrets out of quoted lines.
    `engine` is where the work runs: in `jobs` processes of this machine, or on the Ray cluster at `address` (default: the one that runs).
    `shard` (I, N) takes the I-th of N equal parts of the work, I from 0; shards may work at once in one store, and `merge` sums them up.
    `progress` is told files done, files in all.
    Raise UsageError where nothing is at the paths, or nothing can be written to `store`.
    """
    if shard is not None and not 0 <= shard[0] < shard[1] <= PARTS:
        raise UsageError(f"--shard {shard[0]}/{shard[1]}: shards are counted from 0, and there are at most {PARTS}")
    missing = [path for path in paths if is_missing(path)]
    if paths and len(missing) == len(paths) and files_from is None:
        raise UsageError(f"no such file or folder: {', '.join(missing)}")
    kept_in = store or store_of([*paths, files_from] if files_from is not None else paths)
    paths = [path for path in paths if path not in missing]
    folder = os.path.join(kept_in, "parts")
    run_parts = partial(ray_cluster.run, address=address) if engine == "ray" else partial(local.run, processes=jobs)
    lock = os.path.join(kept_in, "lock" if shard is None else f"lock-{shard[0]}-of-{shard[1]}")
    try:
        os.makedirs(folder, exist_ok=True)
        with alone(lock):
            # What a store or a list of paths holds shows only as it is listed.
            is_walked = files_from is None and not any(map(is_in_store, paths))
            last = None if refresh or shard is not None or not is_walked else read_known(folder)
            if last is None or last.state != f"{digest_of(paths)} {_depends_on(rules, records)}":
                if engine == "local":
                    local.prepare(jobs)
                named = chain(paths, read_paths(files_from) if files_from is not None else ())
                read, last = _read(
                    named,
                    folder,
                    lock,
                    PathsDigest(paths) if is_walked else None,
                    redact,
                    records,
                    rules,
                    run_parts,
                    refresh,
                    shard,
                    progress,
                )
            else:
                read = 0
            known = note_groups(kept_in, last.fleet) if shard is None else KnownGroups()
    except OSError as why:
        raise UsageError(f"cannot write to {folder}: {(why.strerror or str(why)).lower()}") from why
    remember(kept_in)
    problems = (*(f"{path}: no such file or folder" for path in missing), *last.problems)
    return TriageResult(fleet=last.fleet, folder=folder, files=last.files, read=read, known=known, problems=problems)


def _read(
    paths: Iterable[str],
    folder: str,
    lock: str,
    digest: PathsDigest | None,
    redact: Redact,
    records: Sequence[str],
    rules: str | None,
    run_parts: Engine,
    refresh: bool,
    shard: tuple[int, int] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[int, Known]:
    """Bring all parts up to date; return how many families were read, and what all parts come to.

    The state that is kept is that which was listed: what changes later is met by the next run.
    """
    forget_known(folder)
    pack = load_pack(over=rules)
    layouts = Layouts(list(pack.records(LAYOUTS)))
    parts = Parts(folder)
    chosen_parts = None if shard is None else range(shard[0], PARTS, shard[1])
    listing = list_named(paths, None if digest is None else digest.add)
    depends_on = _depends_on(rules, records)
    count, numbers = parts.write_lists((placed for listed in listing for placed in layouts.place(listed)), chosen_parts)
    if not count and shard is None:
        raise UsageError("there are no logs at these paths")
    kept, problems = _records(records, folder, "" if shard is None else f"-{shard[0]}-of-{shard[1]}")
    task = Task(
        folder=folder,
        lock=lock,
        redact=redact,
        tool=__version__,
        rules_version="+".join(filter(None, (__version__, rules))),
        rules=rules,
        records=kept,
        records_version="" if kept is None else digest_of_file(kept),
        refresh=refresh,
    )
    done = read = 0
    left = []
    for finished in run_parts(task, numbers):
        if finished.problem is None:
            parts.drop_list(finished.number)
        else:
            left.append(finished.problem)
        done, read = done + finished.files, read + finished.read
        if progress is not None:
            progress(done, count)
    if left:
        problems.append(f"parts not finished: {len(left)}; run it again ({left[0]})")
    fleet = summarise(parts.rows()) if shard is None else Fleet()
    whole = Known("" if digest is None else f"{digest.text} {depends_on}", count, fleet, tuple(problems))
    if shard is None and digest is not None and not left:
        keep_known(folder, whole)
    return read, whole


def _depends_on(rules: str | None, records: Sequence[str]) -> str:
    """Return what is equal as long as nothing changed, beside the logs, on which rows depend."""
    return f"{__version__} {digest_of([*records, *([rules] if rules else [])])}"


def _records(paths: Sequence[str], folder: str, shard: str) -> tuple[str | None, list[str]]:
    if not paths:
        return None, []
    path = os.path.join(folder, f"records{shard}.db")
    if os.path.exists(path):
        os.unlink(path)
    return path, keep_records(paths, path)
