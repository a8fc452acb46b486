"""What an evidence folder holds beside the log: what was observed, as events, and the texts that were recorded, to be read like logs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.observer import ObservedFile, Observer
from oomdoctor.record.evidence import RUN
from oomdoctor.record.evidence_place import RANKS
from oomdoctor.record.observations.endings import ending_events, kernel_lines
from oomdoctor.record.observations.over_time import card_events, host_events, phase_events
from oomdoctor.record.observations.refusals import first_rank_events, is_of_something_else, refusal_events, traceback_of
from oomdoctor.record.read_folder import RankEvidence, RunEvidence, size_of


def observed(evidence: RunEvidence, pack: Pack) -> list[ObservedFile]:
    """Return what a folder shows, by the names of its files, in the order of what happened."""
    return [part for part in _parts(evidence, Observer(pack)) if part.events or part.text]


def _parts(evidence: RunEvidence, see: Observer) -> Iterator[ObservedFile]:
    for rank in sorted(evidence.ranks, key=_first_failure):
        key = f"{RANKS}/{'' if rank.rank is None else f'rank-{rank.rank}.'}pid-{rank.pid}"
        yield _part(evidence, f"{key}.ring", card_events(see, rank))
        yield _part(evidence, f"{key}.phases.json", phase_events(see, rank))
        if rank.exception is not None:
            exception = rank.exception
            text = exception.traceback or f"{exception.type}: {exception.text}"
            yield _part(evidence, f"{key}.exception.json", text=f"{text}\n")
        for number, refused in enumerate(rank.ooms, 1):
            stack = "" if is_of_something_else(rank, refused) else traceback_of(refused.stack)
            yield _part(evidence, f"{key}.oom-{number}.json", refusal_events(see, evidence, rank, refused), stack)
    run = evidence.run
    # Without a record of the run its node died: neither the wrapper nor the processes saw the end.
    left = [see.event("watched-node-died", {"left_processes": len(evidence.ranks)})] if run is None and evidence.ranks else []
    yield _part(evidence, RANKS, [*first_rank_events(see, evidence), *left])
    if run is not None:
        events = [*host_events(see, evidence.samples, run), *ending_events(see, evidence, run)]
        yield _part(evidence, RUN, events, kernel_lines(evidence, run))


def _part(evidence: RunEvidence, name: str, events: Iterable[Event] = (), text: str = "") -> ObservedFile:
    size = size_of(os.path.join(evidence.path, name))
    return ObservedFile(name=name, events=tuple(events), text=text.encode("utf-8", "replace"), size=size)


def _first_failure(rank: RankEvidence) -> tuple[float, int]:
    """Return when a process was refused memory first; those that were not come last."""
    return min((refused.time for refused in rank.ooms), default=float("inf")), rank.rank or 0
