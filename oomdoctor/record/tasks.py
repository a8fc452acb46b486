"""A command that a launcher starts many times: which rank this one is, and what tells its job from all others."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import NamedTuple


class LaunchedTask(NamedTuple):
    """One of the tasks of a launcher."""

    rank: int
    job: str
    """What tells the tasks of one start from all others, as a name of a folder."""


def task_of(environ: Mapping[str, str]) -> LaunchedTask | None:
    """Return which task this is; None where the command was started once.

    Variables: Slurm's srun(1), Open MPI's mpirun(1) with PMIx, MPICH's and Intel's Hydra (PMI), torchrun.
    """
    for rank, size, job in (
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
        ("PMI_RANK", "PMI_SIZE", ("PMI_ID_JOB", "HYDI_CONTROL_FD")),
        ("RANK", "WORLD_SIZE", ("SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")),
    ):
        number, count = environ.get(rank, ""), environ.get(size, "")
        if number.isdecimal() and count.isdecimal() and int(count) > 1 and len(number) < 8:
            return LaunchedTask(int(number), _job(environ, job))
    return None


def _job(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return a name of the job: a scheduler's number says all; else it is the launcher on this node, which is the parent of its tasks."""
    told = [value for name in names if (value := environ.get(name))]
    is_numbered = bool(environ.get("SLURM_JOB_ID") or environ.get("PMIX_NAMESPACE"))
    node = os.uname().nodename.split(".")[0] if hasattr(os, "uname") else "here"
    parts = told if is_numbered else [time.strftime("%Y%m%d"), node, str(os.getppid()), *told]
    return "job-" + re.sub(r"[^\w.-]", "_", "-".join(parts))[:100]
