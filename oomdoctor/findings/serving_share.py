"""The share of a GPU that a server should use, from the share it used and what the log says about the failure.

A server fills its share with cache before it serves. Too high a share leaves no room for memory outside it, and one smaller than the
weights does not start at all: a value that helps is between the shortfall and what the weights need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import WriteRecord
from oomdoctor.knowledge.records.server import SERVERS, ServerRecord
from oomdoctor.knowledge.server_defaults import held_default
from oomdoctor.units import GIB

_IN_FORCE = (
    "event.utilization", "event.mem_fraction_static", "training.memory_share", "log.gpu_memory_utilization", "log.mem_fraction_static",
    "log.memory_share", "log.utilization",
)  # fmt: skip
_ROOM = GIB // 2
"""Left over on top of the shortfall: the next request is rarely the last."""
_LEAST_STEP, _STEP = 0.03, 0.1
"""The minimum by which a share is lowered, and the amount if no figure gives one."""
_CACHE = 0.05
"""The fraction of the GPU that a cache needs on top of the weights to serve at all."""
_RISE = 0.04
"""How far a share is raised if no figure gives an amount."""
_BEYOND = 0.15
"""This far above its share, a server holds what the share does not limit: its weights, or one pass through them."""
_USUAL = 0.9
"""About what servers use by default: less is someone's own choice."""
_HIGHEST = 0.95
"""What contexts and libraries need is outside any share."""


def serving_share(facts: Mapping[str, Fact], default: float | None, *, of_free: bool = False) -> dict[str, Fact]:
    """Return `derived.lower_share`, `derived.higher_share` and `derived.above_share` (whether the process is), as far as figures give them.

    `default` is the program's own share. A share `of_free` memory limits only the cache, so that figures of the whole process say nothing
    about it.
    """
    share = next((value for name in _IN_FORCE if (value := _number(facts.get(name))) is not None), default)
    total = _number(facts.get("event.total_bytes")) or _number(facts.get("log.total_bytes"))
    weights = _number(facts.get("log.weights_bytes"))
    if share is None or not 0 < share <= 1:
        return {}
    least = weights / total + _CACHE if weights and total else _CACHE
    lower, higher = max(_lower(facts, share, total), -_down(-least)), _higher(facts, share, total, weights)
    out: dict[str, Fact] = {"derived.share": share}
    held = _number(facts.get("event.allocated_bytes"))
    if not of_free and held is not None and total and held / total > share + _BEYOND:
        out["derived.above_share"] = True
    if lower < share:
        out["derived.lower_share"] = lower
    suggested = _number(facts.get("log.suggested_share"))
    if higher is not None and share < higher <= (_HIGHEST if suggested is None or suggested >= 1 else max(_HIGHEST, suggested)):
        out["derived.higher_share"] = higher
    return out


def default_share(facts: Mapping[str, Fact], pack: Pack) -> float | None:
    """Return the share that a server uses by default; None without a server, or if it depends on the GPU."""
    name, server = _program(facts), _server(facts, pack)
    if server is not None:
        version = facts.get(f"log.{name}_version")
        row = held_default(server.defaults.memory_share or (), card=0, version=None if version is None else str(version))
        return None if row is None else float(row.value)
    framework = pack.framework(name) if name else None
    written = framework.writes.get("memory_share") if framework is not None else None
    return _number(written.default) if isinstance(written, WriteRecord) else None


def is_share_of_free(facts: Mapping[str, Fact], pack: Pack) -> bool:
    """Return whether a server takes its share of what is free beside the weights, not of the whole GPU."""
    server = _server(facts, pack)
    return server is not None and any(row.value is True for row in server.defaults.of_free or ())


def _program(facts: Mapping[str, Fact]) -> str:
    return str(facts.get("log.framework") or facts.get("incident.inference") or "")


def _server(facts: Mapping[str, Fact], pack: Pack) -> ServerRecord | None:
    name = _program(facts)
    return pack.record(SERVERS, name) if name in pack.names("servers") else None


def _lower(facts: Mapping[str, Fact], share: float, total: float | None) -> float:
    """Return the share that leaves room for the shortfall: what is free at startup, or lower by the request that failed."""
    requested, free = _number(facts.get("event.requested_bytes")), _number(facts.get("event.free_bytes"))
    if total and free is not None and "event.utilization" in facts:
        return _down(free / total)
    if total and free is not None and requested is not None:
        return _down(share - max(_LEAST_STEP, (max(0.0, requested - free) + _ROOM) / total))
    suggested = _number(facts.get("log.suggested_share"))
    return suggested if suggested is not None and suggested < share else _down(share - _STEP)


def _higher(facts: Mapping[str, Fact], share: float, total: float | None, weights: float | None) -> float | None:
    """Return the share with which the cache holds one request, or otherwise the one the server itself suggests.

    Without figures it is slightly higher, if weights leave room.
    """
    needed, available = _number(facts.get("event.kv_needed_bytes")), _number(facts.get("event.kv_available_bytes"))
    if needed and available is not None and total:
        return -_down(-(share + (needed - available) / total + 0.01))
    short = _number(facts.get("event.kv_available_bytes")) or _number(facts.get("log.kv_available_bytes"))
    if short is not None and short < 0 and total:
        return -_down(-(share - short / total + _CACHE))
    suggested = _number(facts.get("log.suggested_share"))
    if suggested is not None and share < suggested < 1:
        return suggested
    if needed or (weights and total and weights / total + _CACHE > _HIGHEST):
        return None
    return min(_HIGHEST, max(_USUAL, _down(share + _RISE)))


def _down(share: float) -> float:
    return math.floor(share * 100 + 1e-6) / 100


def _number(value: Fact) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
