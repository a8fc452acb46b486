"""Each observation of a series is made of some series, with its figures as the monitor has them: bytes, or shares of a card."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from series.made_series import column

from oomdoctor.case.event import Event
from oomdoctor.case.recorded.series import SeriesColumn
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.observer import Observer
from oomdoctor.series.own import OURS
from oomdoctor.series.series_events import judge_series
from oomdoctor.units import GIB

LEVEL = [20.0 * GIB] * 200
CLIMB = [10.0 * GIB + at * GIB / 10 for at in range(200)]
STAIRS = [(10.0 + 3 * (at // 40)) * GIB for at in range(200)]
TEETH = [(10.0 + 5 * (at % 10 > 4)) * GIB for at in range(200)]
LEAP = [*[14.0 * GIB] * 197, *[23.0 * GIB] * 3]
OURS_OF_IT = replace(column(LEVEL), of="process", name=OURS)
WITH_OTHERS = [level + 6 * GIB * (at >= 100) for at, level in enumerate(LEVEL)]
SHARES = replace(column([50_000.0 + at * 200 for at in range(200)]), is_share=True, total=None)


def seen(*columns: SeriesColumn) -> dict[str, Event]:
    judged = judge_series(Observer(load_pack()), columns)
    return {event.signature: event for file in judged.files for event in file.events}


CASES: dict[str, tuple[tuple[SeriesColumn, ...], dict[str, Any]]] = {
    "series-leak": ((column(CLIMB),), {"series_of": 0, "series_per": "hour", "series_of_bytes": 80 * GIB}),
    "series-staircase": ((column(STAIRS),), {"series_rises": 4, "memory_series": "staircase"}),
    "series-steady": ((column(LEVEL),), {"series_lowest_bytes": 20 * GIB, "series_top_bytes": 20 * GIB}),
    "series-up-and-down": ((column(TEETH),), {"series_lowest_bytes": 10 * GIB, "series_top_bytes": 15 * GIB}),
    "series-last-climb": ((column(LEAP),), {"series_leap_bytes": 9 * GIB, "series_before_bytes": 14 * GIB}),
    "series-newcomer": ((column(WITH_OTHERS), OURS_OF_IT), {"series_newcomer_bytes": 6 * GIB, "series_own_bytes": 20 * GIB}),
    "series-higher-card": (
        (column(LEVEL), *(replace(column([level / 2 for level in LEVEL]), card=name) for name in "12")),
        {"series_of": 0, "series_others": 2, "series_other_bytes": 10 * GIB},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_recorded_is_seen(name: str) -> None:
    columns, fields = CASES[name]
    event = seen(*columns)[name]
    assert {field: event.fields.get(field) for field in fields} == fields


def test_every_observation_of_the_rules_can_be_made() -> None:
    assert set(CASES) == {name for name, core in load_pack().observations.items() if core.program == "oomdoctor series"}


def test_a_share_of_a_card_is_no_number_of_bytes() -> None:
    event = seen(SHARES)["series-leak"]
    assert not any(name.endswith("_bytes") for name in event.fields)
    assert event.text.startswith("Device 0 kept growing, from 52 % to 90 %, over 200 samples: 720 % per hour")


def test_a_process_is_named_by_its_number() -> None:
    event = seen(replace(column(CLIMB), of="process", process=4711))["series-leak"]
    assert event.fields["series_of"] == 4711
    assert event.text.startswith("Process 4711 kept growing, from ")
