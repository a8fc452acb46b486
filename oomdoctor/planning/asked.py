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
from oomdoctor.knowledge.cards import card
from oomdoctor.knowledge.shapes import shape
from oomdoctor.planning.room import measured_room
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
    return Asked(setup=setup, assumptions=assumptions, training=training, log=log, room=_room(roots, log))


def _shape(known: Run, model: str | None) -> Shape:
    named = model or known.settings.get("model")
    found = (read_shape(str(model)) or shape(str(model))) if model else known.shape or (read_shape(str(named)) if named else None)
    if found is None:
        which = f"the model {named} is not in the table" if named else "which model?"
        raise UsageError(f"{which}; name it with --model, or give a folder or file with its config.json")
    return found


def _room(roots: Sequence[Event], log: Mapping[str, Value]) -> Room | None:
    """The card of the first message that says its size, and what the process had there outside of torch."""
    root = next((one for one in roots if one.size("total_bytes")), None)
    if root is None:
        return None
    parts = [root.size(name) for name in ("process_bytes", "allocated_bytes", "reserved_unallocated_bytes")]
    outside = None if None in parts else (parts[0] or 0) - (parts[1] or 0) - (parts[2] or 0)
    name = str(log.get("log.gpu_name", ""))
    known = card(name) if name else None
    return measured_room(
        name, root.size("total_bytes") or 0, outside if outside and outside > 0 else None, known.capability if known else ""
    )
