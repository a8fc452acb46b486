"""The weights on one GPU: their format, what stays 16-bit, and how they are distributed."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.placement import card_placement, held
from oomdoctor.memory.term import term

HALF = 2
"""Bytes of a 16-bit value."""
SHARDS_ALL = 3
"""The ZeRO stage that shards weights too, as does FSDP."""


def weights(setup: Setup) -> Term:
    """Return the weights on this GPU."""
    layout = setup.layout
    split = layout.tensor * layout.sharded(SHARDS_ALL)
    first, last = embedding(setup), head(setup)
    size = 0.0 if setup.offload_params else held(setup, stored(setup) - first - last, first, last or copied_head(setup) * _wide(setup))
    size *= experts_held(setup)
    blocks = 0 if setup.adapters is None else setup.adapters.blocks
    if setup.stack.full_weights == "fp32" and setup.weights.bytes_per_param == HALF:
        # Trained layers among frozen ones have the type of what is trained.
        size += HALF * blocks * count.largest_layer(setup.shape)
    low, high = 0.98, 1.02
    if setup.weights.unpacks and setup.task == "train" and size:
        # Not every script calls it, and some do where most don't; those that encounter experts left wide omit it.
        cast = HALF * (_kept_wide(setup) - (0 if is_upcast(setup) else _wide_experts(setup))) / stored(setup)
        low, high = (low - cast, high) if is_upcast(setup) else (low, high + cast)
    return term(
        "weights",
        size / split,
        "parameters x bytes of the format, / tensor and ZeRO-3 or FSDP ranks: rules/tables/weight_formats.csv",
        low=low,
        high=high,
    )


def experts_held(setup: Setup) -> float:
    """Return the fraction of the model on a GPU if expert parallel GPUs divide the routed experts.

    Whole experts are on one GPU, so tensor parallel GPUs do not divide them again (expert_tensor_parallel_size of Megatron is 1);
    what is sharded is the same either way: among all GPUs, or among those that have the same experts.
    """
    layout = setup.layout
    if layout.expert == 1 or layout.sharded(SHARDS_ALL) > 1:
        return 1.0
    share = count.routed(setup.shape) / count.total(setup.shape)
    return 1.0 - share + share * min(1.0, layout.tensor / layout.expert)


def reference(setup: Setup) -> Term | None:
    """Return the reference model: with adapters the base without them, otherwise a copy, in the type of frozen weights."""
    if not setup.reference or setup.adapters is not None:
        return None
    widest = 2 * HALF if setup.stack.frozen_weights == "fp32" else HALF
    copy = weights(replace(setup, weights=replace(setup.weights, bytes_per_param=min(widest, setup.weights.bytes_per_param))))
    return term(
        "reference", copy.bytes, "a second model that is not trained: trl/models/utils.py, create_reference_model", low=0.5, high=2.0
    )


def is_upcast(setup: Setup) -> bool:
    """Return whether what is not packed is fp32, and the hidden states too: prepare_model_for_kbit_training of peft/utils/other.py.

    It is omitted if packed weights are sharded: flat tensors need a single type.
    """
    return setup.stack.upcasts and setup.weights.unpacks and setup.task == "train" and setup.layout.sharded(SHARDS_ALL) == 1


def stored(setup: Setup) -> float:
    """Return the bytes of the whole model in its format."""
    shape, form = setup.shape, setup.weights
    everything = count.total(shape) + own_head(setup)
    if not form.packed:
        return everything * form.bytes_per_param + at_ends(setup) * (_wide(setup) - form.bytes_per_param)
    wide = _kept_wide(setup)
    if form.kept_wide is not None:
        ends = count.embedding(shape) + (count.output(shape) or own_head(setup))
        return (everything - ends - wide) * form.bytes_per_param + wide * _wide(setup) + embedding(setup) + head(setup)
    return (everything - wide) * form.bytes_per_param + wide * _wide(setup)


def proposing_layer(setup: Setup) -> float:
    """Return the bytes of the layer that drafts tokens: one like the last, and a projection of two hidden states (deepseek_mtp.py).

    It shares embedding and output projection. Packed 4-bit checkpoints leave it in 16 bit, according to nvidia's configs (`mtp*`).
    """
    shape, form = setup.shape, setup.weights
    size = count.layer(shape, shape.layers - 1) + 2 * shape.hidden**2
    return size * (form.bytes_per_param if form.packed and form.bytes_per_param >= 1 else HALF)


def _kept_wide(setup: Setup) -> int:
    """Return the parameters that a packed format leaves in 16 bit: embedding, head, norms, and any unpacked tower and experts."""
    shape, form, stack = setup.shape, setup.weights, setup.stack
    if form.kept_wide is not None:
        return form.kept_wide + count.total(shape) - count.embedding(shape) - count.output(shape) - layers_of(shape)
    everything = count.total(shape) + own_head(setup)
    packed = count.linears(shape) + (shape.vocab * shape.hidden if stack.packs_head and (not shape.tied or stack.unties) else 0)
    return everything - packed + _wide_experts(setup) - (shape.vision.params if shape.vision and form.packs_tower else 0)


def _wide_experts(setup: Setup) -> int:
    """Return the parameters of routed experts that are not packed."""
    return count.routed(setup.shape) if setup.stack.wide_experts and has_experts_beside(setup) else 0


def has_experts_beside(setup: Setup) -> bool:
    """Return whether bitsandbytes packs a model that has routed experts, which it may leave out."""
    return setup.weights.unpacks and setup.weights.kept_wide is None and count.routed(setup.shape) > 0


def layers_of(shape: Shape) -> int:
    """Return the parameters of all layers."""
    return count.text(shape) - shape.extra - count.embedding(shape) - count.output(shape) - count.positions(shape) - count.final_norm(shape)


def own_head(setup: Setup) -> int:
    """Return the parameters of an output projection that a tied model nevertheless gets here."""
    return count.embedding(setup.shape) if setup.shape.tied and (setup.stack.unties or setup.weights.unties) else 0


def embedding(setup: Setup) -> float:
    """Return the bytes of the embedding, which no format but GGUF packs."""
    form = setup.weights
    if form.kept_wide is not None:
        return count.embedding(setup.shape) * form.embedding_bytes
    return count.embedding(setup.shape) * _wide(setup)


def head(setup: Setup) -> float:
    """Return the bytes of the output projection; 0 if it is the embedding."""
    form = setup.weights
    width = form.bytes_per_param if setup.stack.packs_head else _wide(setup) if form.head_bytes is None else form.head_bytes
    return (count.output(setup.shape) or own_head(setup)) * width


def copied_head(setup: Setup) -> int:
    """Return the parameters of a tied output projection that must be a copy because the embedding is on another GPU."""
    placement = card_placement(setup)
    return count.embedding(setup.shape) if placement.scores and not placement.embeds and not head(setup) else 0


def _wide(setup: Setup) -> float:
    """Return the bytes per parameter that is not packed."""
    if has_wide_ends(setup):
        return 2 * HALF
    return setup.weights.bytes_per_param if not setup.weights.packed else 2 * HALF if is_upcast(setup) else HALF


def has_wide_ends(setup: Setup) -> bool:
    """Return whether embedding and output projection are trained in fp32 alongside layers in 16 bit."""
    return setup.stack.wide_ends and setup.task == "train" and setup.adapters is None and not setup.weights.packed


def at_ends(setup: Setup) -> int:
    """Return the parameters of embedding and output projection."""
    return count.embedding(setup.shape) + (count.output(setup.shape) or own_head(setup))
