"""What the log says about host memory besides the message that failed: the limit in force, and the peak use.

A limit is set once and is not stated where the kill is: it is in the description of a pod, in the head of a batch script, or in the
scheduler's own account. If the log does not give it, the manifest or the batch script itself does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oomdoctor.case.event import Event, Kind
from oomdoctor.findings.conditions import Fact

_LIMITS = ("host_limit_bytes", "limit_bytes")
_USED = ("max_rss_bytes", "used_bytes", "anon_rss_bytes")
_OF_THE_NODE = frozenset({"threshold", "node", "node_ip"})
"""Figures next to these are those of a whole machine, not a limit that anyone set."""


def host_memory(events: Iterable[Event], known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.host_limit_bytes` and `derived.host_used_bytes`, each the largest that is named.

    If the message gives the memory of both the process and its machine, `derived.largest_process_share` is that process's share.
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
    """Return whether a figure with this name is a host figure: context messages describe GPUs as well."""
    return event.kind is Kind.HOST_OOM or name in ("host_limit_bytes", "max_rss_bytes")
