"""DeepSeek V4: attention over keys that are compressed, and a window of those that are not.

Source: modeling_deepseek_v4.py of transformers 5.23.
"""

from __future__ import annotations

from oomdoctor.case.shape import CompressedKeys, ModelLayer, Part, Shape
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, size, sizes

_OVERLAPS = 4
"""The ratio at which windows of compression overlap, and at which an indexer chooses among what they give."""
_INDEX_SCALE = 4


def compressed_layers(shape: Shape, config: HubConfig) -> tuple[ModelLayer, ...] | None:
    """Return every layer of a model with compressed keys; None for any other."""
    ratios = sizes(config, "compress_ratios")
    rank, out, groups = size(config, "q_lora_rank"), size(config, "o_lora_rank"), size(config, "o_groups")
    if len(ratios) < shape.layers or shape.experts is None or not rank or not out or not groups:
        return None
    made = {ratio: _layer(shape, config, ratio, (rank, out, groups)) for ratio in set(ratios)}
    return tuple(made[ratio] for ratio in ratios[: shape.layers])


def _layer(shape: Shape, config: HubConfig, ratio: int, ranks: tuple[int, int, int]) -> ModelLayer:
    (rank, out, groups), hidden, head = ranks, shape.hidden, shape.head
    query, copies = shape.heads * head, size(config, "hc_mult") or 0
    connections = 2 * (copies * (copies + 2)) * (copies * hidden + 1)
    parts = [
        Part("self_attn.q_a_proj", hidden * rank),
        Part("self_attn.q_b_proj", rank * query),
        Part("self_attn.kv_proj", hidden * head),
        Part("self_attn.o_a_proj", query // groups * groups * out),
        Part("self_attn.o_b_proj", groups * out * hidden),
        Part("self_attn", rank + head + shape.heads + 2 * hidden + connections + 6 * bool(copies), is_matrix=False),
    ]
    indexed, index = 0, size(config, "index_head_dim") or 0
    if ratio:
        wide = 2 * head if ratio == _OVERLAPS else head
        parts += [
            Part("self_attn.compressor", 2 * hidden * wide, is_matrix=False),
            Part("self_attn.compressor.norm", ratio * wide + head, is_matrix=False),
        ]
    if ratio == _OVERLAPS and index:
        many = size(config, "index_n_heads") or 1
        parts += [Part("self_attn.indexer.wq_b", rank * many * index)]
        small = hidden * many + 4 * hidden * index + 2 * ratio * index + index
        parts += [Part("self_attn.indexer", small, is_matrix=False)]
        indexed = (index + _INDEX_SCALE) // ratio
    # The tokens of the window are a block of fixed size.
    window = size(config, "sliding_window") or 0
    rope = size(config, "qk_rope_head_dim") or 0
    compression = CompressedKeys(ratio=ratio, head=head, rope=rope, index=index if indexed else 0, window=window)
    kept = head // ratio if ratio else 0
    return ModelLayer(parts=(*parts, *_experts(shape)), cache=kept, indexed=indexed, state=2 * window * head, compression=compression)


def _experts(shape: Shape) -> tuple[Part, ...]:
    experts = shape.experts
    if experts is None:
        return ()
    each = 3 * shape.hidden * experts.intermediate
    router = experts.routed * (shape.hidden + 1)
    return (
        Part("mlp.experts", each * experts.routed, routed=True),
        Part("mlp.shared_experts", each * experts.shared),
        Part("mlp.gate", router, is_matrix=False),
    )
