"""Each observation of the rules is made of some evidence, with its fields, and quoted in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.record.evidence import (
    OUTPUT,
    CardSample,
    CgroupCounters,
    CgroupSample,
    EvidenceGap,
    FileSystem,
    Hello,
    OrderlyEnd,
    PhasePeak,
    ReceivedSignal,
    RecordedException,
    RefusedRequest,
    RunRecord,
    Sample,
    WatchedProcess,
)
from oomdoctor.record.observations.sources import observed
from oomdoctor.record.read_folder import RankEvidence, RunEvidence
from oomdoctor.record.ring import Ring
from oomdoctor.units import GIB, MIB

KILLED = WatchedProcess(pid=41, signal=9)
FAILED = WatchedProcess(pid=42, exit_code=1)
REFUSED = RefusedRequest(
    time=200.0,
    device=0,
    driver_request_bytes=2 * MIB,
    total_bytes=16 * GIB,
    free_bytes=MIB,
    stats={"allocated_bytes.all.current": 12 * GIB, "reserved_bytes.all.current": 14 * GIB},
    stack=("/srv/fit.py:40:main",),
    step=7,
)
LIBRARY = RecordedException(type="RuntimeError", traceback="RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED\n")


def sample(at: float, *, held: float = 1.0, current: float = 2.0, available: float = 40.0, psi: float | None = None) -> Sample:
    """Return a moment on a machine of 64 GiB, in a group that may have 8, with a card of 16 of which 64 MiB are free."""
    return Sample(
        t=at,
        rss=int(held * GIB),
        available=int(available * GIB),
        total=64 * GIB,
        cgroup=CgroupSample(current=int(current * GIB), limit=8 * GIB),
        psi=psi,
        cards=(CardSample(index=0, used=16 * GIB - 64 * MIB, total=16 * GIB, ours=15 * GIB),),
        processes={"41": int(held * GIB)},
    )


def run(*, kills: int | None = 0, **fields: Any) -> RunRecord:
    counters = None if kills is None else CgroupCounters(version=2, oom_kill=kills, limit_bytes=8 * GIB, peak_bytes=8 * GIB)
    return RunRecord(**{"end": 200.0, "exit_code": 1, "processes": (FAILED,), "counters": counters, **fields})


def counted(live: list[float]) -> Ring:
    """Return what a process counted once a step: its live GiB."""
    records = tuple((float(at), 0.0, size * GIB, size * GIB, size * GIB, float(at + 1)) for at, size in enumerate(live))
    return Ring(("t", "device", "allocated", "allocated_peak", "reserved", "step"), len(live), records)


def rank(number: int | None = None, **fields: Any) -> RankEvidence:
    return RankEvidence(**{"pid": 42, "rank": number, "ooms": [], "snapshots": [], **fields})


def events(record: RunRecord | None, *samples: Sample, ranks: tuple[RankEvidence, ...] = (), is_going: bool = False) -> list[Event]:
    evidence = RunEvidence(
        path="", run=record, samples=samples, ranks=ranks, log=None, environment=None, configs=(), gaps=(), is_going=is_going
    )
    return [event for file in observed(evidence, load_pack()) for event in file.events]


STEADY = tuple(sample(float(at)) for at in range(200))
GROWING = tuple(sample(float(at), held=1 + at / 40) for at in range(200))
UNSEEN = (EvidenceGap(what=OUTPUT, why="a pipe"),)
CASES: dict[str, tuple[list[Event], dict[str, Any]]] = {
    "watched-limit-kill": (events(run(kills=1, processes=(KILLED,), signal=9)), {"kills": 1, "limit_bytes": 8 * GIB, "scope": "memcg"}),
    "watched-machine-kill": (
        events(run(processes=(KILLED,), counters=CgroupCounters(version=2, oom_kill=2)), sample(1, available=0.5)),
        {"kills": 2, "available_bytes": GIB // 2},
    ),
    "watched-limit-near-at-the-end": (
        events(run(kills=None, processes=(), signal=9), sample(199, held=6, current=8, psi=41.7)),
        {"used_bytes": 8 * GIB, "limit_bytes": 8 * GIB, "stalled_percent": 41},
    ),
    "watched-machine-near-at-the-end": (events(RunRecord(), sample(199, available=1)), {"available_bytes": GIB}),
    "watched-kill-by-hand": (events(run(processes=(KILLED,), signal=9)), {"process": 41, "ended_by": "SIGKILL"}),
    "watched-kill-of-unknown-sender": (events(run(kills=None, processes=(), signal=9)), {"process": None, "ended_by": "SIGKILL"}),
    "watched-no-kernel-kill": (events(run()), {"kernel_kills": 0}),
    "watched-stop": (events(run(signal=15, signals=(ReceivedSignal(time=3, signal=15, sender=40),))), {"signal": "SIGTERM", "sender": 40}),
    "watched-shm-full": (events(run(files=(FileSystem(path="/dev/shm", total_bytes=GIB, least_free_bytes=0),))), {"path": None}),  # noqa: S108
    "watched-disk-full": (events(run(files=(FileSystem(path="/data", total_bytes=GIB, least_free_bytes=0),))), {"path": "/data"}),
    "watched-own-end": (events(run()), {"exit_code": 1, "available_bytes": None}),
    "watched-own-end-seen": (events(run(), sample(1), ranks=(rank(hello=Hello()),)), {"available_bytes": 40 * GIB}),
    "watched-own-error": (events(run(), ranks=(rank(exception=RecordedException(type="ValueError")),)), {"error": "ValueError"}),
    "watched-unseen-end": (events(run(gaps=UNSEEN)), {"exit_code": 1, "signal": None}),
    "watched-bus-error": (events(run(signal=7)), {"signal": "SIGBUS"}),
    "watched-crash": (events(run(exit_code=139)), {"signal": "SIGSEGV"}),
    "watched-abort": (events(run(signal=6)), {"signal": "SIGABRT"}),
    "watched-refusal": (
        events(run(), sample(199), ranks=(rank(0, ooms=[REFUSED]),)),
        {"gpu_index": 0, "requested_bytes": 2 * MIB, "reserved_bytes": 14 * GIB, "others_bytes": GIB - 64 * MIB, "failed_step": 7},
    ),
    "watched-library-found-full-card": (
        events(run(), sample(199), ranks=(rank(ooms=[RefusedRequest(time=200.0)], exception=LIBRARY),)),
        {"total_bytes": 16 * GIB, "free_bytes": 64 * MIB},
    ),
    "watched-survived-refusal": (events(run(exit_code=0, processes=()), ranks=(rank(ooms=[REFUSED], end=OrderlyEnd()),)), {"gpu_index": 0}),
    "watched-gradients": (events(run(), ranks=(rank(ooms=[RefusedRequest(gradients=True)]),)), {"asked_with_gradients": "true"}),
    "watched-no-gradients": (events(run(), ranks=(rank(ooms=[RefusedRequest(gradients=False)]),)), {"asked_with_gradients": "false"}),
    "watched-memory-grew": (events(run(), ranks=(rank(ring=counted([1 + at / 10 for at in range(60)])),)), {"memory_series": "growth"}),
    "watched-memory-in-steps": (events(run(), ranks=(rank(ring=counted([1 + at // 15 for at in range(60)])),)), {"series_steps": 59}),
    "watched-memory-level": (events(run(), ranks=(rank(ring=counted([3.0] * 60)),)), {"series_last_bytes": 3 * GIB}),
    "watched-first-rank": (
        events(run(), ranks=(rank(0, pid=1, ring=counted([3.0])), rank(5, pid=2, ooms=[REFUSED]))),
        {"first_rank": 5, "other_ranks": 1, "other_ranks_most_bytes": 3 * GIB},
    ),
    "watched-phase-peak": (
        events(run(), ranks=(rank(phases=(PhasePeak(name="training", peak=GIB), PhasePeak(name="evaluation", peak=3 * GIB))),)),
        {"peak_phase": "evaluation", "peak_phase_bytes": 3 * GIB},
    ),
    "watched-host-memory": (events(run(), *STEADY), {"run_rss_bytes": GIB, "run_processes": 1}),
    "watched-host-memory-grew": (events(run(), *GROWING), {"host_series": "growth"}),
    "watched-host-had-room": (events(run(kills=None, processes=()), *STEADY), {"host_least_bytes": 40 * GIB}),
    "watched-node-died": (events(None, ranks=(rank(),)), {"left_processes": 1}),
    "watched-wrapper-died": (events(RunRecord()), {}),
    "watched-run": (events(run(level=1), ranks=(rank(hello=Hello()),)), {"watched_level": 1, "recorders": 1}),
    "watched-limits": (events(run(limits={"address_space_bytes": GIB, "file_bytes": 1 << 62})), {"file_limit_bytes": None}),
    "watched-run-goes-on": (events(RunRecord(), is_going=True), {"still_going": "true"}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_recorded_is_seen(name: str) -> None:
    seen, fields = CASES[name]
    (event,) = (event for event in seen if event.signature == name)
    assert {field: event.fields.get(field) for field in fields} == fields


def test_every_observation_of_the_rules_can_be_made() -> None:
    assert set(CASES) == {name for name, core in load_pack().observations.items() if core.program == "oomdoctor run"}


@pytest.mark.parametrize(("name", "en", "zh"), [
    pytest.param("watched-kill-by-hand", "SIGKILL ended process 41, and", "SIGKILL 终止了进程 41，", id="a process"),
    pytest.param("watched-kill-of-unknown-sender", "SIGKILL ended the command; whether", "SIGKILL 终止了命令；", id="nobody knows which process"),
    pytest.param("watched-own-end", "with status 1.", "状态码 1。", id="what the host had left is not known"),
    pytest.param("watched-own-end-seen", "; at the lowest point 40.00 GiB of 64.00 GiB was available.", "64.00 GiB 中可用内存最低时为 40.00 GiB。", id="and where it is"),
])  # fmt: skip
def test_a_quote_says_what_is_known_and_no_more(name: str, en: str, zh: str) -> None:
    (event,) = (event for event in CASES[name][0] if event.signature == name)
    assert event.says is not None
    assert en in event.says.en == event.text and zh in event.says.zh
    assert "unknown" not in event.text and "未知" not in event.says.zh


def test_figures_that_nothing_has_are_left_out() -> None:
    (event,) = (event for event in events(run(exit_code=10**30)) if event.signature == "watched-own-end")
    assert dict(event.fields) == {}
