"""What distinguishes one server from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server, StartupProfile
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape


class ShareQuery(Struct, frozen=True, kw_only=True):
    """What determines the default share of a GPU that a server uses."""

    card: int
    """Bytes of the GPU."""
    batched: int
    """Tokens per step."""
    graphs: int
    """Requests in the largest CUDA graph; 0 if none are captured."""
    cards: int
    """GPUs across which the model is distributed."""
    pipeline: int
    replicas: int
    """Copies of the attention."""
    drafts: bool
    """Whether something drafts tokens."""
    shape: Shape
    profile: StartupProfile
    beside: float | None = None
    """Bytes of the GPU outside the share, if the rules give them."""


class ServerEngine(Struct, frozen=True, kw_only=True):
    """The memory of one server."""

    start: Callable[[Setup, Server, int], Served]
    """Return how the server uses a GPU of this many bytes."""
    card_bytes: Callable[[Served, Mapping[str, int], Mapping[str, Value]], int | None]
    """Return the GPU size that explains a log: from an expected startup, the bytes of terms that the log shows, and its facts."""
    default_fraction: Callable[[ShareQuery], float]
    """Return the memory fraction if no rule gives it."""
    limits_requests: bool = False
    """Whether `Server.requests` limits the requests that run at a time; otherwise it is the largest batch with a CUDA graph."""
