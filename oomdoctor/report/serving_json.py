"""What a server makes of a card as JSON: `server` of `oomdoctor/estimate/v1`. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Any

from oomdoctor.case.estimate import Term
from oomdoctor.case.serving import Bounds, Served


def to_json(found: Served, lang: str, card: str) -> dict[str, Any]:
    """The estimate of a served run. Sizes are bytes of one card; `cleared` and `starts` are `yes`, `no` or `close`."""
    filled = found.phases[-1]
    return {
        "schema": "oomdoctor/estimate/v1",
        "model": found.setup.shape.name,
        "gpus": found.setup.layout.cards,
        "counter": "nvidia-smi",
        "per_gpu_bytes": {
            "expected": filled.bytes,
            "low": sum(one.low for one in filled.terms),
            "high": sum(one.high for one in filled.terms),
        },
        "host_bytes": found.server.offload * found.setup.layout.cards,
        "card": {"name": card, "bytes": found.total, "fits": found.starts},
        "server": server(found),
        "peak": max(found.phases, key=lambda phase: phase.bytes).name,
        "phases": [{"name": phase.name, "bytes": phase.bytes, "terms": [_term(one) for one in phase.terms]} for phase in found.phases],
        "assumptions": [{"id": one.id, "text": one.text.get(lang), "asked": one.asked} for one in found.assumptions],
    }


def server(found: Served) -> dict[str, Any]:
    """The share and what becomes of it."""
    obstacle = found.obstacle
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
        "obstacle": None if obstacle is None else obstacle.name,
        "hurdles": [
            {"name": one.name, "cleared": one.cleared, "spare_bytes": one.spare.expected, "range": _range(one.spare)}
            for one in found.hurdles
        ],
    }


def _range(found: Bounds) -> dict[str, int]:
    return {"low": found.low, "high": found.high}


def _term(one: Term) -> dict[str, Any]:
    return {"name": one.name, "bytes": one.bytes, "low": one.low, "high": one.high, "basis": one.basis}
