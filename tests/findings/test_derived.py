"""Figures that follow from a message, the ledger of a card, the shape of a series, the language of conditions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.findings.derived import derived
from oomdoctor.findings.series import series_course
from oomdoctor.knowledge.conditions import fault
from oomdoctor.knowledge.records.condition import Condition, tagged_condition
from oomdoctor.units import GIB, MIB


def event(**fields: Any) -> Event:
    place = Place("x.log", 0, 1)
    return Event(
        signature="torch-cuda-oom-22",
        kind=Kind.DEVICE_OOM,
        certainty=Certainty.CERTAIN,
        outcome=Outcome.FAILURE,
        place=place,
        text="",
        fields=fields,
    )


FULL = {
    "requested_bytes": 2 * GIB,
    "total_bytes": 24 * GIB,
    "free_bytes": GIB,
    "allocated_bytes": 18 * GIB,
    "reserved_unallocated_bytes": 3 * GIB,
}


def test_what_follows_from_a_message() -> None:
    found = derived(event(**FULL))
    assert found["unaccounted_bytes"] == 2 * GIB
    assert found["request_share"] == round(2 / 24, 4)
    assert found["unallocated_share"] == round(3 / 24, 4)
    assert found["free_covers_request"] is False
    assert found["free_and_unallocated_cover_request"] is True


def test_what_would_have_been_left_of_the_free_memory() -> None:
    assert derived(event(requested_bytes=20 * MIB, free_bytes=32 * MIB))["spare_bytes"] == 12 * MIB
    assert "spare_bytes" not in derived(event(requested_bytes=20 * MIB, free_bytes=19 * MIB))


def test_reserved_in_total_is_all_that_is_held() -> None:
    found = derived(event(total_bytes=16 * GIB, allocated_bytes=10 * GIB, reserved_bytes=12 * GIB, free_bytes=3 * GIB))
    assert (found["unallocated_bytes"], found["unaccounted_bytes"]) == (2 * GIB, GIB)


def test_what_no_part_of_the_message_names() -> None:
    found = derived(event(requested_bytes=4 * GIB, total_bytes=16 * GIB, allocated_bytes=9 * GIB, free_bytes=2 * GIB))
    assert (found["neither_bytes"], found["neither_share"]) == (5 * GIB, round(5 / 16, 4))
    assert found["free_and_neither_cover_request"] is True
    assert "unaccounted_bytes" not in found


def test_the_last_digit_of_printed_figures_is_nobody_s_memory() -> None:
    total = 24 * GIB
    found = derived(event(total_bytes=total, allocated_bytes=20 * GIB, reserved_bytes=22 * GIB, free_bytes=2 * GIB - total // 2000))
    assert found["unaccounted_bytes"] == 0


def test_more_allocated_than_the_card_has_leaves_the_rest_unknown() -> None:
    found = derived(event(total_bytes=8 * GIB, allocated_bytes=22 * GIB, reserved_unallocated_bytes=0, free_bytes=0))
    assert "unaccounted_bytes" not in found


@pytest.mark.parametrize(("values", "wanted"), [
    ([10, 10, 10, 10, 10, 10], "flat"), ([10, 10, 12, 12, 12, 15, 15, 15, 15, 18], "staircase"),
    ([10, 11, 12, 13, 14, 15, 16], "growth"), ([100, 101, 102, 103, 104, 105, 106], "none"), ([10, 12], "none"), ([3, 6, 10, 13], "growth"),
    ([3, 6, 6, 13], "none"), ([3, 6, 10], "none"), ([], "none"), ([10, 18, 11, 19, 10, 18, 12], "none"), ([20, 18, 16, 14, 12, 10], "none"),
    ([360, 363, 367, 371, 371, 371, 371], "staircase"), ([279, 282, 286, 289, 289, 289, 290, 290, 289, 289], "flat"),
])  # fmt: skip
def test_shape_of_a_series(values: list[int], wanted: str) -> None:
    assert series_course([value * GIB for value in values]) == wanted


KNOWN = KnownFacts(
    {
        "event.total_bytes": 24 * GIB,
        "derived.request_share": 0.08,
        "log.torch_version": "2.10.0",
        "log.bf16": "true",
        "log.trl_version": "1.16.0rc1",
        "log.peft_version": "0.18",
        "log.vllm_version": "0.10.1+cu121",
    },
    [event(**FULL)],
    topics={"torch-cuda-oom-22": ["a-topic"]},
)


@pytest.mark.parametrize(("when", "truth"), [
    ({"fact": "event.total_bytes", "lt": "25 GiB"}, True), ({"fact": "event.total_bytes", "gt": "25 GiB"}, False),
    ({"fact": "log.torch_version", "ge": "2.9.1"}, True), ({"fact": "log.torch_version", "lt": "2.9.1"}, False),
    ({"fact": "log.trl_version", "ge": "1.16.0"}, False), ({"fact": "log.peft_version", "ge": "0.17.1"}, True),
    ({"fact": "log.vllm_version", "ge": "0.10.1"}, True), ({"fact": "log.vllm_version", "ge": "0.10.2"}, False),
    ({"fact": "log.bf16", "is": True}, True), ({"fact": "log.driver", "lt": "470.42.01"}, False),
    ({"fact": "log.driver", "lt": "470.42.01", "open": True}, None), ({"not": {"fact": "log.driver", "lt": "470.42.01"}}, True),
    ({"not": {"fact": "log.driver", "lt": "470.42.01", "open": True}}, None), ({"fact": "log.driver", "known": False}, True),
    ({"any": [{"fact": "log.driver", "is": "1"}, {"fact": "log.bf16", "is": True}]}, True),
    ({"all": [{"fact": "log.driver", "is": "1", "open": True}, {"fact": "log.bf16", "is": False}]}, False),
    ({"all": [{"fact": "log.driver", "is": "1", "open": True}, {"fact": "log.bf16", "is": True}]}, None),
    ({"event": "torch-cuda-oom-22", "where": {"requested_bytes": {"ge": 2 * GIB}}}, True),
    ({"event": "torch-cuda-oom-22", "where": {"requested_bytes": {"lt": 2 * MIB}}}, False),
    ({"kind": "host-oom"}, False), ({"tells": "allocation-refused", "resource": "device"}, True), ({"resource": "host"}, False),
    ({"tells": ["figures", "a-topic"]}, True), ({"tells": "another-topic"}, False), ({"outcome": "pressure"}, False),
])  # fmt: skip
def test_conditions_are_true_false_or_unknown(when: dict[str, Any], truth: bool | None) -> None:
    assert evaluate(convert(tagged_condition(when), Condition), KNOWN).truth is truth


@pytest.mark.parametrize("when", [
    pytest.param({"fact": "x"}, id="a fact without a question"), pytest.param({"al": []}, id="a word that is none"),
    pytest.param({"all": []}, id="an empty list"), pytest.param({"fact": "x", "lt": 1, "gt": 0}, id="two questions at once"),
    pytest.param([], id="no mapping"), pytest.param({"any": [{"what": 1}]}, id="a mistake deep inside"),
])  # fmt: skip
def test_a_wrong_condition_is_named(when: Any) -> None:
    assert fault(when)
