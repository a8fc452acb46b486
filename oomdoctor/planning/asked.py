"""What somebody asks a plan for: the run that configs and logs tell of, and the card of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption, Setup
from oomdoctor.case.events import Event, Value
from oomdoctor.case.plan import Room
from oomdoctor.case.shape import Shape
from oomdoctor.case.training import Training
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.shapes import shape
from oomdoctor.planning.room import room_of
from oomdoctor.sizing.model_files import read_shape
from oomdoctor.sizing.run import Run, run, run_setup


class Asked(Struct, frozen=True, kw_only=True):
    """A run, and the card that it failed on."""

    setup: Setup
    assumptions: tuple[Assumption, ...]
    training: Training | None
    log: Mapping[str, Value]
    room: Room | None
    """None where no log tells the size of the card."""


def asked(
    training: Training | None,
    log: Mapping[str, Value],
    roots: Sequence[Event],
    *,
    model: str | None = None,
    gpus: int | None = None,
    framework: str | None = None,
) -> Asked:
    """The run of configs and logs. Wrong use where nothing tells the model."""
    known = run(training, log)
    known = replace(known, cards=gpus or known.cards, framework=framework or known.framework)
    setup, assumptions = run_setup(known, _shape(known, model))
    return Asked(setup=setup, assumptions=assumptions, training=training, log=log, room=room_of(roots, log))


def _shape(known: Run, model: str | None) -> Shape:
    named = model or known.settings.get("model")
    found = (read_shape(str(model)) or shape(str(model))) if model else known.shape or (read_shape(str(named)) if named else None)
    if found is None:
        which = f"the model {named} is not in the table" if named else "which model?"
        raise UsageError(f"{which}; name it with --model, or give a folder or file with its config.json")
    return found
