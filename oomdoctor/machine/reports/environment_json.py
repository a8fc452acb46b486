"""Our own JSON: what `oomdoctor env --format json` prints, or the environment inside a report."""

from __future__ import annotations

import msgspec

from oomdoctor.case.environment import Environment
from oomdoctor.machine.reports.pasted import LIMIT

_DEEPEST = 3
"""How many objects an environment may stand inside."""


def read_environment_json(data: bytes) -> Environment | None:
    """Return the environment in a JSON text; None where it is no JSON, or one of something else."""
    if len(data) > LIMIT or data.lstrip()[:1] != b"{":
        return None
    try:
        value = msgspec.json.decode(data)
        for _ in range(_DEEPEST):
            if not isinstance(value, dict):
                return None
            if not isinstance(value.get("environment"), dict):
                break
            value = value["environment"]
        environment = msgspec.convert(value, Environment)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError):
        return None
    return None if environment == Environment() else environment
