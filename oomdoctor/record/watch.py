"""Start a command, watch it, and keep what was seen of it as the evidence of its run.

What stands here is done before the command runs, and loads no more than that takes; `attend.py` is loaded while it runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Union

from oomdoctor.record.command.launch import Launched, NotStarted
from oomdoctor.record.command.signals import HAS_WAITING
from oomdoctor.record.evidence_place import RANKS, EvidencePlace, make_place, remove_if_empty, remove_tree
from oomdoctor.record.injection import discard, inject
from oomdoctor.record.options import Prepared, WatchOptions
from oomdoctor.record.output import outputs
from oomdoctor.record.sampling.before import KernelBefore
from oomdoctor.record.tasks import task_of

if TYPE_CHECKING:
    from oomdoctor.record.attend import WatchedRun
    from oomdoctor.record.command.plain import PlainLaunched

_SHORT = 0.1
"""Seconds. A command that ended well within them, and left nothing, has nothing to tell."""

AnyLaunched = Union[Launched, "PlainLaunched"]


def watch(command: Sequence[str], environment: Mapping[str, str], options: WatchOptions) -> tuple[AnyLaunched, WatchedRun | None]:
    """Run a command, watch it, and return what is known of it, if anything is. The caller ends as it ended, by `Launched.end`.

    Raise NotStarted where it cannot be started.
    """
    task = task_of(environment) if options.attempt == 1 else None
    place = make_place(options.out, task)
    prepared = Prepared(place, outputs(options.log), inject(place.path, options.level), KernelBefore(), None if task is None else task.rank)
    injection = prepared.injection
    try:
        environment = environment if injection is None else injection.environment(environment)
        launched = _launched(command, environment, again=options.retries > 0)
    except NotStarted:
        _remove(prepared)
        raise
    with suppress(Exception):  # whatever fails in us, the command runs to its end and we end as it does
        if (options.out is None or task is not None) and launched.has_ended_well(_SHORT) and _is_empty(place):
            _remove(prepared)
            return launched, None
        from oomdoctor.record.attend import attend  # noqa: PLC0415 - loaded while the command already runs

        return launched, attend(launched, command, options, prepared)
    return launched, None


def _launched(command: Sequence[str], environment: Mapping[str, str], *, again: bool) -> AnyLaunched:
    """Start a command; where signals cannot be waited for, handlers pass them on."""
    if HAS_WAITING:
        return Launched(command, environment, again=again)
    from oomdoctor.record.command.plain import PlainLaunched  # noqa: PLC0415 - macOS and Windows alone need it

    return PlainLaunched(command, environment)


def _is_empty(place: EvidencePlace) -> bool:
    """Return whether no recorder wrote anything."""
    return place.path is None or not os.listdir(os.path.join(place.path, RANKS))


def _remove(prepared: Prepared) -> None:
    """Take away what was made for the run."""
    discard(prepared.injection)
    if prepared.place.path is not None and prepared.place.is_new:
        remove_tree(prepared.place.path)
        if prepared.rank is not None:
            remove_if_empty(os.path.dirname(prepared.place.path))
