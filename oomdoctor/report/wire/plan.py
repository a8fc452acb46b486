"""Plans as JSON (`oomdoctor/plan/v1`): additions are allowed, renames are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import Measure, Obstacle, Plan, Plans
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.report.safety.sanitize import clean_line


def to_json(found: Plans[Estimate], assumptions: Sequence[Assumption], lang: str) -> dict[str, Any]:
    """Sizes are bytes of one card; `host_bytes` are those of the machine; `time` is a multiple of today's."""
    return {
        "schema": "oomdoctor/plan/v1",
        "model": clean_line(found.now.setup.shape.name, 400),
        "gpus": found.now.setup.layout.cards,
        "card": {"name": clean_line(found.budget.card, 200), "bytes": found.budget.total, "usable_bytes": found.budget.usable},
        "fits": found.fits,
        "now": _estimate(found.now),
        "plans": [_plan(one) for one in found.plans],
        "wall": None if found.obstacle is None else _obstacle(found.obstacle),
        "combinations": found.combinations,
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in assumptions],
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "per_gpu_bytes": {"expected": found.expected, "low": found.low, "high": found.high},
        "host_bytes": found.host,
        "peak": found.peak.name,
        "terms": dict(found.terms),
    }


def _plan(plan: Plan[Estimate]) -> dict[str, Any]:
    return {
        "measures": [_measure(one) for one in plan.measures],
        **_estimate(plan.outcome),
        "time": plan.time and round(plan.time, 3),
        "risk": plan.risk,
        "effort": plan.effort,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {"fix": measure.fix, "sets": dict(measure.sets), "settings": [_setting(one) for one in measure.settings]}


def _setting(one: ProposedSetting) -> dict[str, Any]:
    return {
        "framework": one.framework,
        "file": None if one.file is None else clean_line(one.file, 1000),
        "line": one.line,
        "key": one.key,
        "from": None if one.before is None else clean_line(one.before, 400),
        "to": clean_line(one.to, 400),
    }


def _obstacle(obstacle: Obstacle[Estimate]) -> dict[str, Any]:
    return {
        "closest": _plan(obstacle.closest),
        "term": obstacle.closest.outcome.largest_term.name,
        "fits": obstacle.fits,
        "card": obstacle.card,
        "card_as_it_is": obstacle.card_now,
        "gpus": obstacle.cards,
        "on_gpus": None if obstacle.on_cards is None else _plan(obstacle.on_cards),
    }
