"""Which logs belong to one run, by their names: attempts and numbered runs are told apart, ranks and streams of one run are not."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_RUN = (
    r"(?i)(?<![a-z])(?:attempt|try|retry|restart|trial|run|exp(?:eriment)?|job|slurm(?![_-]\d{1,12}_\d)|version|sweep|seed|fold|sample|build|pipeline)"
    r"[._-]?(?:id[._-]?)?\d[0-9A-Za-z]{0,20}(?:_\d{4,8})?(?=$|[^A-Za-z0-9])|slurm[_-]\d{1,12}_\d{1,6}(?=$|\D)"
)
"""What numbers runs in names: an attempt, a job, a seed."""
_STARTED = r"\d{4}-?\d\d-?\d\d[T_ -]?\d\d[-:_]?\d\d(?:[-:_]?\d\d)?|\d\d-\d\d-\d\d"
"""A folder that is named after the time at which its run began."""
_RANK = (
    r"(?i)(?<![a-z])(?:(?:local|global|node)?[._-]?rank|worker|node|host|proc(?:ess)?|pid|gpu|device|cuda|npu|task|replica|pod|trainer|actor|dp|tp|pp|ep"
    r"|cn|gn|r)[._-]?\d{1,6}(?![a-z])"
)
_ROTATED = r"(?i)(?<=\.log|\.txt|\.err|\.out)(?:\.\d{1,3}|-\d{8}(?:-\d{1,10})?)(?=(?:\.(?:gz|zst|xz|bz2))?$)"
"""How logrotate calls the earlier pieces of a log."""
_ENDINGS = r"(?i)(?:[._-]?(?:std)?(?:err|out)(?:or|put)?)?(?:\.(?:log|txt|err|out|gz|zst|xz|bz2|\d{1,3})){0,4}$"


def run_of(name: str) -> tuple[str, ...]:
    """Return what in the path of a log numbers its run; empty where nothing does."""
    numbered = [match[0].lower() for part in _parts(name) for match in re.finditer(_RUN, part)]
    return (*numbered, *(part for part in _parts(name)[:-1] if re.fullmatch(_STARTED, part)))


def name_of_run(name: str) -> str:
    """Return the path of a log up to what numbers its run; the whole path where nothing does."""
    parts = _parts(name)
    ends = [(number, match.end()) for number, part in enumerate(parts) for match in re.finditer(_RUN, part)]
    ends += [(number, len(part)) for number, part in enumerate(parts[:-1]) if re.fullmatch(_STARTED, part)]
    if not ends:
        return "/".join(parts)
    last, end = max(ends)
    return "/".join([*parts[:last], parts[last][:end]])


def has_rank(name: str) -> bool:
    """Return whether the path of a log names a process of a run: a rank, a node, a worker, or a folder that is called by a number."""
    return re.search(_RANK, name) is not None or any(folder.isdigit() for folder in _parts(name)[:-1])


def unrotated(name: str) -> str:
    """Return the path of a piece of a rotated log as that of the log; any other path as it is."""
    return re.sub(_ROTATED, "", name)


def stem_of(name: str) -> str:
    """Return the path of a log without its endings, so that the two streams of a program have one."""
    folder, file = os.path.split(name)
    return os.path.join(folder, re.sub(_ENDINGS, "", unrotated(file)))


def group_by_run(names: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the logs of each run, in the order of the first log of each; one group where the names tell of one run."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, name in enumerate(names):
        groups.setdefault(run_of(name), []).append(number)
    if len(groups) == 2 and () in groups:
        # What a launcher writes beside the folder of its only attempt.
        return [list(range(len(names)))]
    return list(groups.values())


def _parts(name: str) -> list[str]:
    return name.replace("\\", "/").split("/")
