"""Every form of such files is read by its bytes, and what cannot be read is said in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from snapshots.made_forms import FORMS, NOT_READ, STATES, STEADY, chrome, page, timeline
from snapshots.made_snapshots import MIB, leaking, pickled, survived, training

from oomdoctor.api.runs.compare_snapshots import is_snapshot
from oomdoctor.api.runs.snapshot import SnapshotReport, snapshot
from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError


def explained(tmp_path: Path, data: bytes) -> SnapshotReport:
    file = tmp_path / "made"
    file.write_bytes(data)
    return snapshot(file)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_tells_the_same_as_the_pickle(tmp_path: Path, name: str) -> None:
    data, form = FORMS[name]
    plain, other = explained(tmp_path, pickled(leaking())).files[0], explained(tmp_path, data).files[0]
    assert (other.form, other.devices) == (form, plain.devices)


@pytest.mark.parametrize("name", STATES)
def test_a_state_alone_is_told_without_the_trace(tmp_path: Path, name: str) -> None:
    data, form = STATES[name]
    plain, other = explained(tmp_path, pickled(leaking())).files[0].devices[0], explained(tmp_path, data)
    assert (other.files[0].form, other.files[0].devices[0].end, other.files[0].devices[0].has_history) == (form, plain.end, False)


@pytest.mark.parametrize("name", NOT_READ)
def test_what_is_no_snapshot_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    data, says = NOT_READ[name]
    with pytest.raises(UsageError, match=says) as error:
        explained(tmp_path, data)
    assert "\n" not in str(error.value)


def test_a_page_may_hold_several(tmp_path: Path) -> None:
    data = page(("a", pickled(leaking())), ("b", b"\x80\x04."), ("c", pickled(training(steps=2))))
    report = explained(tmp_path, data)
    assert [file.name.partition("#")[2] for file in report.files] == ["a", "c"]
    assert [gap.what.partition("#")[2] for gap in report.gaps] == ["b"]


def test_a_cut_off_trace_is_a_gap(tmp_path: Path) -> None:
    gaps = explained(tmp_path, STATES["cut off in the trace"][0]).gaps
    assert ["the trace" in gap.what and gap.how is not None for gap in gaps] == [True]


@pytest.mark.parametrize(
    ("lang", "cut", "unrecorded"), [("en", "truncated at byte", "were not recorded"), ("zh", "truncated at byte", "没有记录")]
)
def test_of_a_cut_off_trace_only_the_cut_is_said(tmp_path: Path, lang: str, cut: str, unrecorded: str) -> None:
    for data, is_cut in ((STATES["cut off in the trace"][0], True), (STATES["the list of segments"][0], False)):
        (tmp_path / "made").write_bytes(data)
        said = re.sub(r"\s+", " ", CliRunner().invoke(cli, ["snapshot", str(tmp_path / "made"), "--lang", lang, "--exit-zero"]).output)
        assert (cut in said, unrecorded in said) == (is_cut, not is_cut)


@pytest.mark.parametrize(
    "data", [pytest.param(timeline([(10, 100, 0)]), id="a timeline"), pytest.param(chrome(STEADY), id="a trace of the profiler")]
)
def test_the_largest_free_piece_is_unknown_where_no_segments_are_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "made").write_bytes(data)
    said = CliRunner().invoke(cli, ["snapshot", str(tmp_path / "made"), "--exit-zero"]).output
    assert "largest free block unknown" in re.sub(r"\s+", " ", said)
    told = json.loads(CliRunner().invoke(cli, ["snapshot", str(tmp_path / "made"), "--exit-zero", "--format", "json"]).output)
    assert told["devices"][0]["end"]["largest_free_block_bytes"] is None


@pytest.mark.parametrize("name", [*FORMS, "a timeline", "a trace of the profiler"])
def test_every_form_is_compared_as_a_snapshot(tmp_path: Path, name: str) -> None:
    more = {"a timeline": timeline([(10, 100, 0)]), "a trace of the profiler": chrome(STEADY)}
    (tmp_path / "a").write_bytes(more[name] if name in more else FORMS[name][0])
    assert is_snapshot(tmp_path / "a")
    compared = CliRunner().invoke(cli, ["compare", str(tmp_path / "a"), str(tmp_path / "a"), "--format", "json", "--exit-zero"])
    assert json.loads(compared.output)["matters"] is False


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"schema": "oomdoctor/environment/v1", "gpus": []}', id="a machine"),
        pytest.param(b"[2024-01-01 10:00:00] step 1", id="a log that begins with a date in brackets"),
        pytest.param(b"[[36m(pid=1) step 1", id="a log with colours that lost their escape"),
        pytest.param(b"<html><body>a log of local files</body>", id="a page"),
        pytest.param(b'{"segments": 3}', id="JSON of something else"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_compared_otherwise_is_no_snapshot(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert not is_snapshot(tmp_path / "a")


def test_a_timeline_gives_the_peak_and_categories(tmp_path: Path) -> None:
    report = explained(tmp_path, timeline([(10, 100, 0), (20, 100, 300), (30, 100, 500), (40, 100, 200)]))
    device = report.files[0].devices[0]
    assert (report.files[0].form, device.peak.position, device.peak.requested) == ("timeline", 2, 600)
    assert {holder.category: holder.size for holder in device.holders} == {"weights": 100, "activations": 500}
    assert report.gaps


def test_a_raw_timeline_gives_the_peak_and_categories(tmp_path: Path) -> None:
    rows = [[-1, 1, 100, 0], [5000, 2, 40, 4], [6000, 2, 60, 4], [7000, 3, -100, 0], [7000, 3, 100, 0], [8000, 4, -40, 4]]
    device = explained(tmp_path, json.dumps(rows).encode()).files[0].devices[0]
    assert (device.peak.position, device.peak.requested) == (2, 200)
    assert {holder.category: holder.size for holder in device.holders} == {"weights": 100, "activations": 100}


def test_a_chrome_trace_gives_peak_and_failure(tmp_path: Path) -> None:
    report = explained(tmp_path, chrome([*STEADY, ("[OutOfMemory]", 30 * MIB, 0, 11 * MIB, 20 * MIB)]))
    device = report.files[0].devices[0]
    assert (report.files[0].form, device.peak.requested, device.peak.reserved) == ("chrome-trace", 15 * MIB, 20 * MIB)
    assert [(oom.requested, oom.live_requested, oom.why) for oom in device.ooms] == [(30 * MIB, 11 * MIB, "unknown")]


def test_a_trace_that_frees_more_than_there_was_is_doubted(tmp_path: Path) -> None:
    program = training(steps=2)
    program.trace += [{**entry} for _ in range(3) for entry in program.trace if entry["action"] == "alloc"]
    report = explained(tmp_path, pickled(program))
    device = report.files[0].devices[0]
    assert device.peak.requested >= 0
    assert device.disagrees
    assert ["are inconsistent" in gap.why for gap in report.gaps] == [True]


def test_many_failures_are_told_by_the_last_ones(tmp_path: Path) -> None:
    program = survived()
    for size in range(300):
        program.fail((size + 1) * MIB, "a.py:1:ask")
    ooms = explained(tmp_path, pickled(program)).files[0].devices[0].ooms
    assert (len(ooms), ooms[-1].requested) == (64, 300 * MIB)
