"""The ledger of a card: parts that add up to its total exactly, whatever the log prints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.findings.ledger import ledger
from oomdoctor.findings.server_ledger import server_ledgers
from oomdoctor.knowledge.records.signature import LEDGER
from oomdoctor.units import GIB

SIZE = st.integers(0, 192 * GIB)
PLAN = {
    "total_bytes": 80 * GIB,
    "budget_bytes": 72 * GIB,
    "weights_bytes": 30 * GIB,
    "activation_peak_bytes": 6 * GIB,
    "non_torch_bytes": GIB,
}


def event(signature: str = "torch-cuda-oom-22", kind: Kind = Kind.DEVICE_OOM, rank: int | None = None, **fields: Any) -> Event:
    return Event(
        signature=signature, kind=kind, certainty=Certainty.CERTAIN, outcome=Outcome.FAILURE, place=Place("x.log", 0, 1), text="",
        fields=fields, rank=rank,
    )  # fmt: skip


def plan(rank: int | None = None, **fields: Any) -> Event:
    return event("vllm-profile-info", Kind.CONTEXT, rank, **fields)


def printed(*others: Event) -> tuple[ServerLedger, ...]:
    return server_ledgers(others, {"vllm-profile-info": [LEDGER]}, {"vllm-profile-info": "vllm"})


def named(root: Event, *others: Event) -> dict[str, int]:
    return {part.what: part.bytes for part in ledger(root, printed(*others))}


def test_a_message_of_the_allocator_tells_where_the_card_went() -> None:
    root = event(
        total_bytes=24 * GIB, free_bytes=GIB, allocated_bytes=15 * GIB, reserved_unallocated_bytes=2 * GIB, process_bytes=18 * GIB,
        other_processes=({"pid": 7, "used_bytes": 4 * GIB},),
    )  # fmt: skip
    assert named(root) == {
        "live tensors": 15 * GIB, "reserved but unallocated": 2 * GIB, "this process outside PyTorch": GIB, "other processes": 4 * GIB,
        "free": GIB, "unaccounted": GIB,
    }  # fmt: skip


def test_weights_and_cache_that_the_server_printed_split_the_live_tensors() -> None:
    root = event(total_bytes=80 * GIB, free_bytes=GIB, allocated_bytes=70 * GIB, reserved_unallocated_bytes=4 * GIB)
    found = named(root, plan(weights_bytes=30 * GIB, kv_cache_bytes=35 * GIB))
    assert (found["weights"], found["KV cache"], found["other live tensors"]) == (30 * GIB, 35 * GIB, 5 * GIB)
    assert "live tensors" not in found


def test_a_printed_plan_that_is_larger_than_what_is_live_is_of_another_moment() -> None:
    root = event(total_bytes=80 * GIB, free_bytes=50 * GIB, allocated_bytes=20 * GIB, reserved_unallocated_bytes=0)
    assert named(root, plan(weights_bytes=30 * GIB))["live tensors"] == 20 * GIB


def test_the_plan_of_another_rank_is_not_this_card() -> None:
    root = event(total_bytes=80 * GIB, free_bytes=GIB, allocated_bytes=70 * GIB, rank=1)
    assert "weights" not in named(root, plan(rank=0, weights_bytes=30 * GIB))


def test_a_server_that_found_no_room_for_its_cache_shows_its_plan() -> None:
    root = event("vllm-no-kv-blocks")
    assert named(root, plan(**PLAN)) == {
        "weights": 30 * GIB, "activations": 6 * GIB, "this process outside PyTorch": GIB, "left to others by the share": 8 * GIB,
        "unaccounted": 35 * GIB,
    }  # fmt: skip


@pytest.mark.parametrize("fields", [
    pytest.param({"total_bytes": 8 * GIB, "free_bytes": 0, "allocated_bytes": 22 * GIB}, id="more allocated than the card has"),
    pytest.param({"total_bytes": 8 * GIB, "allocated_bytes": 7 * GIB}, id="free is not printed"),
    pytest.param({"free_bytes": GIB, "allocated_bytes": 7 * GIB}, id="the card's size is not printed"),
    pytest.param({"total_bytes": 8 * GIB, "free_bytes": 4 * GIB, "allocated_bytes": 7 * GIB}, id="parts that exceed the total"),
])  # fmt: skip
def test_what_cannot_add_up_is_not_drawn(fields: dict[str, Any]) -> None:
    assert ledger(event(**fields)) == ()


@given(SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE)
def test_a_ledger_adds_up_to_the_card_exactly(
    total: int, free: int, allocated: int, unused: int, process: int, other: int, pools: int, weights: int, cache: int
) -> None:
    root = event(
        total_bytes=total, free_bytes=free, allocated_bytes=allocated, reserved_unallocated_bytes=unused, process_bytes=process,
        private_pools_bytes=pools, other_processes=({"pid": 1, "used_bytes": other},),
    )  # fmt: skip
    parts = ledger(root, printed(plan(weights_bytes=weights, kv_cache_bytes=cache)))
    assert not parts or sum(part.bytes for part in parts) == total
    assert all(part.bytes >= 0 for part in parts)
    assert {part.source for part in parts} <= {"measured", "derived"}


@given(st.fixed_dictionaries(dict.fromkeys(["total_bytes", "budget_bytes", "weights_bytes", "kv_cache_bytes", "non_torch_bytes"], SIZE)))
def test_a_plan_adds_up_to_the_card_exactly(fields: dict[str, int]) -> None:
    parts = ledger(event("vllm-no-kv-blocks"), printed(plan(**fields)))
    assert not parts or sum(part.bytes for part in parts) == fields["total_bytes"]
    assert all(part.bytes >= 0 for part in parts)
