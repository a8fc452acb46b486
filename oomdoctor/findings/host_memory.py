"""What the log says of the host's memory beside the message that failed: the limit that held, and the most that was used.

A limit is asked for once and stands elsewhere than the kill: in the description of a pod, in the head of a batch script, in the
scheduler's own account. The manifest or the batch script itself says it where the log does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oomdoctor.case.event import Event, Kind
from oomdoctor.findings.conditions import Fact

_LIMITS = ("host_limit_bytes", "limit_bytes")
_USED = ("max_rss_bytes", "used_bytes", "anon_rss_bytes")
_OF_THE_NODE = frozenset({"threshold", "node", "node_ip"})
"""Figures beside it are those of a whole machine, and no limit that anybody set."""


def host_memory(events: Iterable[Event], known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.host_limit_bytes` and `derived.host_used_bytes`, each the largest that is named.

    Where the message has the memory of the process and of its machine, `derived.largest_process_share` is that process's part.
    """
    spoken = [event for event in events if event.kind in (Kind.HOST_OOM, Kind.CONTEXT) and not event.fields.keys() & _OF_THE_NODE]
    limits = [size for event in spoken for name in _LIMITS if _names(event, name) and (size := event.size(name))]
    used = [size for event in spoken for name in _USED if _names(event, name) and (size := event.size(name))]
    limit = known.get("training.host_limit")
    limits += [limit] if not limits and isinstance(limit, int) else []
    sizes = {"derived.host_limit_bytes": max(limits, default=None), "derived.host_used_bytes": max(used, default=None)}
    out: dict[str, Fact] = {name: size for name, size in sizes.items() if size is not None and name not in known}
    part, whole = known.get("event.process_bytes"), known.get("event.used_bytes")
    if isinstance(part, int) and isinstance(whole, int) and 0 < part <= whole and "derived.largest_process_share" not in known:
        out["derived.largest_process_share"] = round(part / whole, 4)
    return out


def _names(event: Event, name: str) -> bool:
    """Return whether a figure of this name is one of the host: context speaks of cards as well."""
    return event.kind is Kind.HOST_OOM or name in ("host_limit_bytes", "max_rss_bytes")
