"""While a checkpoint is written: what is gathered on the GPU, and what the host uses."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.trained import groups
from oomdoctor.memory.optimizer import state_width
from oomdoctor.memory.term import term


def saving(setup: Setup) -> Term | None:
    """Return what a GPU gathers for a full checkpoint; None if every GPU writes its own piece, or has everything already."""
    shape, layout = setup.shape, setup.layout
    if layout.sharded(weights.SHARDS_ALL) == 1 or setup.saves_whole is False:
        return None
    if layout.engine == "deepspeed":
        size = max(count.largest_linear(shape), count.embedding(shape)) * weights.HALF
        basis = "one module gathered and copied to the host: deepspeed/runtime/engine.py, _zero3_consolidated_16bit_state_dict"
        return term("saving", size, basis, low=0.5, high=2.0)
    unit = max(count.largest_layer(shape), count.embedding(shape) + count.output(shape)) * setup.weights.bytes_per_param
    # accelerate moves each unit to the host (offload_to_cpu); a custom program that does not has the whole model on the GPU.
    most = max(1.2, weights.stored(setup) / unit)
    return term("saving", unit, "one unit gathered: FULL_STATE_DICT of torch/distributed/fsdp/_state_dict_utils.py", low=0.5, high=most)


def merging(setup: Setup) -> Term | None:
    """Return what merging adapters into their base uses: the product of one pair, as large as its matrix, and the matrix unpacked."""
    adapters = setup.adapters
    if not setup.merges or adapters is None or not adapters.targets:
        return None
    unpacked = weights.HALF if setup.weights.unpacks else 0
    size = count.largest_linear(setup.shape) * (setup.stack.adapter_bytes + weights.HALF + unpacked)
    return term("saving", size, "the product of one pair of adapters: get_delta_weight of peft/tuners/lora/layer.py", low=0.5, high=1.5)


def host(setup: Setup) -> int:
    """Return the host memory of the process that writes a full checkpoint: the weights, and with FSDP the optimizer states."""
    if saving(setup) is None:
        return 0
    if setup.layout.engine == "deepspeed":
        return weights.HALF * count.total(setup.shape)
    states = sum(group.params * state_width(setup, group) for group in groups(setup))
    return round(weights.stored(setup) + states)
