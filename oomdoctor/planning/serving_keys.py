"""Measures for a server in its own options: the key, the old value and the new one."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.advice.fixes import rows_of
from oomdoctor.advice.settings import config_of, written_settings
from oomdoctor.case.plan import Measure
from oomdoctor.case.serving import ServedPlan, ServedPlans
from oomdoctor.planning.framework_keys import MeasureKeys


def in_options(found: ServedPlans, keys: MeasureKeys) -> ServedPlans:
    """The plans with their settings as the server writes them."""
    wall = None if found.wall is None else replace(found.wall, closest=_of_plan(found.wall.closest, keys))
    return replace(found, plans=tuple(_of_plan(plan, keys) for plan in found.plans), wall=wall)


def _of_plan(plan: ServedPlan, keys: MeasureKeys) -> ServedPlan:
    return replace(plan, measures=tuple(_of_measure(one, keys) for one in plan.measures))


def _of_measure(measure: Measure, keys: MeasureKeys) -> Measure:
    fix = keys.pack.fix(measure.fix)
    if fix is None:
        return measure
    rows = rows_of(fix, keys.known, keys.training)
    return replace(measure, settings=written_settings(rows, dict(measure.sets), keys.known.facts, config_of(keys.training)))
