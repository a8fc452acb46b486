"""Nodes that fail more than their share: how many failures of memory a node has, against what chance gives it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.triage.groups import Fleet

_CHANCE = 0.001
"""So rarely may chance alone give a node of the fleet as many failures."""
_LEAST = 3
_LEAST_USERS = 2
"""One user's failures follow the user and not the node."""


class BadNode(Struct, frozen=True):
    """A node with more failures than its share."""

    name: str
    failed: int
    jobs: int
    expected: float
    users: int
    """Of those that are known."""
    names: int
    """Of failed jobs whose user nobody knows."""


def bad_nodes(fleet: Fleet) -> Iterator[BadNode]:
    """Yield the nodes whose failures of memory are too many for chance, the worst first; those of one user alone are left out."""
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
    """Return the probability of `count` events or more where `expected` are usual."""
    if expected <= 0:
        return 0.0 if count else 1.0
    below = sum(math.exp(number * math.log(expected) - expected - math.lgamma(number + 1)) for number in range(count))
    return max(0.0, 1.0 - below)
