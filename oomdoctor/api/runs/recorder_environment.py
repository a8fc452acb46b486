"""Brings the recorder into commands that someone else starts."""

from __future__ import annotations

import json
import os
from shlex import quote

from oomdoctor import __version__
from oomdoctor.errors import UsageError
from oomdoctor.record.evidence_place import NotOurs
from oomdoctor.record.here import prepare


def recorder_environment(out: str | None, level: int, form: str) -> str:
    """Create an evidence folder and return the variables that make every Python process record into it.

    `form` is "shell" for lines to evaluate, or "ray" for the `runtime_env` of a job: its workers are not children of the submitting
    process.
    """
    try:
        injection = prepare(out, level, __version__)
    except NotOurs as why:
        raise UsageError(str(why)) from None
    if injection is None:
        raise UsageError("no evidence folder can be created here")
    environment = injection.environment(os.environ)
    added = {name: value for name, value in environment.items() if os.environ.get(name) != value} | {"OOMDOCTOR": "1"}
    if form == "ray":
        return json.dumps({"env_vars": added})
    path = f"export PYTHONPATH={quote(injection.path)}${{PYTHONPATH:+{os.pathsep}$PYTHONPATH}}"
    return "\n".join([path, *(f"export {name}={quote(value)}" for name, value in added.items() if name != "PYTHONPATH")])
