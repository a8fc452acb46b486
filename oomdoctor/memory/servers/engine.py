"""What distinguishes one server from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server
from oomdoctor.case.setup import Setup


class ServerEngine(Struct, frozen=True, kw_only=True):
    """The memory of one server."""

    start: Callable[[Setup, Server, int], Served]
    """Return what the server makes of a card of so many bytes."""
    card_bytes: Callable[[Served, Mapping[str, int], Mapping[str, Value]], int | None]
    """Return the card that explains a log: from an expected start, the bytes of terms that the log shows, and its facts."""
    default_fraction: Callable[[int, int, int, int], float]
    """Return the memory fraction by bytes of the card, tokens of a step, requests with a CUDA graph, and cards; where no rule says it."""
    limits_requests: bool = False
    """Whether `Server.requests` limits the requests that run at a time; else it is the largest batch with a CUDA graph."""
