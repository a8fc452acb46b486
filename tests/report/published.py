"""The published schemas of the JSON reports, and whether a report is as they say."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

from oomdoctor.report.wire.schemas import REPORTS

SCHEMAS = {
    schema["$id"]: schema
    for name in REPORTS
    for schema in [json.loads((files("oomdoctor.report") / "schema" / f"{name}.json").read_text(encoding="utf-8"))]
}


def validate(report: Any) -> None:
    """Hold a report against the schema that it names, with no key allowed that the schema does not describe."""
    Draft202012Validator(_strict(SCHEMAS[report["schema"]])).validate(report)


def _strict(schema: Any) -> Any:
    """Forbid further keys: additions belong into the schema."""
    if isinstance(schema, dict):
        strict = {key: _strict(value) for key, value in schema.items()}
        return {**strict, "additionalProperties": False} if "required" in schema else strict
    return [_strict(item) for item in schema] if isinstance(schema, list) else schema
