"""Rows of `rules/tables/models.json` as shapes, by the names of models."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import itemgetter

from oomdoctor.case.shape import Experts, Latent, Shape, Vision
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.models import LatentRow, ModelRow, TowerRow, model_row, model_rows


@cache
def model_shape(name: str) -> Shape | None:
    """Return the shape of a model by its name; None for a name that the table does not have, or of what makes pictures."""
    row = model_row(name)
    return None if row is None or row.parts else _shape(row)


def counted_shape(sizes: Iterable[int], most: float) -> Shape | None:
    """Return the shape of the model whose number of parameters is nearest to one of some; None where its share of difference is `most`."""
    rows = [row for row in model_rows() if not row.parts]
    near = ((abs(row.params_total_formula - size) / size, row) for size in sizes if size > 0 for row in rows)
    difference, nearest = min(near, key=itemgetter(0), default=(most, None))
    return _shape(nearest) if nearest is not None and difference < most else None


@cache
def dense() -> tuple[Shape, ...]:
    """Return all shapes without experts and without a tower."""
    plain = (_plain(row) for row in model_rows() if row.config is None and not row.parts)
    return tuple(shape for shape in plain if shape.experts is None and shape.vision is None)


def _shape(row: ModelRow) -> Shape:
    known = None if row.config is None else shape_from_config(row.config, row.name)
    return _plain(row) if known is None else known


def _plain(row: ModelRow) -> Shape:
    return Shape(
        name=row.name,
        hidden=row.hidden_size,
        layers=row.num_layers,
        heads=row.num_heads,
        kv_heads=row.num_kv_heads,
        head=row.head_dim,
        intermediate=row.intermediate_size,
        vocab=row.vocab_size,
        tied=row.tied_embeddings,
        gated=row.gated_mlp,
        rms=row.norm == "RMSNorm",
        attention_bias=row.attn_bias or row.mlp_bias,
        output_bias=row.mlp_bias,
        mlp_bias=row.mlp_bias,
        head_bias=row.lm_head_bias,
        fused_qkv=row.fused_qkv,
        fused_gate=row.fused_gate,
        activation=row.activation,
        qk_norm=bool(row.qk_norm),
        qk_norm_full=row.qk_norm == "full",
        sandwich_norm=row.sandwich_norm,
        post_norm=row.post_norm,
        shared_norm=row.shared_norm,
        parallel=row.parallel_residual,
        wide_norm=row.wide_norm,
        rotary=row.rotary,
        eager_only=row.eager_only,
        residual_dropout=row.residual_dropout,
        positions=row.learned_positions,
        longest=row.max_position_embeddings,
        extra=row.extra_params,
        window=row.sliding_window,
        windowed_layers=row.windowed_layers,
        experts=_experts(row) if row.n_experts else None,
        latent=None if row.mla is None else _latent(row.mla),
        vision=None if row.vision is None else _vision(row.vision, row.params_vision_formula),
    )


def _experts(row: ModelRow) -> Experts:
    return Experts(
        routed=row.n_experts,
        active=row.experts_per_tok,
        intermediate=row.moe_intermediate_size,
        shared=row.n_shared_experts,
        shared_gate=row.shared_gate,
        dense_layers=row.first_k_dense,
        correction_bias=row.correction_bias,
    )


def _latent(row: LatentRow) -> Latent:
    return Latent(
        q_rank=row.q_lora_rank,
        kv_rank=row.kv_lora_rank,
        nope=row.qk_nope_head_dim,
        rope=row.qk_rope_head_dim,
        value=row.v_head_dim,
    )


def _vision(row: TowerRow, params: int | None) -> Vision:
    known = next((tower for tower in table("towers") if row.kind.startswith(tower["kind"])), {})
    return Vision(
        params=row.params if params is None else params,
        hidden=row.hidden_size,
        layers=row.num_layers,
        heads=row.num_heads,
        intermediate=row.intermediate_size,
        gated=row.gated_mlp,
        modules=frozenset(known.get("modules", "").split("|")) - {""},
        family=known.get("family", ""),
        patches=row.patches if row.patches_plus_cls is None else row.patches_plus_cls,
        tokens=row.tokens_per_image if isinstance(row.tokens_per_image, int) else 0,
    )
