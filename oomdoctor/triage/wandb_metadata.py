"""What wandb writes of a run beside its output: who ran it, where, and under which job of Slurm (files/wandb-metadata.json)."""

from __future__ import annotations

import os
from typing import Union

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

FILE = "files/wandb-metadata.json"


class WandbMetadata(Struct, frozen=True):
    """Of its fields those that name a job."""

    host: Union[str, None] = None
    username: Union[str, None] = None
    program: Union[str, None] = None
    slurm: Union[dict[str, Union[str, int, None]], None] = None

    @property
    def name(self) -> str | None:
        """Return what the run is called: its program, without folders and ending."""
        return os.path.splitext(os.path.basename(self.program))[0] or None if self.program else None

    @property
    def slurm_job(self) -> str | None:
        """Return what Slurm calls the job that the run was part of, of an array with the number of the task."""
        told = {name.removeprefix("slurm_"): str(value) for name, value in (self.slurm or {}).items() if value}
        array, task = told.get("array_job_id"), told.get("array_task_id")
        return f"{array}_{task}" if array and task else told.get("job_id") or told.get("jobid")


_DECODER = Decoder(WandbMetadata)


def read_metadata(data: bytes) -> WandbMetadata:
    """Return what such a file says; nothing where it is none."""
    try:
        return _DECODER.decode(data)
    except (DecodeError, ValidationError, UnicodeDecodeError):
        return WandbMetadata()
