"""An estimate as JSON (`oomdoctor/estimate/v1`): additions are allowed, renames are not."""

from __future__ import annotations

from typing import Any

from oomdoctor.case.estimate import Estimate, Term
from oomdoctor.case.plan import Fit
from oomdoctor.memory.model.placement import placed_share
from oomdoctor.report.safety.sanitize import clean_line


def to_json(found: Estimate, lang: str, judged: Fit | None = None) -> dict[str, Any]:
    """Sizes are bytes of one card; `host_bytes` are those of the machine."""
    return {
        "schema": "oomdoctor/estimate/v1",
        "model": found.setup.shape.name,
        "gpus": found.setup.layout.cards,
        "counter": found.setup.counter,
        "per_gpu_bytes": _range(found),
        "host_bytes": found.host,
        "host_loading_bytes": found.host_loading,
        "host_saving_bytes": found.host_saving,
        "card": None if judged is None else _card(judged),
        "server": None,
        "peak": found.peak.name,
        "phases": [{"name": phase.name, "bytes": phase.bytes, "terms": [_term(term) for term in phase.terms]} for phase in found.phases],
        "ranks": [_rank(one) for one in found.ranks],
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in found.assumptions],
    }


def _card(judged: Fit) -> dict[str, Any]:
    """`needed_bytes` decide whether it fits: what must be there so that no request fails."""
    budget = judged.budget
    return {
        "name": clean_line(budget.card, 200),
        "bytes": budget.total,
        "usable_bytes": budget.usable,
        "needed_bytes": _range(judged.needed),
        "fits": judged.fits,
    }


def _rank(found: Estimate) -> dict[str, Any]:
    """What the cards from `first` to `last` have of the model, counted from 0 in the order of the layers, and what that takes."""
    own = placed_share(found.setup)
    return {
        "first": own.first,
        "last": own.last,
        "layers": own.layers,
        "embedding": own.embeds,
        "head": own.scores,
        "micro_batches": own.in_flight,
        "per_gpu_bytes": _range(found),
        "peak": found.peak.name,
        "terms": dict(found.terms),
    }


def _range(found: Estimate) -> dict[str, int]:
    return {"expected": found.expected, "low": found.low, "high": found.high}


def _term(term: Term) -> dict[str, Any]:
    return {"name": term.name, "bytes": term.bytes, "low": term.low, "high": term.high, "basis": term.basis}
