"""Nodes that fail more often than expected: a node's memory failures compared with chance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.triage.groups import Fleet

_CHANCE = 0.001
"""The highest probability of as many failures by chance, for a node in the fleet to be reported."""
_LEAST = 3
_LEAST_USERS = 2
"""A single user's failures point to the user, not the node."""


class BadNode(Struct, frozen=True):
    """A node with more failures than expected."""

    name: str
    failed: int
    jobs: int
    expected: float
    users: int
    """Known users."""
    names: int
    """Names of failed jobs with unknown users."""


def bad_nodes(fleet: Fleet) -> Iterator[BadNode]:
    """Yield the nodes with too many memory failures for chance, worst first; nodes with failures of only one user are skipped."""
    total, failed = sum(fleet.jobs_by_node.values()), sum(fleet.failed_by_node.values())
    if not total:
        return
    named = []
    for name, count in fleet.failed_by_node.items():
        users, names = len(fleet.failed_users_by_node.get(name, ())), len(fleet.failed_names_by_node.get(name, ()))
        jobs = fleet.jobs_by_node.get(name, 0)
        expected = failed * jobs / total
        chance = poisson_tail(count, expected) * len(fleet.jobs_by_node)
        if count >= _LEAST and users + names >= _LEAST_USERS and chance < _CHANCE:
            named.append((chance, BadNode(name, count, jobs, expected, users, names)))
    yield from (node for _, node in sorted(named, key=lambda pair: (pair[0], pair[1].name)))


def poisson_tail(count: int, expected: float) -> float:
    """Return the probability of at least `count` events when `expected` are the norm."""
    if expected <= 0:
        return 0.0 if count else 1.0
    below = sum(math.exp(number * math.log(expected) - expected - math.lgamma(number + 1)) for number in range(count))
    return max(0.0, 1.0 - below)
