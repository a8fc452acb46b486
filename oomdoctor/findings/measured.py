"""What was measured at a failure, alongside the message that its program printed."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.event import Event
from oomdoctor.case.incident import Incident

_REFUSAL = "watched-refusal"


def with_measured(incident: Incident) -> Event:
    """Return the root of a failure with the figures that a recorder measured for the same failure and that its message omits."""
    root = incident.root
    if not incident.kind.is_memory or root.signature == _REFUSAL:
        return root
    measured = next((event for event in incident.repeats if event.signature == _REFUSAL and _is_of(event, root)), None)
    if measured is None:
        return root
    return replace(
        root,
        fields={**measured.fields, **root.fields},
        phase=root.phase or measured.phase,
        frame=root.frame or measured.frame,
        computes=root.computes or measured.computes,
    )


def _is_of(measured: Event, root: Event) -> bool:
    """Return whether two messages concern the same failure: the same rank and GPU, as far as both are named."""
    cards = {event.fields.get("gpu_index") for event in (measured, root)} - {None}
    return len(cards) < 2 and (root.rank is None or measured.rank in (None, root.rank))
