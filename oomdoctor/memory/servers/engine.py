"""What distinguishes one server from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server, StartupCheckName
from oomdoctor.case.setup import Setup


class ServerEngine(Struct, frozen=True, kw_only=True):
    """The memory of one server."""

    start: Callable[[Setup, Server, int], Served]
    """Return what the server makes of a card of so many bytes."""
    card_bytes: Callable[[Served, Mapping[str, int], Mapping[str, Value]], int | None]
    """Return the card that explains a log: from an expected start, the bytes of terms that the log shows, and its facts."""
    fraction_option: str
    """Its name for the memory fraction."""
    default_fraction: Callable[[int, int, int, int], float] | None = None
    """Return the memory fraction by bytes of the card, tokens of a step, requests with a CUDA graph, and cards; None: a table says it."""
    messages: Mapping[StartupCheckName, str]
    """The last line of a log at a check, where it is not plainly the allocator's; with `{requests}` and `{length}`."""
    limits_requests: bool = False
    """Whether `Server.requests` limits the requests that run at a time; else it is the largest batch with a CUDA graph."""
    checks_request: bool = False
    """Whether a start fails where the cache does not hold one request of full length."""
    graphs_by_version: bool = False
    """Whether its version decides if CUDA graphs come out of the share."""
