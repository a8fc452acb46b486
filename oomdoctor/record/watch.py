"""Start a command, watch it, and keep what was seen of it as the evidence of its run.

What stands here is done before the command runs, and loads no more than that takes; `attend.py` is loaded while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Union

from oomdoctor.record.command.launch import Launched, NotStarted
from oomdoctor.record.command.signals import HAS_WAITING
from oomdoctor.record.evidence_place import make_place, remove_tree
from oomdoctor.record.injection import discard, inject
from oomdoctor.record.options import WatchOptions
from oomdoctor.record.output import outputs

if TYPE_CHECKING:
    from oomdoctor.record.attend import WatchedRun
    from oomdoctor.record.command.plain import PlainLaunched

AnyLaunched = Union[Launched, "PlainLaunched"]


def watch(command: Sequence[str], environment: Mapping[str, str], options: WatchOptions) -> tuple[AnyLaunched, WatchedRun | None]:
    """Run a command, watch it, and return what is known of it, if anything is. The caller ends as it ended, by `Launched.end`.

    Raise NotStarted where it cannot be started.
    """
    place = make_place(options.out)
    recorded = outputs(options.log)
    injection = inject(place.path, options.level)
    try:
        environment = environment if injection is None else injection.environment(environment)
        launched = _launched(command, environment, again=options.retries > 0)
    except NotStarted:
        discard(injection)
        if place.path is not None and place.is_new:
            remove_tree(place.path)
        raise
    with suppress(Exception):  # whatever fails in us, the command runs to its end and we end as it does
        from oomdoctor.record.attend import attend  # noqa: PLC0415 - loaded while the command already runs

        return launched, attend(launched, command, options, place, recorded, injection)
    return launched, None


def _launched(command: Sequence[str], environment: Mapping[str, str], *, again: bool) -> AnyLaunched:
    """Start a command; where signals cannot be waited for, handlers pass them on."""
    if HAS_WAITING:
        return Launched(command, environment, again=again)
    from oomdoctor.record.command.plain import PlainLaunched  # noqa: PLC0415 - macOS and Windows alone need it

    return PlainLaunched(command, environment)
