"""Measures in the keys of the run's own framework: file, line, key, the old value and the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from oomdoctor.case.plan import Measure, Plan, Plans
from oomdoctor.case.training import Training
from oomdoctor.findings.fixes import rows_of
from oomdoctor.findings.frameworks import Row
from oomdoctor.findings.match import Known
from oomdoctor.findings.settings import config_of, written

_LAYERS = ("deepspeed", "fsdp", "accelerate")
"""Whose keys are shown where the framework itself has none."""


class Texts(Protocol):
    """The part of a rule pack that is read here."""

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule."""
        ...


def in_own_keys(found: Plans, pack: Texts, training: Training | None, facts: Mapping[str, Any]) -> Plans:
    """The plans with their settings as the run's framework writes them."""
    known = Known({**facts, **(training.facts() if training else {})}, ())

    def of_plan(plan: Plan) -> Plan:
        return replace(plan, measures=_once([_of_measure(one, pack, known, training) for one in plan.measures]))

    wall = None if found.wall is None else replace(found.wall, closest=of_plan(found.wall.closest))
    return replace(found, plans=tuple(of_plan(plan) for plan in found.plans), wall=wall)


def _of_measure(measure: Measure, pack: Texts, known: Known, training: Training | None) -> Measure:
    """The measure with the keys of the framework, else with those of the layer that does it."""
    text = pack.text("fixes", measure.fix)
    if text is None:
        return measure
    wanted, config = dict(measure.sets), config_of(training)
    own = written(rows_of(text, known, training), wanted, known.facts, config)
    below = [row for row in text["settings"] if row["framework"] in _LAYERS and row["when"] is None]
    return replace(measure, settings=own or written(_of_first(below), wanted, known.facts, config))


def _of_first(rows: Sequence[Row]) -> list[Row]:
    """The rows of the layer that comes first in `_LAYERS`."""
    layer = min((row["framework"] for row in rows), key=_LAYERS.index, default=None)
    return [row for row in rows if row["framework"] == layer]


def _once(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Each key with its last value: a file that offloads everything stands for the one that only shards."""
    last = {(one.framework, one.key): one for measure in measures for one in measure.settings}
    return tuple(
        replace(measure, settings=tuple(one for one in measure.settings if last[one.framework, one.key] is one)) for measure in measures
    )
