"""What lives at one moment of a run, the largest first."""

from __future__ import annotations

import re

from oomdoctor.simulation.requests import RequestLog, Site
from oomdoctor.simulation.simulated_run import BlockGroup

_SHOWN = 8
_NUMBER = re.compile(r"\b\d+\b")


def holders(log: RequestLog, until: int) -> tuple[BlockGroup, ...]:
    """Return what has been asked for and is not given back after so many requests, of one kind together."""
    live: dict[int, tuple[int, int]] = {}
    for action, tensor, size, site in log.requests[:until]:
        if action == "alloc":
            live[tensor] = (size, site)
        elif action in ("release", "free"):
            live.pop(tensor, None)
    sums: dict[str, tuple[int, int]] = {}
    names = [_kind(site) for site in log.sites]
    for size, site in live.values():
        held, blocks = sums.get(names[site], (0, 0))
        sums[names[site]] = (held + size, blocks + 1)
    largest = sorted(sums.items(), key=lambda item: -item[1][0])[:_SHOWN]
    return tuple(BlockGroup(name=name, bytes=held, blocks=blocks) for name, (held, blocks) in largest)


def _kind(site: Site) -> str:
    """Return what is one kind: what is named for what it is, and results of an operation in the same part of every layer."""
    if "." not in site.operation or not site.frames:
        return site.operation
    return f"{site.operation} in {_NUMBER.sub('*', site.frames[0].name)}"
