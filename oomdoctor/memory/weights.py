"""The weights on one card: their format, what stays 16-bit, how they are spread, and what is gathered or unpacked to use them."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.estimate import Setup, Term
from oomdoctor.memory import parameters as count
from oomdoctor.memory.part import held, part
from oomdoctor.memory.term import term

HALF = 2
"""Bytes of a 16-bit value."""
SHARDS_ALL = 3
"""The ZeRO stage that shards weights too; FSDP does."""
_LIVE = 1_000_000_000
"""DeepSpeed keeps so many gathered parameters at most: `stage3_max_live_parameters` of deepspeed/runtime/zero/config.py."""
_UNITS = 2
"""FSDP has the unit in use and the next one gathered: limit_all_gathers of torch/distributed/fsdp/fully_sharded_data_parallel.py."""

_UNPACKING = 3
"""Bytes for each value of the matrix that GPTQ is unpacking, beyond its 16-bit form: shifted out as int32, then cut to int8."""
_READY = 2048
"""Tokens for which GPTQ's kernels have a buffer as wide as the widest matrix: EXLLAMA_DEFAULT_MAX_INPUT_LENGTH."""


def weights(setup: Setup) -> Term:
    """The share of the weights that lies on this card."""
    layout = setup.layout
    split = layout.tensor * layout.sharded(SHARDS_ALL)
    first, last = embedding(setup), head(setup)
    size = 0.0 if setup.offload_params else held(setup, stored(setup) - first - last, first, last or copied_head(setup) * _wide(setup))
    low, high = 0.98, 1.02
    if setup.weights.unpacks and setup.task == "train" and size:
        # Not every script calls it, and some do where most don't.
        cast = HALF * _kept_wide(setup) / stored(setup)
        low, high = (low - cast, high) if is_upcast(setup) else (low, high + cast)
    return term(
        "weights",
        size / split,
        "parameters x bytes of the format, / tensor and ZeRO-3 or FSDP ranks: rules/tables/weight_formats.csv",
        low=low,
        high=high,
    )


def reference(setup: Setup) -> Term | None:
    """A model to compare with. With adapters it is the base without them; else a copy, in 16 bit, spread like the model itself."""
    if not setup.reference or setup.adapters is not None:
        return None
    own = weights(replace(setup, weights=replace(setup.weights, bytes_per_param=min(HALF, setup.weights.bytes_per_param))))
    return term(
        "reference", own.bytes, "a second model that is not trained: trl/models/utils.py, create_reference_model", low=0.5, high=2.0
    )


def is_upcast(setup: Setup) -> bool:
    """Whether what is not packed is fp32, and what flows between the layers too: prepare_model_for_kbit_training of peft/utils/other.py.

    It is left out where packed weights are sharded: one type is needed for flat tensors.
    """
    return setup.stack.upcasts and setup.weights.unpacks and setup.task == "train" and setup.layout.sharded(SHARDS_ALL) == 1


def stored(setup: Setup) -> float:
    """Bytes of the whole model in its format."""
    shape, form = setup.shape, setup.weights
    everything = count.total(shape) + own_head(setup)
    if not form.packed:
        return everything * form.bytes_per_param
    wide = _kept_wide(setup)
    return (everything - wide) * form.bytes_per_param + wide * _wide(setup)


def _kept_wide(setup: Setup) -> int:
    """The parameters that a packed format leaves in 16 bit: embedding, head, norms, and the tower where it is not packed."""
    shape, form, stack = setup.shape, setup.weights, setup.stack
    everything = count.total(shape) + own_head(setup)
    packed = count.linears(shape) + (shape.vocab * shape.hidden if stack.packs_head and (not shape.tied or stack.unties) else 0)
    return everything - packed - (shape.vision.params if shape.vision and form.packs_tower else 0)


def own_head(setup: Setup) -> int:
    """The parameters of an output projection that a tied model gets here nevertheless."""
    return count.embedding(setup.shape) if setup.shape.tied and (setup.stack.unties or setup.weights.unties) else 0


def embedding(setup: Setup) -> float:
    """Bytes of the embedding, which no format packs."""
    return count.embedding(setup.shape) * _wide(setup)


def head(setup: Setup) -> float:
    """Bytes of the output projection; 0 where it is the embedding."""
    width = setup.weights.bytes_per_param if setup.stack.packs_head else _wide(setup)
    return (count.output(setup.shape) or own_head(setup)) * width


def copied_head(setup: Setup) -> int:
    """The parameters of a tied output projection that lies on another card than the embedding and has to be a copy of it."""
    own = part(setup)
    return count.embedding(setup.shape) if own.scores and not own.embeds and not head(setup) else 0


def _wide(setup: Setup) -> float:
    """Bytes of a parameter that is not packed."""
    return setup.weights.bytes_per_param if not setup.weights.packed else 2 * HALF if is_upcast(setup) else HALF


def working_copies(setup: Setup) -> Term | None:
    """Weights that exist a second time while they are used: gathered, unpacked or cast to 16 bit."""
    shape, layout = setup.shape, setup.layout
    layer = count.largest_layer(shape)
    if layout.sharded(SHARDS_ALL) > 1 or setup.offload_params:
        if layout.engine == "deepspeed":
            share = setup.weights.bytes_per_param if setup.weights.packed else HALF
            live = min(layout.live or _LIVE, _text(setup)) * share
            # Its own estimator: 4 bytes for each parameter of the largest module (runtime/zero/stage3.py).
            largest = 2 * max(layer * share, count.embedding(shape) * HALF)
            return term(
                "gathered weights",
                (live + largest) / layout.tensor,
                "stage3_max_live_parameters and 4 bytes x the largest module: deepspeed/runtime/zero",
                low=0.3,
                high=1.4,
            )
        if layout.pipeline > 1:
            # Gathering again for every micro batch would cost too much: torchtitan keeps a stage's layers gathered.
            stage = _text(setup) * HALF / layout.tensor
            return term(
                "gathered weights", stage, "the layers of a stage, 16-bit: torchtitan, fsdp_reshard_after_forward", low=0.3, high=1.2
            )
        share = setup.weights.bytes_per_param / HALF if setup.weights.packed else 1.0
        ends = held(setup, 0, count.embedding(shape), count.output(shape))
        gathered = (_UNITS * layer * share + ends) * HALF / layout.tensor
        return term(
            "gathered weights",
            gathered,
            "2 units in flight + the root unit, 16-bit: torch/distributed/fsdp, limit_all_gathers",
            low=0.7,
            high=1.2,
        )
    if setup.weights.unpacks:
        largest = max(count.largest_linear(shape), count.embedding(shape) if setup.stack.packs_head else 0)
        return term("unpacked weights", HALF * largest, "one matrix unpacked to 16 bit: bitsandbytes MatMul4Bit", low=0.5, high=2.0)
    if setup.weights.keeps_unpacked and setup.task == "train":
        layers = 1 if setup.checkpointing == "full" else shape.layers
        kept = HALF * count.linears(shape) / shape.layers * layers + _UNPACKING * count.largest_linear(shape)
        basis = "a layer's matrices in 16 bit, kept for their product's backward pass: auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py"
        return term("unpacked weights", kept, basis, low=0.3, high=1.5)
    if setup.weights.rebuilds:
        # What GPTQ's kernels keep ready is for inference; AWQ's write a matrix for long inputs only.
        ready = _READY * max(shape.intermediate, shape.hidden) if setup.weights.keeps_unpacked else 0
        basis = "one matrix in 16 bit: temp_dq, temp_state of auto_gptq/modeling/_utils.py, dequantize_weights_cuda of awq/modules/linear"
        return term("unpacked weights", HALF * (count.largest_linear(shape) + ready), basis, low=0.0, high=2.0)
    if setup.traced is not None:
        return None  # The trace has autocast's copies.
    if setup.task == "train" and setup.adapters is None and setup.weights.bytes_per_param == 4 and not setup.weights.packed:
        cast = held(setup, count.linears(shape), head=count.embedding(shape)) * HALF / layout.tensor
        return term(
            "autocast copies", cast, "16-bit copies of fp32 matrices until autocast ends: torch/amp/autocast_mode.py", low=0.5, high=1.0
        )
    return None


def _text(setup: Setup) -> float:
    """The parameters of the language model on this card."""
    first, last = count.embedding(setup.shape), count.output(setup.shape)
    return held(setup, count.text(setup.shape) - first - last, first, last or copied_head(setup))
