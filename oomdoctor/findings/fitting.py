"""Values with which a server fits, from what it printed about its memory and from the request that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.case.event import Event, Kind
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.server_ledger import ledger_of
from oomdoctor.units import GIB, MIB

_ROOM = GIB // 2
"""Left over on top of the shortfall: the next request is rarely the last."""
_CONTEXT = 256 * MIB
"""What a GPU gives to the CUDA context once the first kernel runs, after the buffers were counted."""


def fitting(root: Event, ledgers: Sequence[ServerLedger], facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.fitting_cache_bytes`, `derived.fitting_layers` and `derived.fitting_length`, as far as figures determine them."""
    ledger = ledger_of(root, ledgers) if root.kind is Kind.DEVICE_OOM else None
    if ledger is None:
        return {}
    values = {"derived.fitting_cache_bytes": _cache(root, ledger, facts)}
    lacking = _lacking_buffer(root, ledger, ledgers)
    if lacking is not None:
        values["derived.fitting_layers"] = _layers(ledger, lacking, facts)
        values["derived.fitting_length"] = _length(ledger, lacking)
    return {name: value for name, value in values.items() if value is not None and facts.get(name) is None}


def _cache(root: Event, ledger: ServerLedger, facts: Mapping[str, Fact]) -> int | None:
    """Return the cache size that leaves room for the shortfall, and no more than the server itself suggests."""
    suggested, requested, free = facts.get("log.suggested_cache_bytes"), root.size("requested_bytes"), root.size("free_bytes")
    if not isinstance(suggested, int) or ledger.cache is None or requested is None or free is None:
        return None
    size = min(suggested, ledger.cache - max(0, requested - free) - _ROOM)
    return size // MIB * MIB if size > 0 else None


def _lacking_buffer(root: Event, ledger: ServerLedger, ledgers: Sequence[ServerLedger]) -> int | None:
    """Return how much a llama.cpp buffer lacked on its single GPU once weights and cache were loaded; None if the log does not show it."""
    alone = sum(other.of != "host" and other.source == ledger.source for other in ledgers) == 1
    requested = root.size("requested_bytes")
    if ledger.program != "llama.cpp" or not alone or requested is None or ledger.initial_free is None or not ledger.weights:
        return None
    lacking = requested + ledger.taken + _CONTEXT - ledger.initial_free
    return lacking if lacking > 0 else None


def _layers(ledger: ServerLedger, lacking: int, facts: Mapping[str, Fact]) -> int | None:
    """Return the number of layers on the GPU that leaves room for the buffer: each takes its weights and its cache along."""
    layers = facts.get("log.layers_on_card")
    if not isinstance(layers, int) or layers < 1:
        return None
    fits = layers - int(-(-lacking // (((ledger.weights or 0) + (ledger.cache or 0)) / layers)))
    return fits if 0 < fits < layers else None


def _length(ledger: ServerLedger, lacking: int) -> int | None:
    """Return the context length that leaves room for the buffer, if the cache grows with it and is larger than the shortfall."""
    if ledger.tokens is None or not ledger.cache or ledger.cache <= lacking:
        return None
    return int(ledger.tokens * (1 - lacking / ledger.cache))
