"""Rows of `rules/tables/models.json` as shapes: by name, or the neighbour of a model of which only the size is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from oomdoctor.case.shape import Experts, Latent, Shape, Vision
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.models import model_row, model_rows


@cache
def model_shape(name: str) -> Shape | None:
    """The shape of a model by its name; None for a name that the table does not have."""
    known = model_row(name)
    return None if known is None else _shape(known)


@cache
def known_shapes() -> tuple[Shape, ...]:
    """The shapes of all models of the table."""
    return tuple(map(_shape, model_rows()))


@cache
def dense() -> tuple[Shape, ...]:
    """All shapes without experts and without a tower."""
    return tuple(one for one in known_shapes() if one.experts is None and one.vision is None)


def _shape(row: Mapping[str, Any]) -> Shape:
    return Shape(
        name=row["id"],
        hidden=row["hidden_size"],
        layers=row["num_layers"],
        heads=row["num_heads"],
        kv_heads=row["num_kv_heads"],
        head=row["head_dim"],
        intermediate=row["intermediate_size"],
        vocab=row["vocab_size"],
        tied=row["tied_embeddings"],
        gated=row.get("gated_mlp", False),
        rms=row["norm"] == "RMSNorm",
        attention_bias=row.get("attn_bias", False) or row.get("mlp_bias", False),
        output_bias=row.get("output_bias", row.get("mlp_bias", False)),
        mlp_bias=row.get("mlp_bias", False),
        head_bias=row.get("lm_head_bias", False),
        fused_qkv=row.get("fused_qkv", False),
        fused_gate=row.get("fused_gate", False),
        activation=row.get("activation", ""),
        qk_norm=bool(row.get("qk_norm")),
        qk_norm_full=row.get("qk_norm") == "full",
        sandwich_norm=row.get("sandwich_norm", False),
        post_norm=row.get("post_norm", False),
        shared_norm=row.get("shared_norm", False),
        parallel=row.get("parallel_residual", False),
        wide_norm=row.get("wide_norm", False),
        rotary=row.get("rotary", True),
        eager_only=row.get("eager_only", False),
        residual_dropout=row.get("residual_dropout", False),
        positions=row.get("learned_positions", 0),
        extra=row.get("extra_params", 0),
        window=row.get("sliding_window"),
        windowed_layers=row.get("windowed_layers"),
        experts=_experts(row),
        latent=_latent(row),
        vision=_vision(row),
    )


def _experts(row: Mapping[str, Any]) -> Experts | None:
    if not row.get("n_experts"):
        return None
    return Experts(
        routed=row["n_experts"],
        active=row["experts_per_tok"],
        intermediate=row["moe_intermediate_size"],
        shared=row.get("n_shared_experts", 0),
        shared_gate=row.get("shared_gate", False),
        dense_layers=row.get("first_k_dense", 0),
        correction_bias=row.get("correction_bias", False),
    )


def _latent(row: Mapping[str, Any]) -> Latent | None:
    found = row.get("mla")
    if not found:
        return None
    return Latent(
        q_rank=found["q_lora_rank"],
        kv_rank=found["kv_lora_rank"],
        nope=found["qk_nope_head_dim"],
        rope=found["qk_rope_head_dim"],
        value=found["v_head_dim"],
    )


def _vision(row: Mapping[str, Any]) -> Vision | None:
    found = row.get("vision")
    if not found:
        return None
    tokens = found.get("tokens_per_image")
    return Vision(
        params=row.get("params_vision_formula", found.get("params", 0)),
        hidden=found.get("hidden_size", 0),
        layers=found.get("num_layers", 0),
        heads=found.get("num_heads", 0),
        intermediate=found.get("intermediate_size", 0),
        gated=found.get("gated_mlp", False),
        modules=_modules(str(found.get("kind", ""))),
        patches=found.get("patches_plus_cls", found.get("patches", 0)),
        tokens=tokens if isinstance(tokens, int) else 0,
    )


def _modules(kind: str) -> frozenset[str]:
    row = next((row for row in table("towers") if kind.startswith(row["kind"])), None)
    return frozenset(row["modules"].split("|")) if row else frozenset()
