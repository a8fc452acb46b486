"""An environment and what was found in it as JSON, `oomdoctor/environment/v1`; `oomdoctor env --from` and `--env` read it again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins
from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.environment import Environment
from oomdoctor.report.safety.redact import redact_values

SCHEMA = "oomdoctor/environment/v1"


def to_json(environment: Environment, found: Sequence[Finding], *, version: str, redact: bool, lang: str) -> dict[str, object]:
    """Plain dicts and lists, ready for a JSON encoder. Unknown fields are left out."""
    shown = _without_users(environment) if redact else environment
    report: dict[str, object] = {
        "schema": SCHEMA,
        "oomdoctor": version,
        "environment": to_builtins(shown),
        "findings": [_finding(one, lang) for one in found],
    }
    return redact_values(report) if redact else report


def _without_users(environment: Environment) -> Environment:
    """Whose a process is stays (`own`), by which name does not."""
    gpus = (replace(gpu, processes=tuple(replace(one, user=None) for one in gpu.processes)) for gpu in environment.gpus)
    return replace(environment, gpus=tuple(gpus))


def _finding(one: Finding, lang: str) -> dict[str, object]:
    return {
        "id": one.id,
        "severity": one.severity,
        "confidence": one.confidence.value,
        "title": one.title.get(lang),
        "why": one.why.get(lang),
        "fixes": [{"id": fix.id, "title": fix.title.get(lang), "how": fix.how.get(lang), "command": fix.command} for fix in one.fixes],
        "cites": [{"source": cite.source, "title": cite.title, "url": cite.url, "says": cite.says.get(lang)} for cite in one.cites],
    }
