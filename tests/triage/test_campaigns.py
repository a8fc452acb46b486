"""Whose a job is: submissions of one thing by one user have one campaign, those of others another."""

from __future__ import annotations

import pytest

from oomdoctor.triage.fingerprint import campaign
from oomdoctor.triage.job import Job

Submitted = tuple[str | None, str, str | None]
"""The user where one is known, the family of the files (placing.py), the name."""


def whose(submitted: Submitted) -> str:
    user, family, name = submitted
    job = Job(family=family, layout="slurm", native=family.rpartition("/")[2], folder=family.partition("\t")[2].rpartition("/")[0])
    return campaign(user, job.submitted_in, name, job.folder, job.native)


@pytest.mark.parametrize(("first", "second", "is_same"), [
    pytest.param((None, "slurm\tlogs/ann/7001", "sft"), (None, "slurm\tlogs/ann/7002", "sft"), True, id="two jobs of one folder"),
    pytest.param((None, "slurm\tlogs/ann/7001", "sft"), (None, "slurm\tlogs/bob/7002", "sft"), False, id="one name in two folders"),
    pytest.param(("ann", "slurm\tlogs/a/7001", "sft"), ("ann", "slurm\tlogs/b/7002", "sft"), True, id="a known user in two folders"),
    pytest.param(("ann", "slurm\tlogs/7001", "sft"), ("bob", "slurm\tlogs/7002", "sft"), False, id="two known users in one folder"),
    pytest.param((None, "slurm\tlogs/ann/7001", "sft-1"), (None, "slurm\tlogs/ann/7002", "sft-2"), True, id="a name with a number"),
    pytest.param((None, "slurm\tlogs/ann/7001", "sft"), (None, "slurm\tlogs/ann/7002", "dpo"), False, id="two names in one folder"),
    pytest.param((None, "slurm\tlogs/2026/11/22/7001", "sft"), (None, "slurm\tlogs/2026/11/23/7002", "sft"), True, id="folders of days"),
    pytest.param((None, "kubernetes-pod\tteam-a/sft-x", "sft"), (None, "kubernetes-pod\tteam-b/sft-y", "sft"), False, id="two namespaces"),
    pytest.param((None, "torchrun\truns/sft-7001", "sft"), (None, "torchrun\truns/sft-7002", "sft"), True, id="folders of runs"),
])  # fmt: skip
def test_campaigns(first: Submitted, second: Submitted, is_same: bool) -> None:
    assert (whose(first) == whose(second)) is is_same
