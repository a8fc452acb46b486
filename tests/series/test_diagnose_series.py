"""Series beside a log: what they show weighs on the causes, alone they accuse nobody, and what cannot be read is named."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from report.published import validate
from series.made_series import mebibytes

import oomdoctor
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.document import Curves, Limit, Moment
from oomdoctor.report.render import html, markdown, terminal
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

START = datetime(2026, 3, 4, 5, 6, 7)
CARD = 24 * GIB
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 402.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 188.06 MiB is free. "
    "Including non-PyTorch memory, this process has 23.46 GiB memory in use. Of the allocated memory 22.80 GiB is allocated by PyTorch, and 231.44 MiB "
    "is reserved by PyTorch but unallocated.\n"
)
LEAKING = [10 * GIB + at * 12 * GIB / 600 for at in range(600)]
SHARED = OOM.replace("this process has 23.46 GiB", "this process has 15.40 GiB").replace("22.80 GiB is", "14.80 GiB is")
STEADY = [22.5 * GIB] * 600
STAIRS = [[12, 12, 15, 17, 19, 21, 22][min(6, at // 80)] * GIB for at in range(600)]
LEAPING = [14.0 * GIB] * 597 + [23.2 * GIB] * 3


def csv(*cards: list[float], interval: float = 1.0) -> str:
    rows = ["timestamp, index, memory.used [MiB], memory.total [MiB]"]
    for at, levels in enumerate(zip(*map(mebibytes, cards))):
        stamp = (START + timedelta(seconds=at * interval)).strftime("%Y/%m/%d %H:%M:%S.000")
        rows += [f"{stamp}, {card}, {level} MiB, {CARD >> 20} MiB" for card, level in enumerate(levels)]
    return "\n".join(rows) + "\n"


def diagnosed(folder: Path, text: str, log: str = OOM, name: str = "gpu.csv") -> Diagnosis:
    path = folder / name
    path.write_text(text)
    return oomdoctor.diagnose(log, series=path)


@pytest.mark.parametrize(("levels", "first"), [
    pytest.param(LEAKING, "memory-grows", id="a climb to the end"),
    pytest.param(STAIRS, "variable-length-staircase", id="steps with plateaus"),
    pytest.param(LEAPING, "memory-leaps-at-the-end", id="a leap at the end"),
])  # fmt: skip
def test_what_was_recorded_names_the_cause(tmp_path: Path, levels: list[float], first: str) -> None:
    assert diagnosed(tmp_path, csv(levels)).findings[0].id == first


def test_a_level_accuses_no_leak(tmp_path: Path) -> None:
    found = {finding.id for finding in diagnosed(tmp_path, csv(STEADY)).findings}
    assert not found & {"memory-grows", "variable-length-staircase", "memory-leaps-at-the-end", "neighbour-came"}


@pytest.mark.parametrize(
    "levels", [pytest.param(LEAKING, id="a leak"), pytest.param(STAIRS, id="steps"), pytest.param(LEAPING, id="a leap")]
)
def test_alone_a_series_never_says_that_a_run_failed(tmp_path: Path, levels: list[float]) -> None:
    (tmp_path / "gpu.csv").write_text(csv(levels))
    diagnosis = oomdoctor.diagnose(series=tmp_path / "gpu.csv")
    assert (diagnosis.case.verdict.memory_failure, diagnosis.findings, diagnosis.open_cause) == ("no", (), None)
    assert len(diagnosis.case.series) == 1


def test_a_neighbour_is_named_by_the_list_of_processes(tmp_path: Path) -> None:
    rows = ["timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"]
    for at in range(60):
        stamp = (START + timedelta(seconds=at)).strftime("%Y/%m/%d %H:%M:%S.000")
        rows.append(f"{stamp}, GPU-aa11bb22, 4100, python, 16000 MiB")
        rows += [f"{stamp}, GPU-aa11bb22, 5200, python, 7000 MiB"] if at >= 30 else []
    diagnosis = diagnosed(tmp_path, "\n".join(rows), SHARED)
    assert diagnosis.findings[0].id == "neighbour-came"
    assert "process 5200 started using" in diagnosis.findings[0].evidence[0].text


def watched(others: int) -> str:
    return "\n".join(
        json.dumps(
            {"t": 1_790_000_000.0 + at, "cards": [{"index": 0, "used": 16 * GIB + others * (at >= 30), "total": CARD, "ours": 15 * GIB}]}
        )
        for at in range(60)
    )


@pytest.mark.parametrize(
    ("others", "came"), [pytest.param(6 * GIB, True, id="others came"), pytest.param(GIB // 8, False, id="a context came")]
)
def test_others_on_the_card_are_told_from_the_run(tmp_path: Path, others: int, came: bool) -> None:
    found = [finding.id for finding in diagnosed(tmp_path, watched(others), SHARED, "samples.jsonl").findings]
    assert ("neighbour-came" in found) == came


def test_one_card_above_the_others_is_stated(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, csv([22.0 * GIB] * 60, [18.0 * GIB] * 60, [18.0 * GIB] * 60))
    assert [event.fields["series_of"] for event in diagnosis.case.events if event.signature == "series-higher-card"] == [0]


def test_cards_that_are_alike_or_idle_are_not(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, csv([22.0 * GIB] * 60, [21.5 * GIB] * 60, [0.5 * GIB] * 60))
    assert not any(event.signature == "series-higher-card" for event in diagnosis.case.events)


def test_what_comes_after_the_failure_is_left_out(tmp_path: Path) -> None:
    failed = (START + timedelta(seconds=300)).strftime("%Y-%m-%d %H:%M:%S,000 - ERROR - ")
    after = [10.0 * GIB + at * 12 * GIB / 300 for at in range(300)]
    (shown,) = diagnosed(tmp_path, csv([20.0 * GIB] * 300 + after), failed + OOM).case.series
    assert shown.shape is not None
    assert (shown.shape.name, shown.failed_at is not None) == ("steady", True)


@pytest.mark.parametrize(("text", "log", "why"), [
    pytest.param(csv([20.0 * GIB] * 5), OOM, "fewer than 8 samples", id="too few samples"),
    pytest.param(csv([20.0 * GIB] * 30, interval=60.0), OOM, "samples are 60 s apart", id="a sample a minute"),
    pytest.param(csv(STEADY).replace("23040 MiB", "[N/A]", 7), OOM, "7 of 600 samples have no value", id="values that are missing"),
    pytest.param(csv(STEADY), "2026-03-05 05:06:07,000 - ERROR - " + OOM, "outside the time range", id="a failure of another day"),
    pytest.param("step 1 loss 0.4\n", OOM, "not a known memory series", id="another log"),
])  # fmt: skip
def test_what_cannot_be_told_is_a_gap(tmp_path: Path, text: str, log: str, why: str) -> None:
    diagnosis = diagnosed(tmp_path, text, log)
    assert diagnosis.case.verdict.memory_failure == "yes"
    assert sum(why in gap.why for gap in diagnosis.case.gaps) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_form_of_the_report_shows_the_series(tmp_path: Path, lang: str) -> None:
    draw = random.Random(3)
    failed = (START + timedelta(seconds=600)).strftime("%Y-%m-%d %H:%M:%S,000 - ERROR - ")
    diagnosis = diagnosed(tmp_path, csv([level + draw.gauss(0, GIB / 50) for level in LEAKING], STEADY), failed + OOM)
    document = compose(diagnosis, Wording(lang), "0")
    assert re.search("[\u2801-\u28ff]{20}", terminal.render(document, width=100, color=False, chart=9))
    assert not re.search("[\u2801-\u28ff]", terminal.render(document, width=100, color=False))
    assert "<svg" in html.render(document)
    words = {"en": "per hour, between", "zh": "推算：每小时"}[lang]
    assert words in markdown.render(document)
    report = json.loads(json_text(convert_diagnosis(diagnosis, Wording(lang), "0"), redact=True))
    validate(report)
    assert [series["shape"] for series in report["series"]] == ["leak", "steady"]
    assert report["series"][0]["per_hour"]["low"] <= report["series"][0]["per_hour"]["middle"] <= report["series"][0]["per_hour"]["high"]
    assert len(report["series"][0]["course"]) == 240


def test_a_line_is_never_forged_by_a_file(tmp_path: Path) -> None:
    text = csv(STEADY).replace(", 0, ", ', "0\noomdoctor series: On device 0, other processes started using 9 bytes", ')
    assert not any(event.signature == "series-newcomer" for event in diagnosed(tmp_path, text).case.events)


def charts(diagnosis: Diagnosis) -> list[Curves]:
    return [block for block in compose(diagnosis, Wording("en"), "0").blocks if isinstance(block, Curves)]


def test_cards_on_one_clock_stand_in_one_chart_with_the_failure(tmp_path: Path) -> None:
    failed = (START + timedelta(seconds=450)).strftime("%Y-%m-%d %H:%M:%S,000 - ERROR - ")
    (chart,) = charts(diagnosed(tmp_path, csv(LEAKING, STEADY), failed + OOM))
    assert [curve.label for curve in chart.curves] == ["GPU 0", "GPU 1"]
    assert (chart.axis, chart.limit, chart.failure) == ("min", Limit("the card", CARD), Moment(7.5, "failure"))
    places = dict(chart.curves[0].points)
    assert min(places) == 0 and max(places) == pytest.approx(599 / 60)
    assert abs((places[0.0] or 0) - LEAKING[0]) <= 2**20 and len(places) <= 400


def test_one_card_shows_its_phases(tmp_path: Path) -> None:
    loading = [0.1 * GIB] * 60 + [at * 15 * GIB / 60 for at in range(60)]
    (chart,) = charts(diagnosed(tmp_path, csv(loading + [20.0 * GIB] * 480)))
    assert [phase.label for phase in chart.phases][:2] == ["loading", "work"]
    assert chart.phases[0].end == chart.phases[1].start and 1.0 <= chart.phases[0].end <= 2.5


def test_a_series_stands_in_place_of_what_the_log_prints(tmp_path: Path) -> None:
    log = "".join(f"step {at} | allocated 9.00 GiB | reserved 10.00 GiB\n" for at in range(20)) + OOM
    assert [chart.title for chart in charts(oomdoctor.diagnose(log))] == ["Memory as printed in the log"]
    assert [chart.axis for chart in charts(diagnosed(tmp_path, csv(STEADY), log))] == ["min"]
