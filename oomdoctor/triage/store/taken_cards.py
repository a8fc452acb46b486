"""Nodes whose cards other processes hold: what several campaigns met there is one group, whoever met it.

A message shows that others hold its card. Whether that is the node's ill or follows one user about shows only over all rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from oomdoctor.triage.fingerprint import group_of_node
from oomdoctor.triage.row import JobRow

MARK = b'"others_hold_card":true'
"""What only the rows hold that count here."""
_LEAST_CAMPAIGNS = 2
_MOST = 0.5
"""A campaign that met the same on other nodes more often takes its ill along."""
_ROWS = Decoder(JobRow)


class TakenCards(Struct, frozen=True):
    """The campaigns that met a node's ill, as pairs of node and campaign."""

    met: frozenset[tuple[str, str]]

    def grouped(self, row: bytes) -> bytes:
        """Return a row with the group of its node, where it met the node's ill: another node is then what a restart needs."""
        if MARK not in row:
            return row
        read = _ROWS.decode(row)
        if read.node is None or (read.node, read.campaign or "") not in self.met:
            return row
        return encode(replace(read, group=group_of_node(read.node), retry="other-node"))


def find_taken_cards(rows: Iterable[bytes]) -> TakenCards:
    """Return on which nodes others hold the cards, after the rows that hold MARK."""
    counts: dict[str, dict[str, int]] = {}
    for row in map(_ROWS.decode, rows):
        nodes = counts.setdefault(row.campaign or "", {})
        nodes[row.node or ""] = nodes.get(row.node or "", 0) + 1
    at_home: dict[str, set[str]] = {}
    for whose, nodes in counts.items():
        known = {node: count for node, count in nodes.items() if node}
        for node, count in known.items():
            if count > _MOST * sum(known.values()):
                at_home.setdefault(node, set()).add(whose)
    return TakenCards(frozenset((node, whose) for node, all_of in at_home.items() if len(all_of) >= _LEAST_CAMPAIGNS for whose in all_of))
