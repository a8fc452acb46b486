"""What a server printed of the memory of a card, as `server_memory` of oomdoctor/report/v1."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.report.safety.sanitize import clean_line

LEDGERS_LIMIT = 128


class ServerLedgerV1(Struct, frozen=True, kw_only=True):
    """What a server printed of the memory of one card, or of the host, while it started; null: not printed."""

    program: str
    source: str
    of: str
    """The card as the log names it: `gpu 0`, `rank 3`, `CUDA1`; `host` for host memory, empty where nothing tells the card."""
    total_bytes: int | None
    initial_free_bytes: int | None
    budget_bytes: int | None
    """The share of the card that the server may take."""
    weights_bytes: int | None
    activations_bytes: int | None
    """The peak of a trial step, or the buffers of a compute graph."""
    graphs_bytes: int | None
    outside_bytes: int | None
    """Outside of torch: context, NCCL. Below 0 where a server prints it so."""
    consumed_bytes: int | None
    """Weights and what is outside of torch, where they are printed as one."""
    cache_bytes: int | None
    free_bytes: int | None
    """What was free at the end of the start."""
    tokens: int | None
    """Tokens that the cache holds, as they are printed."""
    requests: float | None
    """Requests of full length that the cache holds."""
    request_tokens: int | None
    """The tokens of such a request."""


def convert_ledger(ledger: ServerLedger) -> ServerLedgerV1:
    """Convert what a server printed of one card."""
    return ServerLedgerV1(
        program=ledger.program,
        source=clean_line(ledger.source, 1000),
        of=clean_line(ledger.of, 80),
        total_bytes=ledger.total,
        initial_free_bytes=ledger.initial_free,
        budget_bytes=ledger.budget,
        weights_bytes=ledger.weights,
        activations_bytes=ledger.activations,
        graphs_bytes=ledger.graphs,
        outside_bytes=ledger.outside,
        consumed_bytes=ledger.consumed,
        cache_bytes=ledger.cache,
        free_bytes=ledger.free,
        tokens=ledger.tokens,
        requests=ledger.requests,
        request_tokens=ledger.length,
    )
