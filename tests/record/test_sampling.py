"""What the sampler reads: control groups of both versions, kernel log lines, cards; and what it keeps of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from oomdoctor.machine.collect.nvml import CardUse
from oomdoctor.record.evidence import CardSample, CgroupCounters, CgroupSample
from oomdoctor.record.evidence_place import make_place
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.sampling.cards import Cards
from oomdoctor.record.sampling.groups import MemoryGroup
from oomdoctor.record.sampling.kernel_log import KernelLog

pytestmark = pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="what Linux tells of memory")
GIB = 1 << 30
ME = os.getpid()
V2_MOUNT = "30 23 0:26 {mounted} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
V1_MOUNT = "35 31 0:32 {mounted} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
HYBRID = "38 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


def tree(place: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(place)


def v2(current: int, most: str, **events: int) -> dict[str, str]:
    counted = {"low": 0, "high": 0, "max": 0, "oom": 0, "oom_kill": 0, **events}
    return {
        "memory.current": f"{current}\n",
        "memory.max": f"{most}\n",
        "memory.peak": f"{current + 5}\n",
        "memory.events": "".join(f"{name} {count}\n" for name, count in counted.items()),
    }


def v1(current: int, most: int, kills: int, failed: int) -> dict[str, str]:
    return {
        "memory.usage_in_bytes": f"{current}\n",
        "memory.limit_in_bytes": f"{most}\n",
        "memory.max_usage_in_bytes": f"{current + 7}\n",
        "memory.failcnt": f"{failed}\n",
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
    }


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"sys/fs/cgroup/{folder}/{name}": text for name, text in files.items()}


ABOVE = {
    "proc/self/cgroup": "0::/job/step\n",
    "proc/self/mountinfo": V2_MOUNT.format(mounted="/"),
    **below("job", v2(3 * GIB, str(4 * GIB), oom=2, max=9, oom_kill=4)),
    **below("job/step", v2(2 * GIB, "max", oom_kill=1)),
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(ABOVE, CgroupSample(current=3 * GIB, limit=4 * GIB, oom_kill=0), id="the group above limits"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                "proc/self/mountinfo": V2_MOUNT.format(mounted="/"),
                **below(".", v2(GIB, str(2 * GIB))),
            },
            CgroupSample(current=GIB, limit=2 * GIB, oom_kill=0),
            id="a container with a namespace of its own",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pods/one\n",
                "proc/self/mountinfo": V2_MOUNT.format(mounted="/pods/one"),
                **below(".", v2(GIB, str(3 * GIB))),
            },
            CgroupSample(current=GIB, limit=3 * GIB, oom_kill=0),
            id="a container that is shown the host's paths",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:memory:/slurm/job_7\n1:cpu:/\n0::/\n",
                "proc/self/mountinfo": V1_MOUNT.format(mounted="/") + HYBRID,
                **below("memory/slurm", v1(2 * GIB, 9223372036854771712, 0, 0)),
                **below("memory/slurm/job_7", v1(GIB, 5 * GIB, 3, 8)),
            },
            CgroupSample(current=GIB, limit=5 * GIB, oom_kill=0),
            id="a machine with both versions",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": ""}, None, id="nothing mounted"),
        pytest.param({}, None, id="no groups at all"),
    ],
)
def test_the_group_that_limits(files: dict[str, str], expected: CgroupSample | None, tmp_path: Path) -> None:
    assert MemoryGroup(tree(tmp_path, files)).sample() == expected


def test_counters_are_differences(tmp_path: Path) -> None:
    group = MemoryGroup(tree(tmp_path, ABOVE))
    tree(tmp_path, below("job", v2(3 * GIB, str(4 * GIB), oom=3, max=15, oom_kill=9)))
    tree(tmp_path, below("job/step", v2(2 * GIB, "max", oom_kill=2)))
    # Of nine kills in the job one was of this step.
    assert group.counters() == CgroupCounters(version=2, limit_bytes=4 * GIB, peak_bytes=3 * GIB + 5, oom=1, oom_kill=1, max=6)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(
            b"3,12,105000000,-;Out of memory: Killed process 77 (python) total-vm:1kB\n SUBSYSTEM=x",
            ["[  105.000000] Out of memory: Killed process 77 (python) total-vm:1kB"],
            id="a kill",
        ),
        pytest.param(b"6,13,105000000,-;usb 1-1: new device", [], id="what is not about memory"),
        pytest.param(b"3,x;oom-kill:", [], id="no time"),
    ],
)
def test_lines_of_the_kernel_are_those_since_the_start(record: bytes, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_bytes(b"3,11,95000000,-;Out of memory: Killed process 66 (before)")
    log = KernelLog(str(tmp_path / "kmsg"))
    with (tmp_path / "kmsg").open("ab") as file:
        file.write(record)
    assert (log.lines() or []) == expected


@pytest.mark.parametrize("name", [pytest.param("nothing", id="no log"), pytest.param(os.devnull, id="what says nothing")])
def test_a_log_that_cannot_be_read_is_unknown(name: str, tmp_path: Path) -> None:
    assert KernelLog(str(tmp_path / name)).lines() is None


def test_the_series_stays_bounded_and_keeps_its_end(tmp_path: Path) -> None:
    folder = EvidenceFolder(make_place(str(tmp_path / "evidence")))
    for number in range(100):
        folder.append("samples.jsonl", [b"%04d" % number], most=200)
    lines = (tmp_path / "evidence" / "samples.jsonl").read_text().split()
    assert len(lines) <= 40
    assert lines == sorted(lines)
    assert (lines[0], lines[-1]) == ("0000", "0099")


def answers() -> Callable[[], Iterable[CardUse]]:
    return lambda: [CardUse(0, 30 * GIB, 80 * GIB, {ME: 20 * GIB, 1: 9 * GIB})]


def hangs() -> Callable[[], Iterable[CardUse]]:
    time.sleep(60)
    raise AssertionError


def fails() -> Callable[[], Iterable[CardUse]]:
    raise OSError("Driver/library version mismatch")


def crashes() -> Callable[[], Iterable[CardUse]]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def sampled(start: Callable[[], Callable[[], Iterable[CardUse]]]) -> tuple[tuple[CardSample, ...], Cards]:
    cards = Cards(start)
    until = time.monotonic() + 1
    while not (found := cards.sample({ME: 0})) and not cards.gaps and time.monotonic() < until:
        time.sleep(0.02)
    cards.close()
    return found, cards


def test_cards_are_told_with_what_is_ours() -> None:
    found, cards = sampled(answers)
    assert found == (CardSample(index=0, used=30 * GIB, total=80 * GIB, ours=20 * GIB),)
    assert cards.held(ME) == 20 * GIB


def test_a_library_that_does_not_start_is_a_gap() -> None:
    found, cards = sampled(fails)
    assert found == ()
    assert [gap.why for gap in cards.gaps] == ["NVML: Driver/library version mismatch"]


@pytest.mark.parametrize("start", [hangs, crashes])
def test_a_library_that_hangs_or_crashes_takes_nothing_with_it(start: Callable[[], Callable[[], Iterable[CardUse]]]) -> None:
    assert sampled(start)[0] == ()


UNTIL_LOOKED_AT = """
import pathlib, subprocess, sys
samples = pathlib.Path(sys.argv[1])
while not samples.exists() or len(samples.read_bytes().splitlines()) < 20:
    subprocess.run(sys.argv[2:])
sys.exit(1)
"""
"""Runs a command again and again until the sampler has looked twenty times."""


@pytest.mark.parametrize(("command", "says"), [("/bin/true", 1), ("", 0)], ids=["many that are short", "one alone"])
def test_the_list_of_processes_says_what_no_look_met(command: str, says: int, tmp_path: Path) -> None:
    program = UNTIL_LOOKED_AT if command else UNTIL_LOOKED_AT.replace("subprocess.run(sys.argv[2:])", "pass")
    words = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", str(tmp_path / "ev"), "--", sys.executable, "-c", program]
    subprocess.run([*words, str(tmp_path / "ev/samples.jsonl"), command], capture_output=True, check=False)
    run = json.loads((tmp_path / "ev/run.json").read_bytes())
    assert [gap["what"] for gap in run["gaps"]].count(f"processes other than the {len(run['processes'])} listed") == says
