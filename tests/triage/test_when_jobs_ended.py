"""The day of a job: by the scheduler's record, else by the last line that states a time, else by the date of its file, and which it was."""

from __future__ import annotations

import calendar
import json
import os
from pathlib import Path

import pytest

from oomdoctor.api.fleet.triage import triage
from oomdoctor.triage.line_times import LineTime, last_time, stated_time
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts

COPIED = calendar.timegm((2025, 6, 9, 12, 0, 0))
"""When the logs of these tests were copied here."""
FAILED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def at(*when: int) -> int:
    return calendar.timegm(when)


TIMES: dict[str, tuple[str, LineTime | None]] = {
    "of logging": ("2025-06-02 07:36:44,123 INFO x", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "in UTC": ("2025-06-02T07:36:44.123456789Z stderr F x", LineTime(at(2025, 6, 2, 7, 36, 44), "UTC")),
    "in a zone": ("2025-06-02T07:36:44+08:00 x", LineTime(at(2025, 6, 1, 23, 36, 44), "+08:00")),
    "in a zone without a colon": ('{"time": "2025-06-02T07:36:44.5-0700"}', LineTime(at(2025, 6, 2, 14, 36, 44), "-07:00")),
    "with slashes": ("2025/06/02 07:36:44 x", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "of torch's launcher": ("  time      : 2025-06-02_07:36:44", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "of Slurm": ("*** JOB 7 ON n1 CANCELLED AT 2025-06-02T07:36:44 DUE TO TIME LIMIT ***", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "of date": ("Mon Jun  2 07:36:44 UTC 2025", LineTime(at(2025, 6, 2, 7, 36, 44), "UTC")),
    "of dmesg -T": ("[Mon Jun  2 07:36:44 2025] Out of memory", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "the last of several": ("2025-06-01 01:00:00 x\n2025-06-02 07:36:44 y\nTraceback\n", LineTime(at(2025, 6, 2, 7, 36, 44), None)),
    "with a leap second": ("2025-06-02T23:59:60Z", LineTime(at(2025, 6, 2, 23, 59, 59), "UTC")),
    "none of a day alone": ("checkpoint-2025-06-02 saved", None),
    "none of figures": ("loss 0.2025 lr 2e-5 tok/s 2025.06 at 20:25", None),
    "none that does not exist": ("2025-06-31 07:36:44 x", None),
    "none later than its file": ("2031-06-02 07:36:44 licence ends", None),
    "none of nothing": ("", None),
    "the one before a time that is later than the file": (
        "2025-06-02 07:36:44 x\n2031-06-02 07:36:44 licence ends\n",
        LineTime(at(2025, 6, 2, 7, 36, 44), None),
    ),
}


@pytest.mark.parametrize(("text", "time"), TIMES.values(), ids=list(TIMES))
def test_the_last_time_that_lines_state(text: str, time: LineTime | None) -> None:
    assert last_time(text.encode(), COPIED * 10**9) == time


STATED: dict[str, tuple[str, LineTime | None]] = {
    "seconds": ("1748849804", LineTime(1748849804, "UTC")),
    "milliseconds": ("1748849804123", LineTime(1748849804, "UTC")),
    "microseconds": ("1748849804123456", LineTime(1748849804, "UTC")),
    "nanoseconds": ("1748849804123456789", LineTime(1748849804, "UTC")),
    "text": ("2025-06-02T07:36:44Z", LineTime(1748849804, "UTC")),
    "no time": ("yesterday", None),
    "digits without end": ("9" * 400, None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("text", "time"), STATED.values(), ids=list(STATED))
def test_times_as_log_stores_write_them(text: str, time: LineTime | None) -> None:
    assert stated_time(text) == time


def journal(second: int, text: str) -> str:
    return json.dumps(
        {"__REALTIME_TIMESTAMP": str((at(2025, 6, 2, 7, 36, second)) * 10**6), "_SYSTEMD_UNIT": "fit.service", "MESSAGE": text}
    )


def loki(second: int, text: str) -> str:
    return json.dumps({"labels": {"job": "fit"}, "line": text, "timestamp": f"2025-06-02T07:36:{second:02d}Z"})


def vector(second: int, text: str) -> str:
    return json.dumps({"timestamp": f"2025-06-02T07:36:{second:02d}Z", "kubernetes": {"pod_name": "fit-1"}, "message": text})


def docker(second: int, text: str) -> str:
    return json.dumps({"log": text + "\n", "stream": "stderr", "time": f"2025-06-02T07:36:{second:02d}.1Z"})


ENDED = at(2025, 6, 2, 7, 36, 44)
CONTAINER = "0f4c7a51b2d6e8f9a0b1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f6071"
DAYS: dict[str, tuple[str, str, tuple[int, str, str | None]]] = {
    "an export of journald": ("ex.jsonl", journal(1, "step") + "\n" + journal(44, FAILED), (ENDED, "log", "UTC")),
    "an export of Loki": ("ex.jsonl", loki(1, "step") + "\n" + loki(44, FAILED), (ENDED, "log", "UTC")),
    "an export of Loki, the newest in front": ("ex.jsonl", loki(44, FAILED) + "\n" + loki(1, "step"), (ENDED, "log", "UTC")),
    "an export of Vector": ("ex.jsonl", vector(1, "step") + "\n" + vector(44, FAILED), (ENDED, "log", "UTC")),
    "Docker's log": (f"containers/{CONTAINER}/{CONTAINER}-json.log", docker(1, "step") + "\n" + docker(44, FAILED), (ENDED, "log", "UTC")),
    "a plain log with times": ("fit-771234.out", "2025-06-02 07:36:44,1 INFO step\n" + FAILED, (ENDED, "log", None)),
    "a plain log without": ("fit-771234.out", "step\n" + FAILED, (COPIED, "file", "UTC")),
}


def rows(root: Path, name: str, text: str, records: str | None = None) -> list[JobRow]:
    log = root / "logs" / name
    log.parent.mkdir(parents=True)
    log.write_text(text + "\n")
    os.utime(log, (COPIED, COPIED))
    given = []
    if records is not None:
        (root / "sacct.psv").write_text(records)
        given.append(str(root / "sacct.psv"))
    return list(Parts(triage([str(root / "logs")], redact=str, store=str(root / "store"), records=given).folder).rows())


@pytest.mark.parametrize(("name", "text", "told"), DAYS.values(), ids=list(DAYS))
def test_when_a_job_ended_and_what_tells_it(tmp_path: Path, name: str, text: str, told: tuple[int, str, str | None]) -> None:
    (row,) = rows(tmp_path, name, text)
    assert (row.ended, row.day_source, row.zone) == told
    assert row.day == ("2025-06-09" if told[1] == "file" else "2025-06-02")


def test_the_record_of_the_scheduler_beats_the_lines(tmp_path: Path) -> None:
    sacct = "JobID|State|ExitCode|End\n771234|FAILED|1:0|2025-06-04T02:00:00\n"
    (row,) = rows(tmp_path, "fit-771234.out", "2025-06-02 07:36:44,1 INFO step\n" + FAILED, sacct)
    assert (row.day, row.day_source, row.zone) == ("2025-06-04", "record", None)
