"""What paths say of the jobs whose files lie there (rules/layouts.yaml)."""

from __future__ import annotations

import pytest

from oomdoctor.api.examples import check_layout
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.layout import LAYOUTS, LayoutRecord
from oomdoctor.triage.listing import ListedFolder
from oomdoctor.triage.log_file import LogFile
from oomdoctor.triage.placing import Layouts

RECORDS = list(load_pack().records(LAYOUTS))
READER = Layouts(RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.id} is told by its examples and only them")
def test_a_layout_is_told_by_its_examples_and_only_them(record: LayoutRecord) -> None:
    assert list(check_layout("", record, READER)) == []


TOGETHER = {
    "the two streams of a Slurm job": ["u7/sft/sft-glm-771234.out", "u7/sft/sft-glm-771234.err"],
    "the two streams of a Slurm job in folders of their own": ["u7/out/sft-glm-771234.out", "u7/err/sft-glm-771234.err"],
    "a Slurm job and its tasks": ["u7/sft-glm-771234.out", "u7/sft-glm_771234_0.out", "u7/sft-glm_771234_1.out"],
    "an old log that was packed and its other stream": ["u7/sft-glm-771234.out.gz", "u7/sft-glm-771234.err"],
    "the pods of a job on two nodes": [
        "n1/var/log/pods/t_sft-ab1cd-master-0_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log",
        "n2/var/log/pods/t_sft-ab1cd-worker-0_8e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log",
    ],
    "the run folders that two nodes made for one job": [
        "sft-771234/none_ab12_x9q/attempt_0/0/stderr.log",
        "sft-771234/none_zz12_x9q/attempt_0/0/stderr.log",
    ],
    "the driver and the workers of a Ray session": [
        "session_2025-06-03_01-02-03_123456_77/logs/worker-0a1b2c3d4e5f-02000000-4411.err",
        "session_2025-06-03_01-02-03_123456_77/logs/job-driver-raysubmit_k3Xn51.log",
    ],
    "a container's log and the parts that were rotated away": [f"{'0f' * 32}/{'0f' * 32}-json.log", f"{'0f' * 32}/{'0f' * 32}-json.log.1"],
    "plain logs of the processes of a run": ["run/train_rank0.log", "run/train_rank1.log"],
}
APART = {
    "two Slurm jobs in one folder": ["u7/sft-glm-771234.out", "u7/sft-glm-771237.out"],
    "jobs of one number on two clusters": ["a/sft-771234.out", "b/sft-771234.out"],
    "two plain logs": ["run/train.log", "run/eval.log"],
    "jobs of one name in two namespaces": [
        "n1/var/log/pods/t_sft-master-0_7e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log",
        "n1/var/log/pods/u_sft-master-0_8e9d1c60-53f2-4d0b-9a51-1f6f0e7a2b11/pytorch/0.log",
    ],
}


def families(paths: list[str]) -> set[str]:
    return {family for path in paths for family, _ in READER.place(ListedFolder(path.rpartition("/")[0], (), (LogFile(path, 1, 1),)))}


@pytest.mark.parametrize("paths", TOGETHER.values(), ids=TOGETHER)
def test_files_of_one_job_are_looked_at_together(paths: list[str]) -> None:
    assert len(families(paths)) == 1


@pytest.mark.parametrize("paths", APART.values(), ids=APART)
def test_files_of_different_jobs_are_not(paths: list[str]) -> None:
    assert len(families(paths)) == len(paths)


def test_a_launchers_log_belongs_to_the_run_folders_beside_it() -> None:
    top = ListedFolder("sft-771234", ("none_ab12_x9q",), (LogFile("sft-771234/launcher.out", 1, 1),))
    inner = ListedFolder("r", (), (LogFile("sft-771234/none_ab12_x9q/attempt_0/0/stderr.log", 1, 1),))
    assert {family for folder in (top, inner) for family, _ in READER.place(folder)} == {"torchrun\tsft-771234"}
