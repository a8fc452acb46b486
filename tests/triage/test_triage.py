"""From folders of logs to rows: one for each job, right about memory, kept for the next run."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from oomdoctor.api.fleet.triage import triage
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.parts import Parts

OOM = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/fit.py", line 31, in step\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free. "
    "Including non-PyTorch memory, this process has 38.20 GiB memory in use. Of the allocated memory 36.10 GiB is allocated by PyTorch, "
    "and 1.60 GiB is reserved by PyTorch but unallocated.\n"
)
WELL = "step 10 loss 2.1\nstep 20 loss 1.9\nTraining completed.\n"
ECHO = (
    "[rank1]:[E1122 03:14:07.000111 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, "
    "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)
BOX = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n============\nfit.py FAILED\n------------\n"
    "Root Cause (first observed failure):\n[0]:\n  time      : 2025-06-03_03:14:15\n  host      : gpu-n3.cluster.local\n"
    "  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 812)\n  error_file: <N/A>\n============\n"
)
POD = "nodes/{node}/var/log/pods/team-a_sft-x7k2p-{role}_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/{restart}.log"


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root / "logs"


def rows(root: Path, files: dict[str, str | bytes], records: dict[str, str] | None = None) -> list[JobRow]:
    logs = put(root, files)
    given = []
    for name, text in (records or {}).items():
        (root / name).write_text(text)
        given.append(str(root / name))
    result = triage([str(logs)], redact=str, store=str(root / "store"), records=given)
    return sorted(Parts(result.folder).rows(), key=lambda row: row.native)


def cri(text: str) -> str:
    return "".join(f"2025-06-03T01:02:{number % 60:02d}.000000001Z stderr F {line}\n" for number, line in enumerate(text.splitlines()))


def json_lines(text: str, **labels: str) -> str:
    told = [json.dumps({"labels": labels, "line": line, "timestamp": "2025-06-03T01:02:03Z"}) for line in text.splitlines()]
    return "\n".join(told) + "\n"


ONE_JOB: dict[str, tuple[dict[str, str | bytes], dict[str, object]]] = {
    "a Slurm job of two streams": (
        {"u7/sft-glm-771234.out": WELL, "u7/sft-glm-771234.err": OOM},
        {"native": "771234", "name": "sft-glm", "memory_failure": "yes", "kind": "device-oom"},
    ),
    "a Slurm job with a file for each task": (
        {"u7/sft-771234.out": WELL, "u7/sft_771234_0.out": ECHO, "u7/sft_771234_1.out": ECHO, "u7/sft_771234_2.out": OOM},
        {"native": "771234", "first_rank": 2, "memory_failure": "yes"},
    ),
    "a packed log": ({"u7/sft-771234.out.gz": gzip.compress(OOM.encode())}, {"native": "771234", "memory_failure": "yes"}),
    "text that is only called packed": ({"u7/sft-771234.out.gz": OOM}, {"native": "771234", "memory_failure": "yes"}),
    "a job in UTF-16": ({"u7/sft-771234.out": OOM.encode("utf-16")}, {"native": "771234", "memory_failure": "yes"}),
    "an empty log": ({"u7/sft-771234.out": ""}, {"memory_failure": "unread"}),
    "a job that only tells of another rank's failure": ({"u7/sft-771234.out": WELL + ECHO}, {"memory_failure": "no"}),
    "a job that its user cancelled": (
        {"u7/sft-771234.out": WELL + "slurmstepd: error: *** JOB 771234 ON n1 CANCELLED AT 2025-06-03T01:02:03 ***\n"},
        {"memory_failure": "no"},
    ),
    "the processes of torchrun, with the launcher's log beside them": (
        {
            "sft-771234/launcher.out": WELL,
            "sft-771234/none_ab12_x9q/attempt_0/0/stderr.log": ECHO,
            "sft-771234/none_ab12_x9q/attempt_0/1/stderr.log": OOM,
        },
        {"native": "771234", "local_rank": 1, "memory_failure": "yes"},
    ),
    "a later start that went well": (
        {
            "sft-771234/none_ab12_x9q/attempt_0/0/stderr.log": OOM,
            "sft-771234/none_ab12_x9q/attempt_1/0/stderr.log": WELL,
        },
        {"memory_failure": "yes", "recovered": True, "attempt": 0, "attempts": 2},
    ),
    "the pods of a job, on two nodes": (
        {
            POD.format(node="n1", role="master-0", restart=0): cri(ECHO),
            POD.format(node="n2", role="worker-0", restart=0): cri(OOM),
        },
        {"native": "sft-x7k2p", "first_rank": 1, "node": "n2", "memory_failure": "yes"},
    ),
    "a rank that counts something else than the processes of the host": (
        {
            "sft-771234/none_ab12_x9q/attempt_0/0/stderr.log": WELL,
            "sft-771234/none_ab12_x9q/attempt_0/1/stderr.log": "[rank0]: " + OOM.splitlines()[-1],
        },
        {"first_rank": 1, "local_rank": 1},
    ),
    "a rank of the second host": (
        {
            "sft-771234/none_ab12_x9q/attempt_0/0/stderr.log": WELL,
            "sft-771234/none_ab12_x9q/attempt_0/1/stderr.log": "[rank3]: " + OOM.splitlines()[-1],
        },
        {"first_rank": 3, "local_rank": 1},
    ),
    "a rank and a node that the launcher tells": (
        {"u7/sft-771234.out": OOM + BOX},
        {"first_rank": 5, "node": "gpu-n3"},
    ),
    "a task and a node that Slurm tells": (
        {"u7/sft-771234.out": OOM + "srun: error: gpu-n3: task 6: Exited with exit code 1\n"},
        {"first_rank": 6, "node": "gpu-n3"},
    ),
    "a job that its user cancelled, with a stream that cannot be read": (
        {
            "u7/sft-771234.out": WELL + "slurmstepd: error: *** JOB 771234 ON n1 CANCELLED AT 2025-06-03T01:02:03 ***\n",
            "u7/sft-771234.err.gz": b"\x1f\x8b\x08\x00broken",
        },
        {"memory_failure": "no"},
    ),
    "a message with several readings, and ranks that waited for its process": (
        {"u7/sft_771234_rank0.out": WELL + ECHO, "u7/sft_771234_rank2.out": "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n"},
        {"memory_failure": "possible", "kind": "masked-device-oom", "first_rank": 2},
    ),
    "a line that kubelet cut in two": (
        {
            POD.format(node="n1", role="master-0", restart=0): (
                f"2025-06-03T01:02:03.000000001Z stderr P {'.' * 400}torch.OutOfMemoryError: CUDA out of mem\n"
                "2025-06-03T01:02:03.000000002Z stderr F ory. Tried to allocate 3.00 GiB.\n"
            )
        },
        {"memory_failure": "yes", "requested_bytes": 3 << 30},
    ),
}


@pytest.mark.parametrize(("files", "told"), ONE_JOB.values(), ids=ONE_JOB)
def test_the_files_of_a_job_make_one_row(tmp_path: Path, files: dict[str, str | bytes], told: dict[str, object]) -> None:
    (row,) = rows(tmp_path, files)
    assert {name: getattr(row, name) for name in told} == told


MANY_JOBS: dict[str, tuple[dict[str, str | bytes], dict[str, str]]] = {
    "the tasks of an array are jobs": (
        {"u7/slurm-771234_0.out": OOM, "u7/slurm-771234_1.out": WELL},
        {"771234_0": "yes", "771234_1": "no"},
    ),
    "an export of a log store holds many jobs": (
        {"loki/export.jsonl": json_lines(OOM, job_name="sft-1") + json_lines(WELL, job_name="sft-2")},
        {"sft-1": "yes", "sft-2": "no"},
    ),
    "two jobs of one Ray session": (
        {
            "session_2025-06-03_01-02-03_123456_77/logs/worker-0a1b2c3d-01000000-411.err": WELL,
            "session_2025-06-03_01-02-03_123456_77/logs/worker-0a1b2c3d-02000000-412.err": OOM,
            "session_2025-06-03_01-02-03_123456_77/logs/job-driver-raysubmit_aa.log": f"(Worker pid=411, ip=10.0.0.5) {WELL}",
            "session_2025-06-03_01-02-03_123456_77/logs/job-driver-raysubmit_bb.log": f"(Worker pid=412, ip=10.0.0.5) {WELL}",
        },
        {"aa": "no", "bb": "yes"},
    ),
}


@pytest.mark.parametrize(("files", "told"), MANY_JOBS.values(), ids=MANY_JOBS)
def test_jobs_are_told_apart(tmp_path: Path, files: dict[str, str | bytes], told: dict[str, str]) -> None:
    assert {row.native: row.memory_failure for row in rows(tmp_path, files)} == told


def test_records_show_what_the_logs_do_not(tmp_path: Path) -> None:
    table = (
        "JobID|JobName|User|State|ExitCode|Start|End|NodeList|AllocTRES\n"
        "771234|sft|u7|OUT_OF_MEMORY|0:125|2025-06-03T01:00:00|2025-06-03T02:00:00|n[1-2]|gres/gpu=8\n771234.batch|batch|||||||\n"
    )
    (row,) = rows(tmp_path, {"u7/sft-771234.out": WELL}, {"sacct.psv": table})
    assert (row.memory_failure, row.evidence, row.kind, row.nodes, row.gpu_seconds_lost) == (
        "yes",
        "sacct",
        "host-oom",
        ("n1", "n2"),
        8 * 3600,
    )


def test_a_second_run_reads_only_what_is_new(tmp_path: Path) -> None:
    logs = put(tmp_path, {"u7/sft-771234.out": OOM, "u7/sft-771237.out": WELL})
    store = str(tmp_path / "store")
    first = triage([str(logs)], redact=str, store=store)
    again = triage([str(logs)], redact=str, store=store)
    put(tmp_path, {"u7/sft-771237.out": WELL + OOM})
    grown = triage([str(logs)], redact=str, store=store)
    assert (first.read, again.read, grown.read) == (2, 0, 1)
    assert (first.fleet.failed, again.fleet.failed, grown.fleet.failed) == (1, 1, 2)


def test_rows_outlive_their_logs(tmp_path: Path) -> None:
    logs = put(tmp_path, {"u7/sft-771234.out": OOM, "u7/sft-771237.out": WELL})
    store = str(tmp_path / "store")
    triage([str(logs)], redact=str, store=store)
    os.unlink(logs / "u7/sft-771234.out")
    assert triage([str(logs)], redact=str, store=store).fleet.failed == 1


HELD = OOM.replace("38.20 GiB memory in use", "9.00 GiB memory in use").replace("36.10 GiB", "7.10 GiB")
"""A message that leaves most of a card to others."""


def on_node(text: str, node: str) -> str:
    return f"{text}srun: error: {node}: task 0: Exited with exit code 1\n"


def test_failures_on_a_node_whose_cards_others_hold_are_one_group(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"u{user}/job{chr(97 + user)}-77123{user}.out": on_node(HELD, "gpu-n3") for user in range(3)}
    files["u9/other-771300.out"] = on_node(OOM, "gpu-n3")
    made = {row.native: row.group for row in rows(tmp_path, files)}
    assert len({made[f"77123{user}"] for user in range(3)}) == 1
    assert made["771300"] != made["771230"]


def test_what_one_campaign_meets_on_many_nodes_is_no_ill_of_theirs(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"u1/fit-77123{number}.out": on_node(HELD, f"gpu-n{number}") for number in range(5)}
    files["u2/eval-771300.out"] = on_node(HELD, "gpu-n3")
    made = {row.native: row.group for row in rows(tmp_path, files)}
    assert len({made[f"77123{number}"] for number in range(5)}) == 1
    assert made["771300"] != made["771233"]


def test_the_same_failure_of_one_campaign_is_one_group(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"u7/sft-glm-77123{number}.out": OOM for number in range(4)}
    files["u7/eval-qwen-771300.out"] = OOM.replace("3.00 GiB", "24.00 GiB")
    made = rows(tmp_path, files)
    assert len({row.group for row in made if row.name == "sft-glm"}) == 1
    assert len({row.group for row in made}) == 2
