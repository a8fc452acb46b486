"""What wandb records about a run besides its output: who ran it, where, and in which Slurm job (files/wandb-metadata.json)."""

from __future__ import annotations

import os
from typing import Union

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

FILE = "files/wandb-metadata.json"


class WandbMetadata(Struct, frozen=True):
    """The fields that identify a job."""

    host: Union[str, None] = None
    username: Union[str, None] = None
    program: Union[str, None] = None
    slurm: Union[dict[str, Union[str, int, None]], None] = None

    @property
    def name(self) -> str | None:
        """Return the run's name: its program, without folders and extension."""
        return os.path.splitext(os.path.basename(self.program))[0] or None if self.program else None

    @property
    def slurm_job(self) -> str | None:
        """Return the ID of the Slurm job that the run was part of, with the task number for an array."""
        told = {name.removeprefix("slurm_"): str(value) for name, value in (self.slurm or {}).items() if value}
        array, task = told.get("array_job_id"), told.get("array_task_id")
        return f"{array}_{task}" if array and task else told.get("job_id") or told.get("jobid")


_DECODER = Decoder(WandbMetadata)


def read_metadata(data: bytes) -> WandbMetadata:
    """Return the metadata in such a file; nothing if it is not one."""
    try:
        return _DECODER.decode(data)
    except (DecodeError, ValidationError, UnicodeDecodeError):
        return WandbMetadata()
