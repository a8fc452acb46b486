"""A node whose cards others hold: what several campaigns met there is one group, and another node is what a restart needs."""

from __future__ import annotations

import pytest
from msgspec.json import decode, encode

from oomdoctor.report.triage.group_words import failure_of, restart_of
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.fingerprint import group_of_a_card, group_of_node
from oomdoctor.triage.groups import Group
from oomdoctor.triage.row import JobRow, Retry
from oomdoctor.triage.store.taken_cards import find_taken_cards

Met = tuple[str, str | None]
"""A campaign, and the node on which it met a card that others hold, where its log names it."""
NODE_1, CARD = group_of_node("n1"), group_of_a_card("f")
OWN = "its campaign's"


def row(campaign: str, node: str | None, fingerprint: str = "f") -> JobRow:
    return JobRow(
        job=f"{campaign} {node}", native=campaign, layout="slurm", memory_failure="yes", kind="device-oom", campaign=campaign, node=node,
        group=OWN, fingerprint=fingerprint, others_hold_card=True, total_bytes=24 << 30, requested_bytes=12 << 20, retry="unknown",
    )  # fmt: skip


@pytest.mark.parametrize(("met", "group", "retry"), [
    pytest.param([("a", "n1"), ("b", "n1")], NODE_1, "other-node", id="two campaigns on one node"),
    pytest.param([("a", "n1"), ("a", "n1")], OWN, "unknown", id="one campaign alone"),
    pytest.param([("a", "n1"), ("b", "n2")], OWN, "unknown", id="each on a node of its own"),
    pytest.param([("a", "n1"), ("a", "n2"), ("a", "n3"), ("b", "n1")], OWN, "unknown", id="a campaign that takes it along"),
    pytest.param([("c", None), ("a", "n1"), ("b", "n1")], NODE_1, "other-node", id="a log without a node, and one taken node"),
    pytest.param([("a", None), ("a", "n1"), ("b", "n1")], NODE_1, "other-node", id="a campaign whose other log names the taken node"),
    pytest.param([("c", None), ("c", "n2"), ("a", "n1"), ("b", "n1")], OWN, "unknown", id="a campaign whose other log names another node"),
    pytest.param([("c", None), ("d", "n2"), ("a", "n1"), ("b", "n1")], OWN, "unknown", id="the same on two nodes: it may be of either"),
    pytest.param([("c", None)] * 3 + [("a", "n1"), ("b", "n1")], OWN, "unknown", id="a campaign that met it more often than the node's"),
    pytest.param([("c", None), ("a", None), ("b", None)], CARD, "other-node", id="three campaigns, and no node is known"),
    pytest.param([("c", None), ("a", "n1"), ("b", None)], CARD, "other-node", id="three campaigns, and the node of one is known"),
    pytest.param([("c", None), ("a", None)], OWN, "unknown", id="two campaigns may each have an ill of their own"),
])  # fmt: skip
def test_what_several_campaigns_met_is_a_group_of_the_card(met: list[Met], group: str, retry: Retry) -> None:
    rows = [encode(row(*each)) for each in met]
    taken = find_taken_cards(rows)
    read = decode(taken.grouped(rows[0]), type=JobRow)
    assert (read.group, read.retry) == (group, retry)
    assert ("other processes" in failure_of(read, Wording("en"))) == (group != OWN)


def test_another_failure_of_no_known_node_stays_with_its_campaign() -> None:
    rows = [encode(row("a", "n1")), encode(row("b", "n1")), encode(row("c", None, "another"))]
    taken = find_taken_cards(rows)
    assert [decode(taken.grouped(each), type=JobRow).group for each in rows] == [NODE_1, NODE_1, OWN]


@pytest.mark.parametrize(("retry", "jobs", "recovered", "words"), [
    pytest.param("retry", 2, 0, "a restart may work", id="twice is chance"),
    pytest.param("retry", 3, 0, "it will recur: a restart alone is not enough", id="three times, and none got past it"),
    pytest.param("retry", 9, 1, "a restart may work", id="a later start got past it"),
    pytest.param("stop", 9, 0, "do not restart as is", id="it stops at once"),
    pytest.param("unknown", 9, 0, "", id="nobody knows"),
])  # fmt: skip
def test_what_many_met_alike_no_restart_alone_cures(retry: Retry, jobs: int, recovered: int, words: str) -> None:
    example = JobRow(job="a", native="a", layout="slurm", retry=retry)
    assert restart_of(Group(id="g", kind="device-oom", example=example, jobs=jobs, recovered=recovered), Wording("en")) == words
