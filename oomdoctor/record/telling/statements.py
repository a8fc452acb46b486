"""The texts of an evidence folder that are read like logs.

So evidence takes the way of every log: lines become events, events incidents, and rules judge them, with examples that a person can read.
"""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.record.evidence import RunRecord
from oomdoctor.record.read_folder import RankEvidence, RunEvidence
from oomdoctor.record.telling.endings import ending_lines, left_lines
from oomdoctor.record.telling.over_time import card_lines, host_lines
from oomdoctor.record.telling.refusals import first_rank_lines, refusal_lines


def texts(evidence: RunEvidence) -> list[tuple[str, bytes]]:
    """Return the texts of a folder that are read like logs, each with the name of its file, in the order of what happened."""
    told: list[tuple[str, Iterator[str]]] = []
    for rank in sorted(evidence.ranks, key=_first_failure):
        key = f"ranks/{'' if rank.rank is None else f'rank-{rank.rank}.'}pid-{rank.pid}"
        told.append((f"{key}.ring", card_lines(rank)))
        if rank.exception is not None:
            exception = rank.exception
            told.append((f"{key}.exception.json", iter([exception.traceback or f"{exception.type}: {exception.text}"])))
        told += [(f"{key}.oom-{number}.json", refusal_lines(evidence, rank, refused)) for number, refused in enumerate(rank.ooms, 1)]
    told.append(("ranks", first_rank_lines(evidence)))
    if evidence.run is not None:
        told.append(("run.json", _run_lines(evidence, evidence.run)))
    elif evidence.ranks:
        told.append(("ranks", left_lines(evidence)))
    out = [(name, "\n".join(lines)) for name, lines in told]
    return [(name, (text + "\n").encode("utf-8", "replace")) for name, text in out if text]


def _run_lines(evidence: RunEvidence, run: RunRecord) -> Iterator[str]:
    yield from host_lines(evidence.samples, run)
    yield from ending_lines(evidence, run)


def _first_failure(rank: RankEvidence) -> tuple[float, int]:
    """Return when a process was refused memory first; those that were not come last."""
    return min((refused.time for refused in rank.ooms), default=float("inf")), rank.rank or 0
