"""The JSON Schemas of the reports, made from their structures; what stands below a field becomes its description.

The files under `oomdoctor/report/schema/` are written by `python -m pytest tests/report/wire/test_schemas.py --bless`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent

from msgspec import Struct
from msgspec.json import schema_components
from msgspec.structs import fields

from oomdoctor.report.triage.restart_line import RestartAnswer
from oomdoctor.report.wire.bugs import BugsV1
from oomdoctor.report.wire.check import CheckV1
from oomdoctor.report.wire.comparison import ComparisonV1
from oomdoctor.report.wire.environment import EnvironmentV1
from oomdoctor.report.wire.estimate_v1 import EstimateV1
from oomdoctor.report.wire.explain import ExplanationV1
from oomdoctor.report.wire.fleet.summary import FleetV1
from oomdoctor.report.wire.plan_v1 import PlansV1
from oomdoctor.report.wire.report_v1 import ReportV1
from oomdoctor.report.wire.runs.snapshot_v1 import SnapshotV1
from oomdoctor.report.wire.sizing.alternatives import AlternativesV1
from oomdoctor.report.wire.sizing.sweep import SweepV1
from oomdoctor.triage.row import JobRow

REPORTS: dict[str, type[Struct]] = {
    "report-v1": ReportV1,
    "estimate-v1": EstimateV1,
    "plan-v1": PlansV1,
    "check-v1": CheckV1,
    "environment-v1": EnvironmentV1,
    "comparison-v1": ComparisonV1,
    "explain-v1": ExplanationV1,
    "bugs-v1": BugsV1,
    "sweep-v1": SweepV1,
    "alternatives-v1": AlternativesV1,
    "snapshot-v1": SnapshotV1,
    "verdict-v1": RestartAnswer,
    "triage-v1": JobRow,
    "fleet-v1": FleetV1,
}
"""The structure of each report by the name of its schema file."""


def schema_text(name: str) -> str:
    """Return the schema of a report, as its file holds it."""
    report = REPORTS[name]
    _, components = schema_components([report], schema_hook=lambda _: {"description": "Any value."})
    classes = {cls.__name__: cls for cls in _subclasses(Struct) if cls.__module__.startswith("oomdoctor.")}
    for part, schema in components.items():
        for field, description in _descriptions(classes[part]) if part in classes else ():
            schema["properties"][field] = {"description": description, **schema["properties"][field]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "oomdoctor/" + name.replace("-", "/")}
    return json.dumps({**head, **components.pop(report.__name__), "$defs": components}, ensure_ascii=False, indent=1) + "\n"


def _subclasses(cls: type) -> Iterator[type[Struct]]:
    subclass: type[Struct]
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _descriptions(cls: type[Struct]) -> Iterator[tuple[str, str]]:
    """Read (name in JSON, text below it) of the fields of a structure."""
    names = {field.name: field.encode_name for field in fields(cls)}
    for base in cls.__mro__[: cls.__mro__.index(Struct)]:
        (tree,) = ast.parse(dedent(getsource(base))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                yield names[field.target.id], cleandoc(ast.literal_eval(text.value))
