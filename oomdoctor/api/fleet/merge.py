"""The rows of several triages, or of all shards of one, as one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oomdoctor.api.fleet.stores import last_store, remember, store_of
from oomdoctor.api.fleet.triage import TriageResult
from oomdoctor.errors import UsageError
from oomdoctor.triage.groups import summarise
from oomdoctor.triage.store.damage import find_damage, note_held, told_to_readers
from oomdoctor.triage.store.known import forget_known
from oomdoctor.triage.store.known_groups import note_groups
from oomdoctor.triage.store.lock import alone
from oomdoctor.triage.store.merging import merge_parts
from oomdoctor.triage.store.parts import Parts


def merge(stores: Sequence[str], *, into: str | None = None) -> TriageResult:
    """Sum up the contents of some stores, and keep it in the store `into` in addition to what is there (default: one in the cache).

    A single store in which all shards worked is only summed up. A job in several stores counts once, as it was last read.
    Raise UsageError if one is not a store, if another triage is using the store being written, or nothing can be written.
    """
    folders = [os.path.join(last_store(store), "parts") for store in stores]
    problems = [
        f"{store}: parts not finished: {unfinished}; a shard is still running or ended early: run it again, then merge"
        for store, folder in zip(stores, folders)
        if (unfinished := Parts(folder).unfinished())
    ]
    problems += [line for store in stores for line in told_to_readers(store)]
    kept_in = into or (stores[0] if len(stores) == 1 else store_of(stores))
    folder = os.path.join(kept_in, "parts")
    try:
        os.makedirs(folder, exist_ok=True)
        with alone(os.path.join(kept_in, "lock")):
            if len(stores) > 1 or into is not None:
                forget_known(folder)
                merge_parts([folder, *folders], folder)
            if not find_damage(kept_in):
                note_held(kept_in)
            fleet = summarise(Parts(folder).rows())
            known = note_groups(kept_in, fleet)
    except OSError as why:
        raise UsageError(f"cannot write to {folder}: {(why.strerror or str(why)).lower()}") from why
    remember(kept_in)
    return TriageResult(fleet=fleet, folder=folder, files=fleet.files, read=0, known=known, problems=tuple(problems))
