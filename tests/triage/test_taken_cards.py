"""A node whose cards others hold: what several campaigns met there is one group, and another node is what a restart needs."""

from __future__ import annotations

import pytest
from msgspec.json import decode, encode

from oomdoctor.report.triage.group_words import failure_of, restart_of
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.fingerprint import group_of_node
from oomdoctor.triage.groups import Group
from oomdoctor.triage.row import JobRow, Retry
from oomdoctor.triage.store.taken_cards import find_taken_cards

Met = tuple[str, str]
"""A campaign, and the node on which it met a card that others hold."""


def row(campaign: str, node: str) -> JobRow:
    return JobRow(
        job=f"{campaign} {node}", native=campaign, layout="slurm", memory_failure="yes", kind="device-oom", campaign=campaign, node=node,
        group=campaign, others_hold_card=True, total_bytes=24 << 30, requested_bytes=12 << 20, retry="unknown",
    )  # fmt: skip


@pytest.mark.parametrize(("met", "node", "retry"), [
    pytest.param([("a", "n1"), ("b", "n1")], "n1", "other-node", id="two campaigns on one node"),
    pytest.param([("a", "n1"), ("a", "n1")], None, "unknown", id="one campaign alone"),
    pytest.param([("a", "n1"), ("b", "n2")], None, "unknown", id="each on a node of its own"),
    pytest.param([("a", "n1"), ("a", "n2"), ("a", "n3"), ("b", "n1")], None, "unknown", id="a campaign that takes it along"),
])  # fmt: skip
def test_what_several_campaigns_met_on_a_node_is_a_group_of_the_node(met: list[Met], node: str | None, retry: Retry) -> None:
    rows = [encode(row(*each)) for each in met]
    taken = find_taken_cards(rows)
    read = decode(taken.grouped(rows[0]), type=JobRow)
    assert (read.group, read.retry) == (group_of_node(node) if node else "a", retry)
    told = failure_of(read, Wording("en"))
    assert ("held by others" in told) == (node is not None)


@pytest.mark.parametrize(("retry", "jobs", "recovered", "words"), [
    pytest.param("retry", 2, 0, "a restart may do", id="twice is chance"),
    pytest.param("retry", 3, 0, "it comes again: a restart alone is no cure", id="three times, and none got past it"),
    pytest.param("retry", 9, 1, "a restart may do", id="a later start got past it"),
    pytest.param("stop", 9, 0, "do not restart as it is", id="it stops at once"),
    pytest.param("unknown", 9, 0, "", id="nobody knows"),
])  # fmt: skip
def test_what_many_met_alike_no_restart_alone_cures(retry: Retry, jobs: int, recovered: int, words: str) -> None:
    example = JobRow(job="a", native="a", layout="slurm", retry=retry)
    assert restart_of(Group(id="g", kind="device-oom", example=example, jobs=jobs, recovered=recovered), Wording("en")) == words
