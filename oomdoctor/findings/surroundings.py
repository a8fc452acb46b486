"""What stands around a failure in its log: the lines before the message, the frames that lead to it, and the lines after it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.case.incident import Incident
from oomdoctor.ingest.clean import clean_lines

BEFORE, AFTER = 4 << 10, 2 << 10
"""So many bytes around a message are looked at."""
_LEAD = 3
"""Lines before a message that are read with it."""
_FURTHER = 4
"""Messages of the same failure, and of what followed from it, that are read with it: the program often says only there what it was at."""


class Surroundings(Struct, frozen=True):
    """Lines around a failure, as its writer printed them."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """From the message on."""


class FailureText(Struct, frozen=True):
    """What the signs of requests are looked for in."""

    message: str
    """The message and the lines before it."""
    frames: tuple[str, ...]
    """The frames and source lines that lead to it, the innermost last; the lines around it where there are none."""
    near: tuple[str, ...]


def surroundings(before: bytes, after: bytes, rank: int | None) -> Surroundings:
    """Return the lines around a failure that its writer printed, or nobody in particular."""
    return Surroundings(tuple(_lines_of(before[-BEFORE:], rank)), tuple(_lines_of(after[:AFTER], rank)))


def failure_text(incident: Incident, around: Surroundings) -> FailureText:
    """Return what the signs of requests are looked for in."""
    root = incident.root
    own = tuple(line for line in (root.frame, *root.text.split("\n")) if line)
    near = (*around.before, *own, *around.after)
    frames = (*incident.traceback.split("\n"), *own) if incident.traceback else near
    further = [event.text for event in (*incident.repeats[:_FURTHER], *incident.consequences[:_FURTHER])]
    return FailureText("\n".join((*around.before[-_LEAD:], root.text, *further)), frames, near)


def _lines_of(raw: bytes, rank: int | None) -> Sequence[str]:
    return [line.text for line in clean_lines(raw, 0) if line.text and line.rank in (None, rank)]
