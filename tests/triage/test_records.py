"""What schedulers say: which form it has, whose it is, and what it adds to a row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoctor.api.fleet.merge import merge
from oomdoctor.api.fleet.triage import triage
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.scheduler.record import JobRecord
from oomdoctor.triage.scheduler.records import Records, keep_records
from oomdoctor.triage.scheduler.sacct import node_names
from oomdoctor.triage.store.parts import Parts

UID = "7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11"
SACCT = (
    "JobID|JobName|User|State|ExitCode|End|NodeList|AllocTRES\n"
    "771234|fit|u7|OUT_OF_MEMORY|0:125|2025-06-03T02:00:00|n[1-2]|gres/gpu:h100=8\n771234.batch|batch||OUT_OF_MEMORY|0:125|||\n"
)
OF_SACCT = {
    "job_id": 771234, "name": "fit", "user": "u7", "array": {"job_id": 0, "task_id": {"set": False, "number": 0}},
    "state": {"current": ["OUT_OF_MEMORY"], "reason": "None"}, "nodes": "n[1-2]",
    "exit_code": {"status": ["SIGNALED"], "return_code": {"set": True, "number": 0}, "signal": {"id": {"set": True, "number": 125}}},
    "time": {"submission": 1748912400, "start": 1748912400, "end": 1748916000},
    "tres": {"allocated": [{"type": "cpu", "name": "", "count": 64}, {"type": "gres", "name": "gpu", "count": 8}]}, "steps": [],
}  # fmt: skip
OF_SCONTROL = {
    "job_id": 771236, "array_job_id": {"set": True, "number": 771200}, "array_task_id": {"set": True, "number": 14}, "name": "fit",
    "user_name": "u7", "job_state": ["FAILED"], "nodes": "n3", "tres_alloc_str": "cpu=8,gres/gpu=2",
    "exit_code": {"return_code": {"set": True, "number": 1}, "signal": {"id": {"set": False, "number": 0}}},
    "end_time": {"set": True, "infinite": False, "number": 1748916000},
}  # fmt: skip


def pod(name: str = "fit-x7k2p-worker-1", uid: str = UID, code: int = 137, reason: str = "Error", node: str = "n4") -> dict[str, object]:
    ended = {"exitCode": code, "reason": reason, "finishedAt": "2025-06-03T02:00:00Z"}
    return {
        "kind": "Pod", "metadata": {"name": name, "namespace": "team-a", "uid": uid, "labels": {"user": "u7"}},
        "spec": {"nodeName": node}, "status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]},
    }  # fmt: skip


def event(
    message: str = "Memory cgroup out of memory: Killed process 42 (python)", node: str = "n4", at: str = "02:00:20"
) -> dict[str, object]:
    return {
        "kind": "Event", "reason": "OOMKilling", "involvedObject": {"kind": "Node", "name": node}, "message": message,
        "lastTimestamp": f"2025-06-03T{at}Z",
    }  # fmt: skip


def listed(*items: dict[str, object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2)


def kept(folder: Path, files: dict[str, str], job: str) -> tuple[tuple[JobRecord, ...], list[str]]:
    (folder / "records").mkdir()
    for name, text in files.items():
        (folder / "records" / name).write_text(text)
    wrong = keep_records([str(folder / "records")], str(folder / "records.db"))
    return Records(str(folder / "records.db")).of(job), wrong


FORMS: dict[str, tuple[dict[str, str], str, dict[str, object]]] = {
    "sacct --parsable2": (
        {"sacct.psv": SACCT},
        "771234",
        {"state": "OUT_OF_MEMORY", "exit_code": 125, "nodes": ("n1", "n2"), "gpus": 8, "ended": 1748916000, "out_of_memory": True},
    ),
    "sacct --json": (
        {"sacct.json": json.dumps({"jobs": [OF_SACCT], "meta": {}}, indent=1)},
        "771234",
        {
            "user": "u7",
            "state": "OUT_OF_MEMORY",
            "exit_code": 125,
            "nodes": ("n1", "n2"),
            "gpus": 8,
            "ended": 1748916000,
            "out_of_memory": True,
        },
    ),
    "scontrol show jobs --json": (
        {"jobs.json": json.dumps({"jobs": [OF_SCONTROL]})},
        "771200_14",
        {"user": "u7", "state": "FAILED", "exit_code": 1, "nodes": ("n3",), "gpus": 2, "ended": 1748916000, "out_of_memory": False},
    ),
    "pods, one a line": (
        {"pods.jsonl": json.dumps(pod()) + "\n"},
        "team-a/fit-x7k2p",
        {"rank": 2, "nodes": ("n4",), "out_of_memory": False},
    ),
    "a list of pods": ({"pods.json": listed(pod(reason="OOMKilled"))}, "team-a/fit-x7k2p", {"rank": 2, "out_of_memory": True}),
    "an event that names the pod by its cgroup": (
        {
            "all.json": listed(
                pod(), event(f"Killed process 42 in kubepods-burstable-pod{UID.replace('-', '_')}.slice", node="n9", at="09:00:00")
            )
        },
        "team-a/fit-x7k2p",
        {"out_of_memory": True, "source": "event"},
    ),
    "an event of the node when the pod ended": (
        {"events.jsonl": json.dumps(event()), "pods.jsonl": json.dumps(pod())},
        "team-a/fit-x7k2p",
        {"out_of_memory": True, "source": "event"},
    ),
    "an event of another time": ({"all.json": listed(pod(), event(at="03:00:00"))}, "team-a/fit-x7k2p", {"out_of_memory": False}),
    "an event of another node": ({"all.json": listed(pod(), event(node="n5"))}, "team-a/fit-x7k2p", {"out_of_memory": False}),
    "an event beside a pod that went well": ({"all.json": listed(pod(code=0), event())}, "team-a/fit-x7k2p", {"out_of_memory": False}),
    "an event that two pods could explain": (
        {"all.json": listed(pod(), pod("other-master-0", UID.replace("7e", "8e")), event())},
        "team-a/fit-x7k2p",
        {"out_of_memory": False},
    ),
}


@pytest.mark.parametrize(("files", "job", "told"), FORMS.values(), ids=FORMS)
def test_a_record_is_read(tmp_path: Path, files: dict[str, str], job: str, told: dict[str, object]) -> None:
    (record,), wrong = kept(tmp_path, files, job)
    assert ({name: getattr(record, name) for name in told}, wrong) == (told, [])


BAD: dict[str, str] = {
    "what is neither table nor JSON": "hello\nworld\n",
    "JSON of something else": '{"jobs": [{"job_id": "x"}]}\n',
    "JSON that is cut off": listed(pod())[:200],
    "an empty file": "",
    "a table without jobs": SACCT.splitlines()[0] + "\n",
    "objects within objects without end": '{"items":' * 50_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_named_and_costs_no_other_file(tmp_path: Path, text: str) -> None:
    (record,), wrong = kept(tmp_path, {"bad.json": text, "sacct.psv": SACCT}, "771234")
    assert (record.out_of_memory, len(wrong), "bad.json" in wrong[0]) == (True, 1, True)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=771234.0. Some of the step tasks have been OOM Killed.\n"


@pytest.mark.parametrize(("log", "state", "code", "nodes", "told"), [
    pytest.param(OOM, "FAILED", "1:0", "n1", (), id="a job that failed, in both"),
    pytest.param(OOM, "COMPLETED", "0:0", "n1", ("ended-well",), id="a wrapper hides the exit status"),
    pytest.param(OOM, "RUNNING", "0:0", "n1", ("not-ended",), id="it has not ended"),
    pytest.param(OOM, "OUT_OF_MEMORY", "0:125", "n1", ("host-memory",), id="the log tells of a card, the record of the host"),
    pytest.param(OOM, "FAILED", "1:0", "n[2-3]", ("other-node",), id="it ran elsewhere"),
    pytest.param(OOM, "COMPLETED", "0:0", "n2", ("ended-well", "other-node"), id="two at once"),
    pytest.param(OOM, "FAILED", "1:0", "N1.cluster.local", (), id="the full name of the node"),
    pytest.param(KILLED, "OUT_OF_MEMORY", "0:125", "n1", (), id="the host killed it, in both"),
    pytest.param("step 1 loss 2.0\n", "OUT_OF_MEMORY", "0:125", "n1", (), id="only the record tells"),
    pytest.param("step 1 loss 2.0\n", "COMPLETED", "0:0", "n1", (), id="it went well, in both"),
])  # fmt: skip
def test_a_record_that_contradicts_the_log_is_named_in_the_row(
    tmp_path: Path, log: str, state: str, code: str, nodes: str, told: tuple[str, ...]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "fit-771234-n1.out").write_text(log)
    (tmp_path / "sacct.psv").write_text(f"JobID|State|ExitCode|NodeList\n771234|{state}|{code}|{nodes}\n")
    result = triage([str(tmp_path / "logs")], redact=str, store=str(tmp_path / "store"), records=[str(tmp_path / "sacct.psv")])
    (row,) = Parts(result.folder).rows()
    assert row.contradictions == told
    assert result.fleet.contradicted == bool(told)


NONE_ASSIGNED = ["None assigned", "(null)", "Unknown", "N/A", ""]


@pytest.mark.parametrize("written", NONE_ASSIGNED)
def test_a_job_that_had_no_node_has_none(written: str) -> None:
    assert list(node_names(written)) == []


def triaged(root: Path, logs: dict[str, str], records: dict[str, str]) -> list[JobRow]:
    for name, text in (logs | records).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    given = [str(root / name) for name in records]
    return sorted(
        Parts(triage([str(root / "logs")], redact=str, store=str(root / "store"), records=given).folder).rows(), key=lambda row: row.native
    )


def test_a_job_that_the_scheduler_says_was_killed_is_a_row_without_a_log(tmp_path: Path) -> None:
    unlogged, logged = triaged(tmp_path, {"logs/fit-771235.out": OOM}, {"sacct.psv": SACCT})
    assert (unlogged.native, unlogged.user, unlogged.nodes, unlogged.files) == ("771234", "u7", ("n1", "n2"), ())
    assert (unlogged.memory_failure, unlogged.evidence, unlogged.kind, unlogged.retry) == ("yes", "sacct", "host-oom", "more-memory")
    assert logged.native == "771235"


def test_a_log_that_is_found_later_takes_the_place_of_the_record(tmp_path: Path) -> None:
    triaged(tmp_path, {"logs/fit-771235.out": OOM}, {"sacct.psv": SACCT})
    found, _ = triaged(tmp_path, {"logs/fit-771234.out": "step 1\n"}, {"sacct.psv": SACCT})
    assert (found.native, found.memory_failure, found.evidence, len(found.files)) == ("771234", "yes", "sacct", 1)


def test_a_pod_that_was_killed_is_a_row_without_a_log(tmp_path: Path) -> None:
    unlogged, _ = triaged(tmp_path, {"logs/x.log": "step 1\n"}, {"pods.json": listed(pod(reason="OOMKilled"))})
    assert (unlogged.native, unlogged.evidence, unlogged.node) == ("fit-x7k2p", "pod", "n4")


def test_a_job_that_ended_otherwise_is_no_row_without_a_log(tmp_path: Path) -> None:
    records = SACCT.replace("OUT_OF_MEMORY|0:125", "FAILED|1:0")
    assert [row.native for row in triaged(tmp_path, {"logs/fit-771235.out": OOM}, {"sacct.psv": records})] == ["771235"]


def test_stores_are_merged_with_their_jobs_without_a_log(tmp_path: Path) -> None:
    triaged(tmp_path / "one", {"logs/fit-771235.out": OOM}, {"sacct.psv": SACCT})
    triaged(tmp_path / "two", {"logs/fit-771234.out": "step 1\n"}, {})
    stores = [str(tmp_path / name / "store") for name in ("one", "two")]
    merged = list(Parts(merge(stores, into=str(tmp_path / "all")).folder).rows())
    assert sorted((row.native, len(row.files)) for row in merged) == [("771234", 1), ("771235", 1)]
