"""What a server makes of a card as JSON: `server` of `oomdoctor/estimate/v1`. Additions are allowed, renames are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oomdoctor.case.estimate import Assumption, Term
from oomdoctor.case.plan import Measure, Obstacle, Plan, Plans
from oomdoctor.case.serving import ByteRange, Served, ServedRun
from oomdoctor.report.safety.sanitize import clean_line


def to_json(found: Served, lang: str) -> dict[str, Any]:
    """The estimate of a served run. Sizes are bytes of one card; `cleared` and `starts` are `yes`, `no` or `close`."""
    filled = found.phases[-1]
    return {
        "schema": "oomdoctor/estimate/v1",
        "model": clean_line(found.setup.shape.name, 400),
        "gpus": found.setup.layout.cards,
        "counter": "nvidia-smi",
        "per_gpu_bytes": {
            "expected": filled.bytes,
            "low": sum(one.low for one in filled.terms),
            "high": sum(one.high for one in filled.terms),
        },
        "host_bytes": found.server.offload * found.setup.layout.cards,
        "card": {"name": clean_line(found.card, 200), "bytes": found.total, "fits": found.starts},
        "server": server(found),
        "peak": max(found.phases, key=lambda phase: phase.bytes).name,
        "phases": [{"name": phase.name, "bytes": phase.bytes, "terms": [_term(one) for one in phase.terms]} for phase in found.phases],
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in found.assumptions],
    }


def beside_printed(found: ServedRun, lang: str) -> dict[str, Any]:
    """The estimate of a failed server, and beside it what its log shows."""
    return {
        **to_json(found.expected, lang),
        "fits": found.served.starts,
        "settings_known": True,
        "at_failure": None,
        "seen_bytes": dict(found.seen),
        "card_is_known": found.total_is_known,
    }


def server(found: Served) -> dict[str, Any]:
    """The share and what becomes of it."""
    failed = found.failed_check
    return {
        "program": found.server.program,
        "share": found.server.share,
        "max_model_len": found.server.length,
        "max_num_seqs": found.server.requests,
        "max_batched_tokens": found.server.batched,
        "taken_bytes": found.taken,
        "terms": [_term(one) for one in found.terms],
        "beside": [_term(one) for one in found.beside],
        "cache_bytes": found.cache.expected,
        "cache_range": _range(found.cache),
        "cache_tokens": found.tokens.expected,
        "token_range": _range(found.tokens),
        "request_bytes": found.request,
        "starts": found.starts,
        "obstacle": None if failed is None else failed.name,
        "hurdles": [
            {"name": one.name, "cleared": one.passes, "spare_bytes": one.spare.expected, "range": _range(one.spare)} for one in found.checks
        ],
    }


def _range(found: ByteRange) -> dict[str, int]:
    return {"low": found.low, "high": found.high}


def _term(one: Term) -> dict[str, Any]:
    return {"name": one.name, "bytes": one.bytes, "low": one.low, "high": one.high, "basis": one.basis}


def plans_to_json(found: Plans[Served], assumptions: Sequence[Assumption], lang: str) -> dict[str, Any]:
    """Plans for a server as `oomdoctor/plan/v1`; `server` is what the plan makes of the card."""
    return {
        "schema": "oomdoctor/plan/v1",
        "model": clean_line(found.now.setup.shape.name, 400),
        "gpus": found.now.setup.layout.cards,
        "card": {"name": clean_line(found.budget.card, 200), "bytes": found.now.total, "usable_bytes": found.now.taken},
        "fits": found.now.starts,
        "now": {"server": server(found.now)},
        "plans": [_plan(one) for one in found.plans],
        "wall": None if found.obstacle is None else _obstacle(found.obstacle),
        "combinations": found.combinations,
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in assumptions],
    }


def _obstacle(obstacle: Obstacle[Served]) -> dict[str, Any]:
    return {"closest": _plan(obstacle.closest), "card": obstacle.card, "gpus": obstacle.cards}


def _plan(plan: Plan[Served]) -> dict[str, Any]:
    return {"measures": [_measure(one) for one in plan.measures], "server": server(plan.outcome), "risk": plan.risk, "effort": plan.effort}


def _measure(one: Measure) -> dict[str, Any]:
    settings = [
        {
            "framework": setting.framework,
            "file": None if setting.file is None else clean_line(setting.file, 1000),
            "line": setting.line,
            "key": setting.key,
            "from": None if setting.before is None else clean_line(setting.before, 400),
            "to": clean_line(setting.to, 400),
        }
        for setting in one.settings
    ]
    return {"fix": one.fix, "sets": dict(one.sets), "settings": settings}
