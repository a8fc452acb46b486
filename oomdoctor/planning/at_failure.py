"""What was on the card when a run failed: what its settings explain of it, and which samples would explain it all."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.expected import AtFailure
from oomdoctor.case.incident import Incident
from oomdoctor.case.setup import Setup
from oomdoctor.memory.estimate import at_phases

_PHASES = {"forward": ("forward",), "backward": ("forward", "backward"), "optimizer-step": ("step",), "evaluation": ("evaluation",)}
"""The phases of incidents by those of estimates. A backward pass begins with what the forward pass ends with."""
_STEP = 64
_LONGEST = 1 << 20
"""Tokens; no sample is longer."""


def at_failure(setup: Setup, incident: Incident) -> AtFailure | None:
    """Compare what should have been allocated at the failure with what was."""
    names = _PHASES.get(incident.phase or "", ())
    allocated, requested = incident.root.size("allocated_bytes"), incident.root.size("requested_bytes")
    sizes = at_phases(replace(setup, counter="max_allocated"), names)
    if sizes is None or allocated is None or requested is None:
        return None
    expected, low, high = sizes
    return AtFailure(phase=str(incident.phase), expected=expected, low=low, high=high, seen=allocated + requested)


def explaining_length(setup: Setup, incident: Incident) -> int | None:
    """Return the tokens of a sample with which the run has as much on the card as it had when it failed, in steps of 64.

    None where no length does: the failure had another reason, or the moment is not known.
    """
    low, high = 1, _LONGEST // _STEP

    def too_short(steps: int) -> bool | None:
        at = at_failure(replace(setup, length=steps * _STEP), incident)
        return None if at is None else at.expected < at.seen

    if not too_short(low) or too_short(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_short(middle) else (low, middle)
    return high * _STEP
