"""While a model is loaded: what a GPU uses in addition to its weights, and what the host uses."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.term import term

_FILE = 5_000_000_000
"""Bytes of one checkpoint file: `max_shard_size` of transformers/modeling_utils.py before version 5."""
_CARDS_OF_A_MACHINE = 8


def loading(setup: Setup) -> Term | None:
    """Return what is temporarily on the GPU: a matrix before it is packed, or a unit before it is sharded."""
    shape, layout = setup.shape, setup.layout
    if setup.weights.unpacks:
        packed = weights.HALF * count.largest_linear(shape)
        # Version 5 reads several matrices ahead of the one that it packs.
        return term("loading", packed, "one 16-bit matrix until it is packed: transformers/integrations/bitsandbytes.py", low=0.5, high=4.0)
    if layout.sharded(weights.SHARDS_ALL) == 1:
        return None
    unit = max(count.largest_layer(shape), count.embedding(shape) + count.output(shape))
    if layout.engine == "deepspeed":
        module = max(count.largest_linear(shape), count.embedding(shape)) * weights.HALF
        return term("loading", module, "a module gathered to be filled: transformers/integrations/deepspeed.py", low=0.5, high=2.0)
    size = unit * setup.weights.bytes_per_param
    whole = weights.stored(setup) * (1 - 1 / layout.data)
    # Without meta tensors the whole model may be on the GPU before the first unit is sharded.
    most = 1.2 if layout.meta_init else max(1.2, whole / size)
    basis = "the largest unit before it is sharded: torch/distributed/fsdp/_init_utils.py"
    return term("loading", size, basis, low=0.5, high=most)


def host(setup: Setup) -> int:
    """Return the bytes of host memory that the processes of one machine use during loading."""
    layout = setup.layout
    processes = 1 if layout.engine == "device_map" else min(layout.cards, _CARDS_OF_A_MACHINE)
    whole = weights.stored(setup)
    file = min(whole, _FILE)
    if setup.weights.packed or layout.engine == "device_map":
        return round(processes * file)
    if layout.engine == "deepspeed" and layout.stage == weights.SHARDS_ALL:
        # The first process reads, the others wait for their pieces.
        return round(file)
    if layout.engine in ("fsdp1", "fsdp2") and layout.meta_init is not False:
        # fsdp_cpu_ram_efficient_loading: one process holds the model, the others have meta tensors (accelerate/utils/dataclasses.py).
        return round(whole)
    return round(processes * whole)
