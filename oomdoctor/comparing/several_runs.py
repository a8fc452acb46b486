"""Split the input into several runs: which logs belong to which run, and one verdict for all of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Union

from oomdoctor.case.case import SEVERAL_RUNS, RunLine, Verdict, worst_first
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.ingest.runs import group_by_run, has_rank, name_of_run, stem_of
from oomdoctor.parse.reading import SourceEvents

_MANY = 6
"""With at least this many logs, failures that have nothing in common belong to different runs, whatever the logs are called."""
_FEW = 8

Story = Callable[[SourceEvents], Union[str, None]]
"""A log's own failure; None if it did not fail, or only together with others."""


def split_by_run(reads: Sequence[SourceEvents], story: Story) -> list[list[SourceEvents]]:
    """Return the logs of each run; a single group if they all belong to one run."""
    groups = [[reads[number] for number in numbers] for numbers in group_by_run([read.source.name for read in reads])]
    if len(groups) > 1 or not _are_unrelated(reads, story):
        return groups
    streams: dict[str, list[SourceEvents]] = {}
    for read in reads:
        streams.setdefault(stem_of(read.source.name), []).append(read)
    return list(streams.values())


def _are_unrelated(reads: Sequence[SourceEvents], story: Story) -> bool:
    """Return whether many logs failed, each in its own way, and none of them names a process of a run."""
    if len(reads) < _MANY or any(has_rank(read.source.name) for read in reads):
        return False
    if any(event.rank is not None or event.kind is Kind.CONSEQUENCE for read in reads for event in read.events):
        return False
    stories = (told for read in reads if (told := story(read)) is not None)
    first = next(stories, None)
    return any(told != first for told in stories)


def name_runs(runs: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each run: the common part of its log paths, without the part common to all runs."""
    shared = [_common_parts([name_of_run(name).split("/") for name in names]) for names in runs]
    whole = len(_common_parts(shared))
    return ["/".join(parts[min(whole, len(parts) - 1) :]) or names[0] for parts, names in zip(shared, runs)]


def shown_by(name: str, logs: Sequence[str], of_all: Sequence[str]) -> str:
    """Return arguments for `oomdoctor diagnose` that select the logs of one run only: a path, a pattern in a folder, or a few paths.

    `name` is the run's name, `of_all` the logs of all runs. Empty if no short form exists.
    """
    folder, root, pattern = _common_folder(logs), _common_folder(of_all), f"*{name}*"
    ways = [shlex.join(logs)] if len(logs) <= _FEW else []
    if folder and {log for log in of_all if log.startswith(f"{folder}/")} == set(logs):
        ways.append(shlex.quote(folder))
    if root and {log for log in of_all if fnmatchcase(os.path.relpath(log, root), pattern)} == set(logs):
        ways.append(f"{shlex.quote(root)} --include {shlex.quote(pattern)}")
    return min(ways, key=len, default="")


def _common_folder(names: Sequence[str]) -> str:
    return "/".join(_common_parts([name.split("/")[:-1] for name in names]))


def _common_parts(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the leading parts common to all paths."""
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths))
    return [parts[0] for parts in shared]


def verdict_of_runs(lines: Sequence[RunLine]) -> Verdict:
    """Return the verdict for several runs: the worst one, and never certain, because the runs are unrelated."""
    worst = min(lines, key=worst_first).verdict
    certainty = Certainty.LIKELY if worst.certainty is Certainty.CERTAIN else worst.certainty
    settle = worst.settle if worst.reason == "not-read-whole" else None
    return Verdict(
        memory_failure=worst.memory_failure,
        kind=worst.kind,
        certainty=certainty,
        survived=worst.survived,
        reason=SEVERAL_RUNS,
        settle=settle,
    )
