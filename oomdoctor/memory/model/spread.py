"""What each tensor parallel GPU has in full, and copies that a server makes of weights.

Sources: ReplicatedLinear in vllm/model_executor/models/deepseek_v2.py and vllm/models/deepseek_v4/attention.py, the router of every
mixture there; W_UK_T and W_UV in vllm/model_executor/layers/attention/mla_attention.py, process_weights_after_loading; copies of the
attention in sglang/srt/layers/dp_attention.py and vocab_parallel_embedding.py.
"""

from __future__ import annotations

from functools import lru_cache

from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory.model.parts import layer_parts

_HALF = 2
_WHOLE = frozenset(
    {
        "self_attn.q_a_proj",
        "self_attn.kv_a_proj_with_mqa",
        "self_attn.kv_proj",
        "self_attn.compressor",
        "self_attn.indexer",
        "self_attn.indexer.wq_b",
        "self_attn.indexer.wk",
        "self_attn.indexer.weights_proj",
        "mlp.latent_proj",
        "mlp.gate",
        "norms",
    }
)
"""Parts of a layer that are not divided among tensor parallel GPUs."""
_UNPACKED = "self_attn.kv_b_proj"
"""Latent attention splits it into two matrices in 16 bit, and keeps the packed one."""
_SHARED = frozenset({"self_attn.k_proj", "self_attn.v_proj"})
_ATTENTION = ("self_attn.", "linear_attn.")


def beside_a_share(setup: Setup) -> float:
    """Return the bytes that a tensor parallel GPU has in addition to its even share of the weights."""
    layout, shape, form = setup.layout, setup.shape, setup.weights
    tensor, attends = layout.tensor, layout.tensor / layout.replicas
    whole, heads, unpacked, attention = _counted(shape)
    width = form.attention_bytes or (form.bytes_per_param if form.packed else _HALF)
    few = max(1 / shape.kv_heads, 1 / attends) - 1 / tensor
    size = (whole[0] * width + whole[1] * _HALF) * (1 - 1 / tensor) + heads * width * few
    if form.packed and width != _HALF:
        size += unpacked * _HALF / attends
    if layout.replicas > 1:
        # Each copy of the attention has its own GPUs, and every GPU the whole embedding.
        size += attention * width * (1 / attends - 1 / tensor) + shape.vocab * shape.hidden * _HALF * (1 - 1 / tensor)
    return size / layout.pipeline


@lru_cache(maxsize=256)
def _counted(shape: Shape) -> tuple[tuple[int, int], int, int, int]:
    """Return the parameters that every GPU has (matrices, the rest), of key and value heads, of what is unpacked, of the rest."""
    parts = [part for layer in layer_parts(shape) for part in layer]
    whole = [part for part in parts if part.name in _WHOLE]
    matrices = sum(part.size for part in whole if part.is_matrix)
    heads = sum(part.size for part in parts if part.name in _SHARED)
    unpacked = sum(part.size for part in parts if part.name == _UNPACKED)
    attention = sum(part.size for part in parts if part.name.startswith(_ATTENTION) and part.is_matrix and part.name not in _WHOLE)
    return (matrices, sum(part.size for part in whole) - matrices), heads, unpacked, attention - heads
