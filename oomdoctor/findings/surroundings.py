"""The text around a failure in its log: the lines before the message, the frames that lead to it, and the lines after it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.case.incident import Incident
from oomdoctor.ingest.clean import clean_lines

BEFORE, AFTER = 4 << 10, 2 << 10
"""How many bytes before and after a message are examined."""
_LEAD = 3
"""Lines before a message that are read with it."""
_FURTHER = 4
"""Messages of the same failure, and of what followed from it, that are read with it: often only these say what the program was doing."""


class Surroundings(Struct, frozen=True):
    """Lines around a failure, as printed by its writer."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """From the message on."""


class FailureText(Struct, frozen=True):
    """The text that is searched for signs of requests."""

    message: str
    """The message and the lines before it."""
    frames: tuple[str, ...]
    """The frames and source lines that lead to it, innermost last; the lines around it if there are none."""
    near: tuple[str, ...]


def surroundings(before: bytes, after: bytes, rank: int | None) -> Surroundings:
    """Return the lines around a failure that were printed by its writer or by no identified one."""
    return Surroundings(tuple(_lines_of(before[-BEFORE:], rank)), tuple(_lines_of(after[:AFTER], rank)))


def failure_text(incident: Incident, around: Surroundings) -> FailureText:
    """Return the text that is searched for signs of requests."""
    root = incident.root
    own = tuple(line for line in (root.frame, *root.text.split("\n")) if line)
    near = (*around.before, *own, *around.after)
    frames = (*incident.traceback.split("\n"), *own) if incident.traceback else near
    further = [event.text for event in (*incident.repeats[:_FURTHER], *incident.consequences[:_FURTHER])]
    return FailureText("\n".join((*around.before[-_LEAD:], root.text, *further)), frames, near)


def _lines_of(raw: bytes, rank: int | None) -> Sequence[str]:
    return [line.text for line in clean_lines(raw, 0) if line.text and line.rank in (None, rank)]
