"""Several runs in what was given: which logs belong to which of them, and one verdict over all."""

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
"""From so many logs on, failures that have nothing in common are those of different runs, whatever the logs are called."""
_FEW = 8

Story = Callable[[SourceEvents], Union[str, None]]
"""What a log by itself failed with; None where it did not fail, or only with others."""


def split_by_run(reads: Sequence[SourceEvents], story: Story) -> list[list[SourceEvents]]:
    """Return the logs of each run; one group where they are those of one."""
    groups = [[reads[number] for number in numbers] for numbers in group_by_run([read.source.name for read in reads])]
    if len(groups) > 1 or not _are_unrelated(reads, story):
        return groups
    streams: dict[str, list[SourceEvents]] = {}
    for read in reads:
        streams.setdefault(stem_of(read.source.name), []).append(read)
    return list(streams.values())


def _are_unrelated(reads: Sequence[SourceEvents], story: Story) -> bool:
    """Return whether many logs, of which none names a process of a run, failed each with something of its own."""
    if len(reads) < _MANY or any(has_rank(read.source.name) for read in reads):
        return False
    if any(event.rank is not None or event.kind is Kind.CONSEQUENCE for read in reads for event in read.events):
        return False
    stories = (told for read in reads if (told := story(read)) is not None)
    first = next(stories, None)
    return any(told != first for told in stories)


def name_runs(runs: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each run: what the paths of its logs have in common, without what all runs have in common."""
    shared = [_common_parts([name_of_run(name).split("/") for name in names]) for names in runs]
    whole = len(_common_parts(shared))
    return ["/".join(parts[min(whole, len(parts) - 1) :]) or names[0] for parts, names in zip(shared, runs)]


def shown_by(name: str, logs: Sequence[str], of_all: Sequence[str]) -> str:
    """Return what names the logs of one run and no others to `oomdoctor diagnose`: a path, a pattern in a folder, or each of a few.

    `name` is what the run is called, `of_all` the logs of all runs. Empty where nothing short does.
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
    """Return the first parts that all paths share."""
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths))
    return [parts[0] for parts in shared]


def verdict_of_runs(lines: Sequence[RunLine]) -> Verdict:
    """Return the verdict over several runs: the worst of theirs, and nothing certain, as they have nothing to do with each other."""
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
