"""Layouts of logs as schedulers, runtimes and log stores leave them -> jobs, attempts, processes and nodes."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from oomdoctor.api.fleet.triage import triage
from oomdoctor.triage.store.parts import Parts

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
WELL = "step 10 loss 2.1\nstep 20 loss 1.9\nTraining completed.\n"
WAITED = (
    "[rank{rank}]:[E1122 03:14:07.000111 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)
CONTAINER = "0f" * 32
POD = "var/log/pods/team-a_{pod}_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/main"
SESSION = "session_2025-06-03_01-02-03_123456_77/logs"
TASK = "3f1c2a44-9d01-4a53-8e0a-55d2a8c7b911"

Told = dict[str, dict[str, object]]
"""Job -> what its row says."""


def cri(text: str) -> str:
    return "".join(f"2025-06-03T01:02:{number % 60:02d}.000000001Z stderr F {line}\n" for number, line in enumerate(text.splitlines()))


def objects(text: str, key: str, **told: object) -> str:
    """One object a line, with the text under `key` and a time that rises."""
    return "".join(
        json.dumps({key: line, "timestamp": f"2025-06-03T01:02:{n:02d}Z", **told}) + "\n" for n, line in enumerate(text.splitlines())
    )


def docker(text: str) -> str:
    return "".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2025-06-03T01:02:03Z"}) + "\n" for line in text.splitlines()
    )


LOKI_ANSWER = {
    "status": "success",
    "data": {
        "resultType": "streams",
        "result": [
            {
                "stream": {"job": "fit-1", "app": "fit", "node": "n7", "user": "u3"},
                "values": [["1748912402000000000", OOM.rstrip()], ["1748912400000000000", "step 1"]],
            },
            {"stream": {"job": "fit-2"}, "values": [["1748912402000000000", "Training completed.", {"level": "info"}]]},
        ],
        "stats": {"summary": {"totalLinesProcessed": 3}},
    },
}
YES: dict[str, object] = {"memory_failure": "yes"}
NO: dict[str, object] = {"memory_failure": "no"}
LAYOUTS: dict[str, tuple[dict[str, str | bytes], Told]] = {
    "Slurm, %x-%j.out and .err": (
        {"fit-771234.out": WELL, "fit-771234.err": OOM, "fit-771235.out": WELL},
        {"771234": YES, "771235": NO},
    ),
    "Slurm, %x-%j-%N-%t.out": (
        {
            "fit-771234-gpu-n3-0.out": WAITED.format(rank=0),
            "fit-771234-gpu-n3-1.out": OOM,
            "fit-771234-gpu-n4-2.out": WAITED.format(rank=2),
        },
        {"771234": {**YES, "first_rank": 1, "node": "gpu-n3"}},
    ),
    "Slurm, %x-%j-%N.out": ({"fit-771234-node-017.out": WELL, "fit-771234-node-018.out": OOM}, {"771234": {**YES, "node": "node-018"}}),
    "Slurm, %j_%t.log, whose files speak of their rank": (
        {"771234_0.log": WAITED.format(rank=0), "771234_1.log": WAITED.format(rank=1), "771234_2.log": OOM},
        {"771234": {**YES, "first_rank": 2}},
    ),
    "Slurm, logs/%x/%A_%a.out": ({"logs/fit/771234_1.out": OOM, "logs/fit/771234_2.out": WELL}, {"771234_1": YES, "771234_2": NO}),
    "Slurm, slurm-%A_%a.out": ({"slurm-771234_1.out": OOM, "slurm-771234_2.out": WELL}, {"771234_1": YES, "771234_2": NO}),
    "Slurm, srun --label": ({"fit-771234.out": f" 0: {WELL.splitlines()[0]}\n11: {OOM}"}, {"771234": {**YES, "first_rank": 11}}),
    "torchrun, a folder of one job with two nodes": (
        {
            "fit-771234/none_ab12_x9q/attempt_0/0/stderr.log": WAITED.format(rank=0),
            "fit-771234/none_zz12_x9q/attempt_0/1/stderr.log": OOM,
        },
        {"771234": {**YES, "local_rank": 1}},
    ),
    "torchrun, a folder that many jobs share": (
        {"runs/fit7_ab12_x9q/attempt_0/0/stderr.log": OOM, "runs/fit8_zz12_x9q/attempt_0/0/stderr.log": WELL},
        {"fit7": YES, "fit8": NO},
    ),
    "torchrun, an error file beside the traceback": (
        {
            "fit-771234/none_ab12_x9q/attempt_0/0/stderr.log": OOM,
            "fit-771234/none_ab12_x9q/attempt_0/0/error.json": json.dumps(
                {"message": {"message": OOM, "extraInfo": {"py_callstack": OOM, "timestamp": "1748912400"}}}
            ),
        },
        {"771234": {**YES, "first_file": "fit-771234/none_ab12_x9q/attempt_0/0/stderr.log"}},
    ),
    "ft_launcher, a file for each cycle": (
        {"fit-771234_cycle0.log": OOM, "fit-771234_cycle1.log": WELL},
        {"771234": {**YES, "attempt": 0, "attempts": 2, "recovered": True}},
    ),
    "kubelet, a restart in place": (
        {f"{POD.format(pod='fit-x7k2p')}/0.log": cri(OOM), f"{POD.format(pod='fit-x7k2p')}/1.log": cri(WELL)},
        {"fit-x7k2p": {**YES, "attempt": 0, "attempts": 2}},
    ),
    "kubelet, a rotated log": (
        {
            f"n1/{POD.format(pod='fit-x7k2p-worker-2')}/0.log": cri(WELL),
            f"n1/{POD.format(pod='fit-x7k2p-worker-2')}/0.log.20250603-010203.gz": gzip.compress(cri(OOM).encode()),
        },
        {"fit-x7k2p": {**YES, "node": "n1", "first_rank": 3, "attempts": 1}},
    ),
    "kubelet, a line that a rotation cut": (
        {
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log": f"2025-06-03T01:02:04.000000001Z stderr F {OOM[40:]}",
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010203": (
                f"2025-06-03T01:02:03.000000001Z stderr F step 1\n2025-06-03T01:02:04.000000001Z stderr P {OOM[:40]}\n"
            ),
        },
        {"fit-x7k2p": {**YES, "text": OOM.rstrip(), "first_file": f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010203"}},
    ),
    "kubelet, a line over three files, and an empty one between": (
        {
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010204": "",
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010203": f"2025-06-03T01:02:04.000000001Z stderr P {OOM[:40]}\n",
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010205": f"2025-06-03T01:02:04.000000001Z stderr P {OOM[40:90]}\n",
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log": f"2025-06-03T01:02:04.000000001Z stderr F {OOM[90:]}",
        },
        {"fit-x7k2p": {**YES, "text": OOM.rstrip(), "first_file": f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010203"}},
    ),
    "kubelet, a line of which the end is lost": (
        {
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log.20250603-010203": f"2025-06-03T01:02:04.000000001Z stderr P {OOM[:90]}\n",
            f"n1/{POD.format(pod='fit-x7k2p')}/0.log": "",
        },
        {"fit-x7k2p": {**YES, "text": OOM[:90].rstrip()}},
    ),
    "Docker, a rotated log with its record beside it": (
        {
            f"{CONTAINER}/{CONTAINER}-json.log": docker(WELL),
            f"{CONTAINER}/{CONTAINER}-json.log.1": docker(OOM),
            f"{CONTAINER}/config.v2.json": '{"ID":"x","State":{"OOMKilled":true,"ExitCode":137}}',
        },
        {CONTAINER: {**YES, "kind": "device-oom"}},
    ),
    "Ray, a session with a folder on each node": (
        {
            f"n1/{SESSION}/job-driver-raysubmit_aa.log": "(Worker pid=411, ip=10.0.0.5) start\n(Worker pid=412, ip=10.0.0.6) start\n",
            f"n1/{SESSION}/worker-0a1b2c3d-01000000-411.err": WELL,
            f"n2/{SESSION}/worker-0b1b2c3d-01000000-412.err": OOM,
        },
        {"aa": {**YES, "node": "n2", "first_file": f"n2/{SESSION}/worker-0b1b2c3d-01000000-412.err"}},
    ),
    "Ray, a driver that repeats its workers": (
        {
            f"{SESSION}/job-driver-raysubmit_aa.log": f"(Worker pid=411, ip=10.0.0.5) {OOM.strip()} [repeated 99x across cluster]\n",
            f"{SESSION}/worker-0a1b2c3d-01000000-411.err": OOM,
        },
        {"aa": {**YES, "first_file": f"{SESSION}/worker-0a1b2c3d-01000000-411.err"}},
    ),
    "CloudWatch, events": (
        {"export.jsonl": objects(OOM, "message", ingestionTime=1, logStreamName="fit-1/algo-1-1748736000")},
        {"fit-1": YES},
    ),
    "CloudWatch, exported to S3": (
        {
            f"out/{TASK}/fit-1-algo-1-1748736000/000000.gz": gzip.compress(b"2025-06-03T03:14:15.000Z step 1 loss 2.1\n"),
            f"out/{TASK}/fit-1-algo-2-1748736000/000000.gz": gzip.compress(f"2025-06-03T03:14:15.000Z {OOM}".encode()),
        },
        {"fit-1": {**YES, "first_rank": 1}},
    ),
    "AzureML, the processes of a run": (
        {"calm_fig/user_logs/std_log_process_0.txt": WELL, "calm_fig/user_logs/std_log_process_1.txt": OOM},
        {"calm_fig": {**YES, "first_rank": 1}},
    ),
    "Vertex": (
        {"export.jsonl": objects(OOM, "textPayload", logName="x", resource={"labels": {"job_id": "77", "task_name": "workerpool0-0"}})},
        {"77": {**YES, "node": "workerpool0-0"}},
    ),
    "Loki, an answer of its HTTP API": (
        {"answer.json": json.dumps(LOKI_ANSWER)},
        {"fit-1": {**YES, "layout": "loki", "name": "fit", "node": "n7", "user": "u3", "text": OOM.rstrip()}, "fit-2": NO},
    ),
    "Loki, an answer that was made readable": (
        {"answer.json": json.dumps(LOKI_ANSWER, indent=2)},
        {"fit-1": {**YES, "requested_bytes": 3 << 30}, "fit-2": NO},
    ),
    "Loki, an answer that is cut off": (
        {"answer.json": json.dumps(LOKI_ANSWER)[:-40]},
        {"answer.json": {**YES, "layout": "plain"}},
    ),
    "Loki, the newest line first": (
        {"export.jsonl": "".join(reversed(objects(WELL + OOM, "line", labels={"job_name": "fit-1"}).splitlines(keepends=True)))},
        {"fit-1": YES},
    ),
    "Vector": (
        {"export.jsonl": objects(OOM, "message", kubernetes={"pod_name": "fit-1", "pod_node_name": "n4"})},
        {"fit-1": {**YES, "node": "n4"}},
    ),
    "Fluent Bit": (
        {"export.jsonl": objects(OOM, "log", kubernetes={"pod_name": "fit-1", "host": "n4"})},
        {"fit-1": {**YES, "node": "n4"}},
    ),
    "Fluent Bit, lines of JSON spread into fields": (
        {"export.jsonl": objects(OOM, "exc_info", level="ERROR", msg="step failed", kubernetes={"pod_name": "fit-1", "host": "n4"})},
        {"fit-1": {**YES, "node": "n4"}},
    ),
    "journald, messages of bytes and of nothing": (
        {
            "export.json": json.dumps({"__REALTIME_TIMESTAMP": "1", "_SYSTEMD_UNIT": "fit-1.service", "MESSAGE": None})
            + "\n"
            + json.dumps({"__REALTIME_TIMESTAMP": "2", "_SYSTEMD_UNIT": "fit-1.service", "_HOSTNAME": "n4", "MESSAGE": list(OOM.encode())})
            + "\n"
        },
        {"fit-1": {**YES, "node": "n4"}},
    ),
    "OpenSearch": (
        {
            "dump.jsonl": "".join(
                json.dumps({"_index": "k", "_source": {"message": OOM, "kubernetes": {"pod_name": name}}}) + "\n" for name in "ab"
            )
        },
        {"a": YES, "b": YES},
    ),
}


@pytest.mark.parametrize(("files", "told"), LAYOUTS.values(), ids=LAYOUTS)
def test_logs_are_put_together(tmp_path: Path, files: dict[str, str | bytes], told: Told) -> None:
    for name, text in files.items():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = triage([str(tmp_path / "logs")], redact=str, store=str(tmp_path / "store"))
    rows = {row.native: row for row in Parts(result.folder).rows()}
    assert rows.keys() == told.keys()
    for native, facts in told.items():
        found = {name: getattr(rows[native], name) for name in facts}
        if "first_file" in found:
            found["first_file"] = os.path.relpath(str(found["first_file"]), tmp_path / "logs")
        assert found == facts


def test_runs_without_a_name_that_ended_hours_apart_are_different_jobs(tmp_path: Path) -> None:
    for run, text, ended in (
        ("none_aaaaaaaa", OOM, 1_748_912_400),
        ("none_bbbbbbbb", WELL, 1_748_912_460),
        ("none_cccccccc", WELL, 1_748_930_000),
    ):
        path = tmp_path / "logs" / "runs" / run / "attempt_0" / "0" / "stderr.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (ended, ended))
    result = triage([str(tmp_path / "logs")], redact=str, store=str(tmp_path / "store"))
    assert sorted((len(row.files), row.memory_failure) for row in Parts(result.folder).rows()) == [(1, "no"), (2, "yes")]
