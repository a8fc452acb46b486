"""Limits and kept peaks: what is said, what is written, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_plugin.sessions import Run, outcomes, text_of

pytest_plugins = ["pytester"]
KEEP = ("--gpu-memory-baseline", "peaks.json", "--gpu-memory-write")
HOLD = ("--gpu-memory-baseline", "peaks.json")


@pytest.mark.parametrize(
    ("mark", "size", "text"),
    [
        pytest.param("'8 MiB'", 9, "the test used 9.00 MiB on cuda:0, 1.00 MiB over its limit of 8.00 MiB", id="of the test"),
        pytest.param(
            "'50 MiB', of='process'",
            9,
            "the process used 57.00 MiB on cuda:0, 7.00 MiB over the limit of 50.00 MiB; 9.00 MiB of that came from the test",
            id="of the process, with what was there",
        ),
        pytest.param("'9 MiB'", 9, None, id="just the limit"),
        pytest.param("'57 MiB', of='process'", 9, None, id="of the process, just the limit"),
    ],
)
def test_a_limit(run: Run, mark: str, size: int, text: str | None) -> None:
    result = run(f"THERE = mib(48)\n@pytest.mark.gpu_memory({mark})\ndef test_a(): mib({size})\n")
    assert outcomes(result) == ({"passed": 1} if text is None else {"failed": 1})
    assert text is None or text in text_of(result)


@pytest.mark.parametrize(
    ("size", "came"), [pytest.param("65.5", "passed", id="asked"), pytest.param("65.5 + 1 / 2048", "failed", id="more")]
)
def test_what_a_test_takes_is_what_it_asked_for(run: Run, size: str, came: str) -> None:
    """The block of 66 MiB that lies free serves the request whole, as less than 1 MiB would be left of it."""
    code = f"held = mib(66)\ndel held\n@pytest.mark.gpu_memory(131 << 19)\ndef test_a(): mib({size})\n"
    assert outcomes(run(code)) == {came: 1}


def test_a_test_that_fails_itself_keeps_its_own_message(run: Run) -> None:
    result = run("@pytest.mark.gpu_memory('1 MiB')\ndef test_a():\n    mib(9)\n    assert 1 == 2\n")
    assert outcomes(result) == {"failed": 1} and "over its limit" not in text_of(result) and "assert 1 == 2" in text_of(result)


def test_peaks_are_kept_and_held_against(run: Run, pytester: pytest.Pytester) -> None:
    kept = run("def test_a(): mib(100)\ndef test_b(): mib(1)\ndef test_c(): mib(7); assert 0\n", *KEEP)
    assert "the peaks of 2 tests were saved in peaks.json" in text_of(kept)
    file = json.loads((pytester.path / "peaks.json").read_text())
    peaks = {"test_memory.py::test_a": 100 << 20, "test_memory.py::test_b": 1 << 20}
    assert file == {"version": 1, "device": "a simulated card", "peaks": peaks}
    held = run("def test_a(): mib(150)\ndef test_b(): mib(20)\ndef test_c(): pass\n", *HOLD)
    assert outcomes(held) == {"failed": 1, "passed": 2}
    assert "used 150.00 MiB on cuda:0, 50.00 MiB more than the 100.00 MiB recorded in peaks.json; up to 132.00 MiB" in text_of(held)
    assert "1 test has no recorded peak in peaks.json" in text_of(held)


def test_tests_that_did_not_run_keep_their_peak(run: Run, pytester: pytest.Pytester) -> None:
    run("def test_a(): mib(100)\ndef test_b(): mib(1)\n", *KEEP)
    run("def test_a(): mib(150)\ndef test_b(): mib(2)\n", *KEEP, "-k", "test_a")
    peaks = json.loads((pytester.path / "peaks.json").read_text())["peaks"]
    assert [size >> 20 for size in peaks.values()] == [150, 1]


@pytest.mark.parametrize(
    ("tolerance", "is_allowed"),
    [
        pytest.param("20%", False, id="a share below"),
        pytest.param("50%", True, id="a share that it just is"),
        pytest.param("40MiB", False, id="a size below"),
        pytest.param("50 MiB", True, id="a size that it just is"),
    ],
)
def test_the_tolerance_is_a_share_or_a_size(run: Run, tolerance: str, is_allowed: bool) -> None:
    run("def test_a(): mib(100)\n", *KEEP)
    result = run("def test_a(): mib(150)\n", *HOLD, "--gpu-memory-tolerance", tolerance)
    assert outcomes(result) == ({"passed": 1} if is_allowed else {"failed": 1})


def test_another_card_is_named(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "peaks.json").write_text('{"version":1,"device":"another card","peaks":{"test_memory.py::test_a":1}}')
    assert "(measured on another card, now on a simulated card)" in text_of(run("def test_a(): mib(99)\n", *HOLD))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "peaks.json: no such file; --gpu-memory-write creates it", id="no file"),
        pytest.param("[1", "peaks.json contains no test peaks", id="no JSON"),
        pytest.param('{"peaks": {"a": "much"}}', "peaks.json contains no test peaks", id="a peak that is no number"),
        pytest.param('{"version": 2}', "has version 2; this release reads version 1", id="a later version"),
    ],
)
def test_a_file_that_keeps_no_peaks(run: Run, pytester: pytest.Pytester, text: str | None, why: str) -> None:
    if text is not None:
        (pytester.path / "peaks.json").write_text(text)
    result = run("def test_a(): pass\n", *HOLD)
    assert result.ret == pytest.ExitCode.USAGE_ERROR and why in text_of(result)


def test_nothing_is_written_where_no_device_was_used(run: Run, pytester: pytest.Pytester) -> None:
    result = run("def test_a(): pass\n", *KEEP)
    assert "no passing test used a device" in text_of(result) and not (pytester.path / "peaks.json").exists()


def test_a_file_that_cannot_be_written_fails_no_test(run: Run) -> None:
    result = run("def test_a(): mib(1)\n", "--gpu-memory-baseline", "no/folder/peaks.json", "--gpu-memory-write")
    assert result.ret == 0 and "could not save the peaks in no/folder/peaks.json: No such file" in text_of(result)


def test_a_measured_peak_is_a_property_of_junit(run: Run, pytester: pytest.Pytester) -> None:
    run("@pytest.mark.gpu_memory\ndef test_a(): mib(3)\ndef test_b(): mib(3)\n", "--junitxml", "out.xml")
    xml = (pytester.path / "out.xml").read_text()
    assert xml.count(f'name="gpu_memory_peak_bytes" value="{3 << 20}"') == 1, "test_b has no mark and is not measured"


WORKERS = """
import sys
sys.path[:0] = {paths!r}
from simulated_torch import simulated_torch
sys.modules["torch"] = simulated_torch()
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("how", ["load", "loadgroup"])
def test_workers_of_xdist_share_one_file(pytester: pytest.Pytester, run: Run, how: str) -> None:
    pytester.makeconftest(WORKERS.format(paths=[str(ROOT), str(ROOT / "bench")]))
    code = (
        "@pytest.mark.parametrize('size', ['1@x', '2', '3', '4'])\n@pytest.mark.xdist_group('one')\n"
        "def test_a(size): mib({each} * int(size[0]))\ndef test_b(): mib(64)\n"
    )
    options = ("-p", "xdist", "-n", "2", "--dist", how)
    pytester.syspathinsert(ROOT)
    kept = run(code.format(each=40), *KEEP, *options)
    assert outcomes(kept) == {"passed": 5} and "the peaks of 5 tests were saved" in text_of(kept)
    names = [f"test_memory.py::test_a[{size}]" for size in ("1@x", "2", "3", "4")]
    assert sorted(json.loads((pytester.path / "peaks.json").read_text())["peaks"]) == [*names, "test_memory.py::test_b"]
    held = run(code.format(each=60), *HOLD, *options)
    assert outcomes(held) == {"passed": 2, "failed": 3}, "20 MiB more are within the slack of 32 MiB"
