"""What a server printed about the memory of one GPU during startup."""

from __future__ import annotations

from msgspec import Struct


class ServerLedger(Struct, frozen=True, kw_only=True):
    """The parts of one GPU, or of the host. Sizes are bytes; None: not printed."""

    program: str
    source: str
    """The log that contains it."""
    of: str
    """The GPU as the log names it: `gpu 0`, `rank 3`, `CUDA1`; `host` for host memory, empty if nothing identifies the GPU."""
    rank: int | None = None
    gpu: int | None = None
    total: int | None = None
    """The GPU."""
    initial_free: int | None = None
    """What was free before the server allocated anything."""
    budget: int | None = None
    """The share of the GPU that the server may use."""
    weights: int | None = None
    activations: int | None = None
    """The peak of a trial step, or the buffers of a compute graph."""
    graphs: int | None = None
    """Memory of captured graphs; before they are captured, the estimate for them."""
    outside: int | None = None
    """Outside torch: context, NCCL."""
    consumed: int | None = None
    """Weights and memory outside torch, if they are printed as one."""
    cache: int | None = None
    """Keys, values and states; the cache's allotment if that is printed alone."""
    free: int | None = None
    """What was free at the end of startup."""
    tokens: int | None = None
    """Tokens that the cache holds."""
    requests: float | None = None
    """Full-length requests that the cache holds."""
    length: int | None = None
    """The tokens of such a request."""

    @property
    def full_tokens(self) -> int | None:
        """Tokens that the cache holds in full-length requests, or otherwise as printed.

        With several groups of layers (windows, states), vLLM before 0.20 prints the blocks of one group as tokens.
        """
        if self.requests is not None and self.length is not None and self.requests >= 1:
            return round(self.requests * self.length)
        return self.tokens

    @property
    def taken(self) -> int:
        """The sum of the printed parts."""
        of_torch = self.weights or 0 if self.consumed is None else self.consumed
        outside = 0 if self.consumed is not None else max(0, self.outside or 0)
        return of_torch + outside + sum(size for size in (self.activations, self.graphs, self.cache) if size is not None and size > 0)
