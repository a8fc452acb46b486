"""Measures in the keys of the run's own framework: file, line, key, the old value and the new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from oomdoctor.case.plan import Measure, Plan, Plans
from oomdoctor.case.training import Training
from oomdoctor.findings.fixes import rows_of
from oomdoctor.findings.match import Known
from oomdoctor.findings.settings import config_of, written


class Texts(Protocol):
    """The part of a rule pack that is read here."""

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule."""
        ...


def in_own_keys(found: Plans, pack: Texts, training: Training | None, facts: Mapping[str, Any]) -> Plans:
    """The plans with their settings as the run's framework writes them."""
    known = Known({**facts, **(training.facts() if training else {})}, ())

    def of_plan(plan: Plan) -> Plan:
        return replace(plan, measures=tuple(_of_measure(one, pack, known, training) for one in plan.measures))

    wall = None if found.wall is None else replace(found.wall, closest=of_plan(found.wall.closest))
    return replace(found, plans=tuple(of_plan(plan) for plan in found.plans), wall=wall)


def _of_measure(measure: Measure, pack: Texts, known: Known, training: Training | None) -> Measure:
    text = pack.text("fixes", measure.fix)
    if text is None:
        return measure
    rows = rows_of(text, known, training)
    return replace(measure, settings=written(rows, dict(measure.sets), known.facts, config_of(training)))
