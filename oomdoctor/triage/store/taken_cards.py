"""Nodes whose GPUs are used by other processes: the failures of several campaigns there form one group.

A log names its node or not: a failure that is the same as those of one such node, and of no other, is counted with them.

A message shows that others hold its card. Whether that is the node's ill or follows one user about shows only over all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from oomdoctor.triage.fingerprint import group_of_a_card, group_of_node
from oomdoctor.triage.row import JobRow

MARK = b'"others_hold_card":true'
"""Contained only in the rows that count here."""
_LEAST_ON_A_NODE = 2
"""With at least this many campaigns affected on one node, the cause is the node."""
_LEAST_UNPLACED = 3
"""With at least this many campaigns with the same failure, the cause is none of them, if the logs do not name the node."""
_MOST = 0.5
"""A campaign that has had the same failure more often on other nodes brings its own cause along."""
_ROWS = Decoder(JobRow)


class _Failure(NamedTuple):
    """The values that are equal in failures counted together."""

    fingerprint: str
    campaign: str
    node: str | None
    """The node, if known."""


class TakenCards(Struct, frozen=True):
    """The groups of failures on GPUs used by others, across campaigns."""

    groups: Mapping[_Failure, str]

    def grouped(self, row: bytes) -> bytes:
        """Return a row with the group of the GPU on which it failed, if others failed there too: a restart then needs another node."""
        if MARK not in row:
            return row
        read = _ROWS.decode(row)
        group = self.groups.get(_failure(read))
        return row if group is None else encode(replace(read, group=group, retry="other-node"))


def find_taken_cards(rows: Iterable[bytes]) -> TakenCards:
    """Find the nodes whose GPUs are used by others, from the rows that contain MARK."""
    counts = Counter(map(_failure, map(_ROWS.decode, rows)))
    usual = _usual_nodes(counts)
    campaigns = Counter(usual.values())
    alike: dict[str, Counter[_Failure]] = {}
    groups: dict[_Failure, str] = {}
    for failure, count in counts.items():
        if failure.campaign not in usual or failure.node not in (None, usual[failure.campaign]):
            continue
        alike.setdefault(failure.fingerprint, Counter())[failure] = count
        node = usual[failure.campaign]
        if node is not None and campaigns[node] >= _LEAST_ON_A_NODE:
            groups[failure] = group_of_node(node)
    for fingerprint, same in alike.items():
        if len({usual[failure.campaign] for failure in same} - {None}) <= 1:
            groups.update(_of_one_card(fingerprint, same, groups))
    return TakenCards(groups)


def _usual_nodes(counts: Mapping[_Failure, int]) -> dict[str, str | None]:
    """Return the node on which each campaign usually failed, None if no log names one; campaigns without a usual node are left out."""
    met: dict[str, Counter[str]] = {}
    for failure, count in counts.items():
        nodes = met.setdefault(failure.campaign, Counter())
        if failure.node is not None:
            nodes[failure.node] += count
    usual: dict[str, str | None] = {}
    for campaign, nodes in met.items():
        node, most = nodes.most_common(1)[0] if nodes else (None, 1)
        if most > _MOST * sum(nodes.values()):
            usual[campaign] = node
    return usual


def _of_one_card(fingerprint: str, same: Mapping[_Failure, int], groups: Mapping[_Failure, str]) -> dict[_Failure, str]:
    """Return the group for equal failures without one that may be on the same GPU because at most one node is known for them.

    That is the group of the node whose GPU is in use, or the failure's own if the node is not known and there are many campaigns. A
    campaign with most of the failures brings its own cause along.
    """
    in_all = sum(same.values())
    left = [failure for failure, count in same.items() if failure not in groups and count <= _MOST * in_all]
    of_node = next((groups[failure] for failure in same if failure in groups), None)
    if of_node is None and len({failure.campaign for failure in left}) < _LEAST_UNPLACED:
        return {}
    return dict.fromkeys(left, of_node or group_of_a_card(fingerprint))


def _failure(row: JobRow) -> _Failure:
    return _Failure(row.fingerprint or "", row.campaign or "", row.node)
