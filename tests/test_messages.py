"""The catalogue of known message formats: each gives the right signature, the right class and every figure.

The second table, `foreign_messages.yaml`, holds what other programs print: each is read as `diagnose` reads it, and the verdict is judged.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from yaml_table import read_table

from oomdoctor.api import pipeline
from oomdoctor.case.case import Case
from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse import reading
from oomdoctor.parse.recogniser import Recogniser

MESSAGES = [
    json.loads(line) for line in (Path(__file__).parents[1] / "fixtures" / "messages.jsonl").read_text(encoding="utf-8").splitlines()
]
DEVICE = {"device-oom", "masked-device-oom"}
"""The catalogue calls library codes device-oom; here they are masked-device-oom, because their text speaks of something else."""

MISSED = {
    "torch-cuda-oom-1eb": "the size is 'more than 1EB': no number, so no requested_bytes",
    "torch-cuda-oom-mallocasync": "a limit of 2^64 bytes is no limit: limit_bytes is left out rather than 'unlimited'",
    "deepspeed-launch-sigkill": "exit code -9 is filed as a possible host-oom, not as a consequence: often it is all that a log holds",
    "sglang-decode-oom-retract": "filed as pressure on the device's cache, which is more than context",
    "sglang-kv-pool-full": "filed as pressure on the device's cache, which is more than context",
}
SAME = {"root_rank": "rank", "root_exit_code": "exit_code", "root_pid": "pid"}
"""The catalogue's second name for a field that has one name here."""

FOREIGN_PROGRAMS = read_table(Path(__file__).parent / "foreign_messages.yaml")
POWERS = {"KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}


@cache
def recogniser() -> Recogniser:
    return Recogniser(load_pack())


@pytest.mark.parametrize("group", [pytest.param(group, id=group["program"]) for group in FOREIGN_PROGRAMS])
def test_foreign_messages(group: dict[str, Any]) -> None:
    assert {row["text"]: wrong for row in group["rows"] if (wrong := misread(row))} == {}


def misread(row: dict[str, Any]) -> list[str]:
    """What is read in a message that the table has otherwise."""
    case = pipeline.diagnose_logs(["foreign"], load_pack(), text=row["text"].encode()).case
    out = [] if said(case) == row["is"] else [f"{said(case)}, not {row['is']}: {[event.signature for event in case.events]}"]
    for name, size in row.get("fields", {}).items():
        got = found(list(case.events), name)
        if in_bytes(size) not in got:
            out.append(f"{name}: {got}, not {size}")
    return out


def said(case: Case) -> str:
    """Return the verdict in the words of the table."""
    kind = case.verdict.kind.value
    return {"yes": kind, "possible": f"{kind}?", "no": "none"}[case.verdict.memory_failure]


def in_bytes(size: int | str) -> int:
    """Return a size of the table, `12.5 GiB`, as a number."""
    if isinstance(size, int):
        return size
    number, unit = size.split()
    return round(float(number) * (1 << 10 * POWERS[unit]))


def test_the_foreign_table_is_wide() -> None:
    assert len(FOREIGN_PROGRAMS) >= 70
    assert sum(len(group["rows"]) for group in FOREIGN_PROGRAMS) >= 450


def test_known_messages() -> None:
    """Those that are read differently on purpose, too: the list of them is whole, and none too long."""
    wrong = {message["id"]: differing for message in MESSAGES if (differing := differences(message))}
    assert {name: differing for name, differing in wrong.items() if name not in MISSED} == {}
    assert [name for name in MISSED if name not in wrong] == []


def test_at_most_two_in_a_hundred_are_read_differently() -> None:
    assert len(MISSED) <= 0.02 * len(MESSAGES)


def differences(message: dict[str, Any]) -> list[str]:
    events = reading.read_events(message["example"], recogniser())
    own = [event for event in events if event.signature == message["id"]]
    out = [] if own else [f"recognised as {sorted({event.signature for event in events})}"]
    kinds = {event.kind.value for event in own or events}
    wanted = message["class"]
    if wanted not in kinds and not (wanted in DEVICE and kinds & DEVICE):
        out.append(f"class {sorted(kinds)}")
    for name, value in message["expected"].items():
        got = found(events, SAME.get(name, name))
        if not any(same(one, value) for one in got):
            out.append(f"{name}: {got}, not {value!r}")
    return out


def found(events: list[Event], name: str) -> list[Any]:
    values: list[Any] = [event.fields[name] for event in events if name in event.fields]
    return values + [event.rank for event in events if name == "rank" and event.rank is not None]


def same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return [{key: "unknown" if value is None else value for key, value in one.items()} for one in got] == wanted
    if isinstance(got, int) and isinstance(wanted, str) and wanted.lstrip("-").isdigit():
        return got == int(wanted)
    return str(got) == str(wanted)
