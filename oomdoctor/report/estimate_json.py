"""An estimate as JSON (`oomdoctor/estimate/v1`): additions are allowed, renames are not."""

from __future__ import annotations

from typing import Any

from oomdoctor.case.estimate import Estimate, Term
from oomdoctor.report.estimate import verdict


def to_json(found: Estimate, lang: str, card: tuple[str, int] | None = None) -> dict[str, Any]:
    """Sizes are bytes of one card; `host_bytes` are those of the machine."""
    return {
        "schema": "oomdoctor/estimate/v1",
        "model": found.setup.shape.name,
        "gpus": found.setup.layout.cards,
        "counter": found.setup.counter,
        "per_gpu_bytes": {"expected": found.expected, "low": found.low, "high": found.high},
        "host_bytes": found.host,
        "host_loading_bytes": found.host_loading,
        "host_saving_bytes": found.host_saving,
        "card": None if card is None else {"name": card[0], "bytes": card[1], "fits": verdict(found, card[1])},
        "server": None,
        "peak": found.peak.name,
        "phases": [{"name": phase.name, "bytes": phase.bytes, "terms": [_term(term) for term in phase.terms]} for phase in found.phases],
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in found.assumptions],
    }


def _term(term: Term) -> dict[str, Any]:
    return {"name": term.name, "bytes": term.bytes, "low": term.low, "high": term.high, "basis": term.basis}
