"""A folder of several jobs gets a line for each, put together as triage does; a folder of one run stays one diagnosis."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from report.published import validate

from oomdoctor.cli.main import cli

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.38 GiB of which 1.20 GiB is free.\n"
DIVIDED = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nZeroDivisionError: division by zero\n'
WELL = "step 1 loss 2.0\nstep 2 loss 1.9\nTraining completed.\n"
SFT = "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nfinetuning_type: lora\nper_device_train_batch_size: 8\n"
POD = "node-{n}/var/log/pods/team_{pod}_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b1{n}/main/0.log"
LOKI = "".join(
    json.dumps({"labels": {"job": job}, "line": line, "timestamp": "2026-01-05T10:00:00Z"}) + "\n"
    for job, text in (("sft-a", OOM), ("sft-b", OOM), ("eval", WELL))
    for line in text.splitlines()
)

Logs = Mapping[str, str]


def put(folder: Path, logs: Logs) -> str:
    for name, text in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def diagnose(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["diagnose", *arguments, "--env", "none", "--lang", "en"])


TASKS_OF_A_JOB = {f"sft_771234_{rank}.out": OOM if rank == 5 else WELL for rank in range(8)} | {"sft_771234.out": WELL}
THREE_OF_TWO = {
    f"run/sft_{job}_{rank}.out": f"rank {rank} starts\n"
    + (OOM if (job, rank) in ((771234, 1), (771235, 1)) else DIVIDED if job == 771236 else WELL)
    for job in (771234, 771235, 771236)
    for rank in (0, 1)
}


@pytest.mark.parametrize("logs", [
    pytest.param(TASKS_OF_A_JOB, id="8 ranks of a Slurm job"),
    pytest.param({f"rank{rank}.log": OOM if rank == 5 else WELL for rank in range(8)}, id="8 ranks in plain files"),
    pytest.param({f"fit-771234/none_ab12_x9q/attempt_0/{rank}/stderr.log": OOM for rank in range(8)}, id="8 ranks of torchrun"),
    pytest.param({"sft-771234.out": OOM, "dmesg.txt": WELL, "train.log": WELL}, id="a job and what lies beside it"),
    pytest.param(
        {"running_log.txt": OOM, "trainer_log.jsonl": '{"current_steps": 1, "loss": 2.0}\n', "llamafactory.yaml": SFT, "config.json": "{}", "all_results.json": "{}"},
        id="an output folder with its configs and one log",
    ),
])  # fmt: skip
def test_a_folder_of_one_run_is_one_diagnosis(tmp_path: Path, logs: Logs) -> None:
    done = diagnose(put(tmp_path, logs), "--format", "json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["runs"], told["verdict"]["memory_failure"]) == (1, [], "yes")
    assert told["findings"]


@pytest.mark.parametrize(("logs", "told"), [
    pytest.param(
        THREE_OF_TWO, {"771234": ("yes", "device-oom", "sft_771234_1.out", 1), "771235": ("yes", "device-oom", "sft_771235_1.out", 1), "771236": ("no", "none", None, None)},
        id="3 jobs of 2 ranks",
    ),
    pytest.param(
        {"sft-771234.out": OOM, "sft-771235.out": DIVIDED, "eval-771240.out": OOM, "notes.txt": WELL},
        {"771234": ("yes", "device-oom", "sft-771234.out", None), "771235": ("no", "none", None, None), "771240": ("yes", "device-oom", "eval-771240.out", None)},
        id="jobs of a user in files beside each other",
    ),
    pytest.param(
        {"run1/rank0.log": WELL, "run1/rank1.log": OOM, "run2/rank0.log": OOM, "run2/rank1.log": WELL, "run3/rank0.log": WELL},
        {"run1": ("yes", "device-oom", "rank1.log", 1), "run2": ("yes", "device-oom", "rank0.log", 0), "run3": ("no", "none", None, None)},
        id="runs in numbered folders",
    ),
    pytest.param(
        {POD.format(n=1, pod="sft-a-master-0"): WELL, POD.format(n=2, pod="sft-a-worker-0"): OOM, POD.format(n=3, pod="eval-b"): OOM},
        {"sft-a": ("yes", "device-oom", "0.log", 1), "eval-b": ("yes", "device-oom", "0.log", None)},
        id="pods of two jobs on three nodes",
    ),
    pytest.param(
        {"export.jsonl": LOKI}, {"sft-a": ("yes", "device-oom", "export.jsonl", None), "sft-b": ("yes", "device-oom", "export.jsonl", None), "eval": ("no", "none", None, None)},
        id="jobs in one export of a log store",
    ),
])  # fmt: skip
def test_a_folder_of_jobs_has_a_line_for_each(tmp_path: Path, logs: Logs, told: dict[str, tuple[object, ...]]) -> None:
    done = diagnose(put(tmp_path, logs), "--format", "json")
    report = json.loads(done.stdout)
    validate(report)
    lines = {
        run["name"]: (run["memory_failure"], run["kind"], run["first_file"] and Path(run["first_file"]).name, run["first_rank"])
        for run in report["runs"]
    }
    assert (done.exit_code, report["verdict"]["reason"], lines) == (1, "several-runs", told)


def test_jobs_that_failed_alike_are_one_group(tmp_path: Path) -> None:
    folder = put(tmp_path, THREE_OF_TWO)
    groups = {run["name"]: run["group"] for run in json.loads(diagnose(folder, "--format", "json").stdout)["runs"]}
    assert groups["771234"] == groups["771235"] is not None and groups["771236"] is None
    assert diagnose(folder, "--format", "markdown").stdout.count("group 1") == 2


@pytest.mark.parametrize("logs", [
    pytest.param(THREE_OF_TWO, id="files beside each other"),
    pytest.param({f"a b/{name}": text for name, text in THREE_OF_TWO.items()}, id="a folder with a blank in its name"),
    pytest.param({POD.format(n=1, pod="sft-a-master-0"): WELL, POD.format(n=2, pod="sft-a-worker-0"): OOM, POD.format(n=3, pod="eval-b"): OOM}, id="files on several nodes"),
    pytest.param({"a/sft_771234_0.out": OOM, "a/sft_771234_1.out": OOM, "b/eval-771240.out": OOM}, id="a folder of its own"),
])  # fmt: skip
def test_the_command_that_is_told_shows_one_job_in_full(tmp_path: Path, logs: Logs) -> None:
    done = diagnose(put(tmp_path, logs), "--format", "markdown", "--no-redact")
    command = next(line for line in done.stdout.splitlines() if "oomdoctor diagnose" in line).split("`")[1]
    one = json.loads(diagnose(*shlex.split(command)[2:], "--format", "json").stdout)
    assert (one["runs"], one["verdict"]["memory_failure"]) == ([], "yes")
    assert one["findings"]


def test_where_one_job_failed_it_is_told_in_full(tmp_path: Path) -> None:
    done = diagnose(put(tmp_path, {"sft-771234.out": WELL, "sft-771235.out": OOM}), "--format", "json")
    report = json.loads(done.stdout)
    assert [run["name"] for run in report["runs"]] == ["771234", "771235"]
    assert (done.exit_code, report["verdict"]["certainty"], bool(report["findings"])) == (1, "certain", True)


def test_jobs_that_all_went_well_are_no_failure(tmp_path: Path) -> None:
    done = diagnose(put(tmp_path, {"sft-771234.out": WELL, "sft-771235.out": WELL}), "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]["memory_failure"]) == (0, "no")


def test_a_config_tells_that_the_logs_are_those_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text(SFT)
    done = diagnose(put(tmp_path / "logs", THREE_OF_TWO), "--config", str(tmp_path / "sft.yaml"), "--format", "json")
    assert json.loads(done.stdout)["runs"] == []


def test_an_empty_folder_could_not_be_read(tmp_path: Path) -> None:
    done = diagnose(str(tmp_path))
    assert (done.exit_code, "no log was found there" in done.stderr) == (2, True)


@pytest.mark.parametrize(("logs", "code"), [
    pytest.param({"sft-771234.out": "\0\1\2\3" * 500, "sft-771235.out": "\1\2\3\4" * 500}, 2, id="all of them"),
    pytest.param({"sft-771234.out": "\0\1\2\3" * 500, "sft-771235.out": OOM, "sft-771236.out": OOM}, 1, id="one beside jobs that failed"),
    pytest.param({"sft-771234.out": "\0\1\2\3" * 500, "sft-771235.out": WELL}, 2, id="one beside a job that went well"),
])  # fmt: skip
def test_logs_that_cannot_be_read_are_named(tmp_path: Path, logs: Logs, code: int) -> None:
    done = diagnose(put(tmp_path, logs))
    assert (done.exit_code, "sft-771234.out: not text" in done.stderr) == (code, True)


def test_an_issue_is_about_the_worst_job_with_logs_of_its_own(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", put(tmp_path, {**THREE_OF_TWO, "export.jsonl": LOKI}), "--env", "none", "--lang", "en"])
    assert (done.exit_code, "this report is about 771234" in done.stderr, "3.00 GiB" in done.stdout) == (1, True, True)
