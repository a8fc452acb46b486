"""Weights that exist a second time while they are used: gathered from other GPUs, unpacked, or cast to 16 bit."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model.placement import card_placement, held
from oomdoctor.memory.model.weights import HALF, SHARDS_ALL, copied_head
from oomdoctor.memory.term import term

_LIVE = 1_000_000_000
"""The maximum number of gathered parameters in DeepSpeed: `stage3_max_live_parameters` of deepspeed/runtime/zero/config.py."""
_UNITS = 2
"""FSDP has the unit in use and the next one gathered: limit_all_gathers of torch/distributed/fsdp/fully_sharded_data_parallel.py."""
_UNPACKING = 3
"""Bytes per value of the matrix that GPTQ is unpacking, beyond its 16-bit form: shifted out as int32, then cut to int8."""
_READY = 2048
"""Tokens for which GPTQ's kernels have a buffer as wide as the widest matrix: EXLLAMA_DEFAULT_MAX_INPUT_LENGTH."""
_FP32 = 4


def working_copies(setup: Setup) -> Term | None:
    """Return what exists alongside the weights themselves while they are used."""
    if setup.layout.sharded(SHARDS_ALL) > 1 or setup.offload_params:
        return _gathered_by_deepspeed(setup) if setup.layout.engine == "deepspeed" else _gathered_by_fsdp(setup)
    form, training = setup.weights, setup.task == "train"
    if form.unpacks:
        return _unpacked(setup)
    if form.keeps_unpacked and training:
        return _kept_unpacked(setup)
    if form.rebuilds:
        return _rebuilt(setup)
    # A trace has autocast's copies.
    if training and setup.traced is None and setup.adapters is None and form.bytes_per_param == _FP32 and not form.packed:
        return _cast(setup)
    return None


def _gathered_by_deepspeed(setup: Setup) -> Term:
    shape = setup.shape
    share = setup.weights.bytes_per_param if setup.weights.packed else HALF
    live = min(setup.layout.live or _LIVE, _text(setup)) * share
    # Its own estimator: 4 bytes per parameter of the largest module (runtime/zero/stage3.py).
    largest = 2 * max(count.largest_layer(shape) * share, count.embedding(shape) * HALF)
    basis = "stage3_max_live_parameters and 4 bytes x the largest module: deepspeed/runtime/zero"
    return term("gathered weights", (live + largest) / setup.layout.tensor, basis, low=0.3, high=1.4)


def _gathered_by_fsdp(setup: Setup) -> Term:
    shape, layout = setup.shape, setup.layout
    if layout.pipeline > 1:
        # Gathering again for every micro-batch would cost too much: torchtitan keeps a stage's layers gathered.
        basis = "the layers of a stage, 16-bit: torchtitan, fsdp_reshard_after_forward"
        return term("gathered weights", _text(setup) * HALF / layout.tensor, basis, low=0.3, high=1.2)
    share = setup.weights.bytes_per_param / HALF if setup.weights.packed else 1.0
    ends = held(setup, 0, count.embedding(shape), count.output(shape))
    size = (_UNITS * count.largest_layer(shape) * share + ends) * HALF / layout.tensor
    basis = "2 units in flight + the root unit, 16-bit: torch/distributed/fsdp, limit_all_gathers"
    return term("gathered weights", size, basis, low=0.7, high=1.2)


def _unpacked(setup: Setup) -> Term:
    largest = max(count.largest_linear(setup.shape), count.embedding(setup.shape) if setup.stack.packs_head else 0)
    return term("unpacked weights", HALF * largest, "one matrix unpacked to 16-bit: bitsandbytes MatMul4Bit", low=0.5, high=2.0)


def _kept_unpacked(setup: Setup) -> Term:
    """Return the matrices that GPTQ unpacks in plain operations, so that autograd keeps them.

    Those of one layer if layers are recomputed, of all of them otherwise.
    """
    shape = setup.shape
    layers = 1.0 if setup.checkpointing == "full" else card_placement(setup).layers
    kept = HALF * count.linears(shape) / shape.layers * layers + _UNPACKING * count.largest_linear(shape)
    basis = "a layer's matrices in 16-bit, kept for the backward pass of their products: auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py"
    return term("unpacked weights", kept, basis, low=0.3, high=1.5)


def _rebuilt(setup: Setup) -> Term:
    """Return matrices that kernels materialize in 16 bit: GPTQ's preallocated ones are for inference; AWQ's only for long inputs."""
    shape = setup.shape
    ready = _READY * max(shape.intermediate, shape.hidden) if setup.weights.keeps_unpacked else 0
    basis = "one matrix in 16-bit: temp_dq, temp_state of auto_gptq/modeling/_utils.py, dequantize_weights_cuda of awq/modules/linear"
    return term("unpacked weights", HALF * (count.largest_linear(shape) + ready), basis, low=0.0, high=2.0)


def _cast(setup: Setup) -> Term:
    size = held(setup, count.linears(setup.shape), head=count.embedding(setup.shape)) * HALF / setup.layout.tensor
    basis = "16-bit copies of fp32 matrices until autocast ends: torch/amp/autocast_mode.py"
    return term("autocast copies", size, basis, low=0.5, high=1.0)


def _text(setup: Setup) -> float:
    """Return the parameters of the language model on this GPU."""
    first, last = count.embedding(setup.shape), count.output(setup.shape)
    return held(setup, count.text(setup.shape) - first - last, first, last or copied_head(setup))
