"""The memory requests of a run, in order."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct


class Frame(NamedTuple):
    """A place in a program: a line of its code, or a part of the model."""

    file: str
    line: int
    name: str


class Site(NamedTuple):
    """What asks for memory."""

    operation: str
    frames: tuple[Frame, ...] = ()
    """Innermost first."""


class Request(NamedTuple):
    """A tensor that gets memory or gives it back, or the beginning of a phase."""

    action: Literal["alloc", "release", "free", "phase"]
    """`release` comes before `free` where a block that nobody has any more waits for another stream (record_stream)."""
    tensor: int = 0
    """A number for as long as the tensor lives; of a phase, the step that it belongs to."""
    size: int = 0
    site: int = 0
    """Its place in `sites`; of a phase, in `phases`."""


class RequestLog(Struct, frozen=True, kw_only=True):
    """All requests of a run."""

    requests: tuple[Request, ...]
    sites: tuple[Site, ...] = (Site("unknown"),)
    phases: tuple[str, ...] = ("load", "forward", "backward", "step")
