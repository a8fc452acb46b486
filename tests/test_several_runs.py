"""Several runs in one folder are told apart, and the logs of one run stay together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from report.published import validate

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.cli.main import cli as main
from oomdoctor.ingest.runs import group_by_run
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU {gpu} has a total capacity of 39.38 GiB of which 1.20 GiB is free."
DIVIDED = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nZeroDivisionError: division by zero'
KERNEL = "RuntimeError: CUDA error: an illegal memory access was encountered"
LAUNCHER = "E0105 10:00:01.100000 90 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 91) of binary: /opt/env/bin/python"
WELL = "step 1 loss 2.0\nstep 2 loss 1.9\nTraining completed."


def of(folder: Path, logs: Mapping[str, str]) -> Diagnosis:
    for name, text in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return diagnose(folder)


@pytest.mark.parametrize(("names", "runs"), [
    pytest.param(["attempt_0/0/stderr.log", "attempt_1/0/stderr.log", "attempt_1/1/stderr.log"], 2, id="attempts of a launcher"),
    pytest.param(["none_x/attempt_0/0/stderr.log", "none_x/attempt_0/1/stderr.log"], 1, id="ranks of one attempt"),
    pytest.param(["launcher.log", "none_x/attempt_0/0/stderr.log"], 1, id="one attempt and its launcher"),
    pytest.param(["slurm-77.out", "slurm-77.err"], 1, id="two streams of one job"),
    pytest.param(["slurm-77.out", "slurm-78.out"], 2, id="two jobs"),
    pytest.param(["slurm-77_1.out", "slurm-77_2.out"], 2, id="two tasks of a job array"),
    pytest.param(["rank0.log", "rank1.log", "rank2.log"], 1, id="rank files"),
    pytest.param(["job9-node0-rank0.log", "job9-node1-rank8.log"], 1, id="nodes of one job"),
    pytest.param(["train.log", "dmesg.txt", "nvidia-smi.txt"], 1, id="a log and what the machine says"),
    pytest.param(["seed_1/train.log", "seed_2/train.log"], 2, id="seeds"),
    pytest.param(["2026-01-05_10-00-00/train.log", "2026-01-06_10-00-00/train.log"], 2, id="folders that are named by time"),
    pytest.param(["exp3/rank0.log", "exp3/rank1.log"], 1, id="one experiment"),
    pytest.param(["exp3_rank0.log", "exp3_rank1.log"], 1, id="ranks in one name with the experiment"),
    pytest.param(["job_7_node1.out", "job_7_node2.out"], 1, id="nodes in one name with the job"),
    pytest.param(["wandb/run-20260105_101112-a1b2/output.log", "wandb/run-20260106_101112-c3d4/output.log"], 2, id="runs that are named by time"),
    pytest.param(["outputs/2026-01-05/10-00-00/train.log", "outputs/2026-01-05/11-30-00/train.log"], 2, id="folders of a day"),
    pytest.param(["session_x/logs/worker-ab-01000000-77.err", "session_x/logs/worker-cd-01000000-78.err", "session_x/logs/raylet.out"], 1, id="one session"),
    pytest.param(["lightning_logs/version_0/out.log", "lightning_logs/version_1/out.log"], 2, id="versions"),
])  # fmt: skip
def test_names_tell_runs_apart(names: list[str], runs: int) -> None:
    assert len(group_by_run(names)) == runs


@pytest.mark.parametrize(("logs", "outcomes"), [
    pytest.param({"attempt_0/0/stderr.log": OOM.format(gpu=0), "attempt_1/0/stderr.log": "ok", "attempt_1/1/stderr.log": KERNEL}, ["yes device-oom", "no look-alike"], id="two attempts"),
    pytest.param({f"farm{n}.log": OOM.format(gpu=0) if n == 2 else DIVIDED if n % 3 == 0 else WELL for n in range(9)}, ["no none", "no none", "yes device-oom", *["no none"] * 6], id="many unrelated logs"),
    pytest.param({f"slurm-{n}.out": (OOM.format(gpu=0), DIVIDED)[n % 2] for n in (10, 11)}, ["yes device-oom", "no none"], id="two jobs"),
])  # fmt: skip
def test_each_run_has_its_own_verdict(tmp_path: Path, logs: Mapping[str, str], outcomes: list[str]) -> None:
    case = of(tmp_path, logs).case
    assert [f"{line.verdict.memory_failure} {line.verdict.kind.value}" for line in case.runs] == outcomes
    assert (case.verdict.memory_failure, case.verdict.reason, case.verdict.certainty.value) == ("yes", "several-runs", "likely")


@pytest.mark.parametrize("logs", [
    pytest.param({"attempt_0/0/stderr.log": OOM.format(gpu=0), "attempt_0/1/stderr.log": "ok", "launcher.log": LAUNCHER}, id="ranks and launcher of one attempt"),
    pytest.param({f"rank{n}.log": (f"[rank{n}]: " + OOM.format(gpu=n)) if n < 3 else WELL for n in range(8)}, id="rank files"),
    pytest.param({"train.out": WELL.replace("Training completed.", ""), "train.err": OOM.format(gpu=0)}, id="two streams"),
    pytest.param({"launcher.log": LAUNCHER, **{f"worker-{n}.log": OOM.format(gpu=n) if n == 4 else DIVIDED if n == 5 else "ok" for n in range(8)}}, id="workers that fail each in its own way"),
    pytest.param({f"t{n}x.log": OOM.format(gpu=0) if n == 3 else "ConnectionResetError: [Errno 104] Connection reset by peer" for n in range(8)}, id="one failure and its echoes in processes without a number"),
    pytest.param({f"p{n}.log": OOM.format(gpu=0) if n % 2 else WELL for n in range(8)}, id="one failure in many logs"),
])  # fmt: skip
def test_the_logs_of_one_run_are_one_case(tmp_path: Path, logs: Mapping[str, str]) -> None:
    case = of(tmp_path, logs).case
    assert case.runs == ()
    assert (case.verdict.memory_failure, case.verdict.certainty.value) == ("yes", "certain")


def test_where_one_run_failed_it_is_told_in_full(tmp_path: Path) -> None:
    diagnosis = of(tmp_path, {"attempt_0/0/stderr.log": OOM.format(gpu=0), "attempt_1/0/stderr.log": WELL})
    assert [line.name for line in diagnosis.case.runs] == ["attempt_0", "attempt_1"]
    assert diagnosis.case.verdict.certainty.value == "certain" and diagnosis.findings
    text = markdown(compose(diagnosis, Wording("en"), "0"))
    assert "no failure found" in text and "Do this" in text


def test_runs_that_all_went_well_are_no_table(tmp_path: Path) -> None:
    assert of(tmp_path, {"seed_1/train.log": WELL, "seed_2/train.log": WELL}).case.runs == ()


@pytest.mark.parametrize(("lang", "parts"), [
    ("en", ["40 runs found", "2 ran out of memory", "13 ended with other errors", "ZeroDivisionError", "13 runs"]), ("zh", ["40 次运行", "2 次内存或显存不足", "ZeroDivisionError"]),
])  # fmt: skip
def test_many_runs_are_counted_by_what_they_failed_with(tmp_path: Path, lang: str, parts: list[str]) -> None:
    logs = {f"farm{n:02}.log": OOM.format(gpu=0) if n in (1, 2) else DIVIDED if n % 3 == 0 and n else WELL for n in range(40)}
    text = markdown(compose(of(tmp_path, logs), Wording(lang), "0"))
    assert [part for part in parts if part not in text] == []


def test_json_has_a_line_for_each_run(tmp_path: Path) -> None:
    diagnosis = of(tmp_path, {"slurm-10.out": OOM.format(gpu=0), "slurm-11.out": DIVIDED})
    report = json.loads(json_text(convert_diagnosis(diagnosis, Wording("en"), "0"), redact=False))
    validate(report)
    runs = report["runs"]
    assert [(run["name"], run["memory_failure"], run["error"]) for run in runs] == [
        ("10", "yes", None), ("11", "no", "ZeroDivisionError: division by zero"),
    ]  # fmt: skip


def test_an_issue_is_about_one_run_and_an_answer_about_all(tmp_path: Path) -> None:
    of(tmp_path, {"slurm-10.out": DIVIDED, "slurm-11.out": OOM.format(gpu=0)})
    issue = CliRunner().invoke(main, ["report", str(tmp_path), "--env", "none", "--lang", "en"])
    assert (issue.exit_code, "about 11" in issue.stderr, "3.00 GiB" in issue.stdout, "ZeroDivisionError" in issue.stdout) == (
        1,
        True,
        True,
        False,
    )
    answer = CliRunner().invoke(main, ["diagnose", str(tmp_path), "--env", "none", "--lang", "en", "--reply"]).stdout
    assert "2 runs found" in answer and "ZeroDivisionError" in answer and "please add" not in answer
