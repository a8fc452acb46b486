"""The logs below some paths -> the parts of a store brought up to date, on one engine or another."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Literal

from oomdoctor import __version__
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.triage.elsewhere.path_lists import read_paths
from oomdoctor.triage.engines import local, ray_cluster
from oomdoctor.triage.engines.part_work import Task
from oomdoctor.triage.groups import Fleet, summarise
from oomdoctor.triage.listing import list_named
from oomdoctor.triage.placing import Layouts
from oomdoctor.triage.real_paths import real_paths
from oomdoctor.triage.scheduler.records import Records, keep_records
from oomdoctor.triage.store.changes import PathsDigest, digest_of_file
from oomdoctor.triage.store.damage import find_damage, note_held, told_of_repair
from oomdoctor.triage.store.expiry import expire
from oomdoctor.triage.store.known import Known, digest_of_parts, forget_known, keep_known
from oomdoctor.triage.store.parts import ALL_PARTS, PARTS, Parts
from oomdoctor.triage.store.unlogged import keep_unlogged
from oomdoctor.triage.work import Redact


def read_logs(
    paths: Sequence[str],
    folder: str,
    lock: str,
    *,
    is_walked: bool,
    depends_on: str,
    redact: Redact,
    files_from: str | None,
    records: Sequence[str],
    rules: str | None,
    jobs: int,
    engine: Literal["local", "ray"],
    address: str | None,
    refresh: bool,
    shard: tuple[int, int] | None,
    expires: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[int, Known, list[str]]:
    """Bring all parts in a folder up to date; return how many families were read, the sum of all parts, and what was damaged.

    The state that is kept is the listed one: later changes are picked up by the next run. It is kept if the logs are found by walking
    folders (`is_walked`), and names what rows depend on besides them (`depends_on`). Rows of jobs that ended before
    `expires` are dropped. The rest are the arguments of `triage`.
    """
    if engine == "local":
        local.prepare(jobs)
    forget_known(folder)
    digest = PathsDigest(paths) if is_walked else None
    pack = load_pack(over=rules)
    layouts = Layouts(list(pack.records(LAYOUTS)))
    parts = Parts(folder)
    chosen_parts = range(PARTS) if shard is None else range(shard[0], PARTS, shard[1])
    store = os.path.dirname(folder)
    damaged = find_damage(store, ALL_PARTS if shard is None else chosen_parts)
    named = chain(paths, real_paths(read_paths(files_from)) if files_from is not None else ())
    listing = list_named(named, None if digest is None else digest.add)
    count, numbers = parts.write_lists((placed for listed in listing for placed in layouts.place(listed)), chosen_parts)
    if not count and shard is None:
        raise UsageError("there are no logs at these paths")
    for part in damaged:
        if part.number not in numbers:
            parts.mend(part.number)
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
    run_parts = partial(ray_cluster.run, address=address) if engine == "ray" else partial(local.run, processes=jobs)
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
    if kept is not None and (shard is None or shard[0] == 0):  # all shards are given the same
        keep_unlogged(parts, Records(kept), tool=__version__, rules=task.rules_version)
    if expires is not None and shard is None:
        expire(parts, expires)
    if left:
        problems.append(f"parts not finished: {len(left)}; run it again ({left[0]})")
    fleet = summarise(parts.rows()) if shard is None else Fleet()
    state = "" if digest is None else f"{digest.text} {depends_on}"
    whole = Known(state, digest_of_parts(folder) if shard is None else "", count, fleet, tuple(problems))
    repaired = told_of_repair(store, damaged)
    if shard is None:
        note_held(store)
        if digest is not None and not left:
            keep_known(folder, whole)
    return read, whole, repaired


def _records(paths: Sequence[str], folder: str, shard: str) -> tuple[str | None, list[str]]:
    if not paths:
        return None, []
    path = os.path.join(folder, f"records{shard}.db")
    if os.path.exists(path):
        os.unlink(path)
    return path, keep_records(paths, path)
