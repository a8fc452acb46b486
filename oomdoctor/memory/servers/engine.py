"""What distinguishes one server from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server, StartupProfile
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape


class ShareQuery(Struct, frozen=True, kw_only=True):
    """What decides the share of a card that a server takes where nobody says it."""

    card: int
    """Bytes of the card."""
    batched: int
    """Tokens of a step."""
    graphs: int
    """Requests of the largest CUDA graph; 0 where none are captured."""
    cards: int
    """Cards over which the model is spread."""
    pipeline: int
    replicas: int
    """Copies of the attention."""
    drafts: bool
    """Whether something proposes tokens."""
    shape: Shape
    profile: StartupProfile
    beside: float | None = None
    """Bytes of the card beside the share, where the rules say them."""


class ServerEngine(Struct, frozen=True, kw_only=True):
    """The memory of one server."""

    start: Callable[[Setup, Server, int], Served]
    """Return what the server makes of a card of so many bytes."""
    card_bytes: Callable[[Served, Mapping[str, int], Mapping[str, Value]], int | None]
    """Return the card that explains a log: from an expected start, the bytes of terms that the log shows, and its facts."""
    default_fraction: Callable[[ShareQuery], float]
    """Return the memory fraction where no rule says it."""
    limits_requests: bool = False
    """Whether `Server.requests` limits the requests that run at a time; else it is the largest batch with a CUDA graph."""
