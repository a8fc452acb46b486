"""Gradients, optimizer states, and the temporary memory of a step."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.placement import card_placement
from oomdoctor.memory.model.trained import TrainedGroup, groups, held_groups
from oomdoctor.memory.model.weights import HALF, SHARDS_ALL, experts_held
from oomdoctor.memory.term import term

_FP32 = 4
_SUB_GROUP = 1_000_000_000
"""The number of parameters that ZeRO-3 steps at a time: `sub_group_size` of deepspeed/runtime/zero/config.py."""
ZERO_BUCKET = 500_000_000
"""Default elements of a bucket: `reduce_bucket_size` of the same file, DeepSpeed 0.14.0:105 and 0.19.8:113."""
_COPIED_BUCKET = 200_000_000


def gradients(setup: Setup) -> Term:
    """Return all gradients at the end of the backward pass."""
    if setup.optimizer.in_backward:
        size = float(count.largest_layer(setup.shape) * HALF)
        return term("gradients", size, "one layer: the optimizer runs inside the backward pass", low=0.8, high=2.0)
    size = sum(group.params * _gradient_width(setup, group) for group in held_groups(setup)) * _experts(setup, 2)
    if setup.adapters is not None and setup.layout.engine == "fsdp1" and setup.stack.flat_gradients:
        size += weights.stored(setup)
    size /= _split(setup, 2) if not _keeps_whole_gradients(setup) else setup.layout.tensor
    if setup.offload_optimizer and setup.layout.engine == "deepspeed":
        # ZeRO-Offload moves gradients to the host bucket by bucket (arXiv 2101.06840).
        size = min(size, bucket(setup))
    return term("gradients", size, "trained parameters x bytes of their type, / ZeRO-2 ranks: arXiv 1910.02054", low=0.9, high=1.1)


def _keeps_whole_gradients(setup: Setup) -> bool:
    """Return whether FSDP keeps whole gradients between the micro-batches of a step.

    It does with no_sync, which accelerate and fabric use by default (GradientAccumulationPlugin.sync_each_batch of
    accelerate/utils/dataclasses.py), and torch pipelines as well (backward_maybe_with_nosync of
    torch/distributed/pipelining/stage.py). FSDP2 modules have no such method, so Accelerator.no_sync does nothing there.
    """
    layout = setup.layout
    leaves_out = layout.engine == "fsdp1" or (layout.engine == "fsdp2" and layout.pipeline > 1)
    return leaves_out and setup.accumulation > 1 and not layout.syncs


def states(setup: Setup) -> Term:
    """Return what the optimizer keeps from step to step."""
    size = sum(group.params * state_width(setup, group) for group in held_groups(setup)) / _split(setup, 1) * _experts(setup, 1)
    if setup.offload_optimizer or setup.optimizer.paged or not card_placement(setup).steps:
        size = 0.0
    return term("optimizer", size, f"{setup.optimizer.name}: {setup.optimizer.source}", low=0.9, high=1.1)


def state_width(setup: Setup, group: TrainedGroup) -> float:
    """Return the bytes of state per trained parameter."""
    optimizer = setup.optimizer
    if setup.layout.engine == "deepspeed" or setup.layout.wide_gradients:
        return optimizer.copy_bytes + (optimizer.states * 4 if optimizer.bytes_per_param is None else optimizer.bytes_per_param)
    return optimizer.states * group.width if optimizer.bytes_per_param is None else optimizer.bytes_per_param


def step_temporary(setup: Setup) -> Term | None:
    """Return the temporary memory of a step: copies of foreach kernels, fp32 gradients of DeepSpeed's partition."""
    if setup.optimizer.in_backward or setup.offload_optimizer or not card_placement(setup).steps:
        return None
    trained = sum(group.params for group in held_groups(setup))
    if setup.layout.engine == "deepspeed":
        partition = trained / _split(setup, 1)
        if setup.layout.stage < 3:
            basis = "fp32 gradients of the own partition: deepspeed/runtime/zero/stage_1_and_2.py, step"
            return term("step", partition * 4, basis, low=0.5, high=1.5)
        # There they replace the 16-bit ones: 18 bytes in all in estimate_zero3_model_states_mem_needs.
        basis = "fp32 for the 16-bit gradients of one parameter group: deepspeed/runtime/zero/stage3.py, step"
        return term("step", min(partition, _SUB_GROUP) * (4 - HALF), basis, low=0.5, high=2.0)
    if setup.layout.wide_gradients and setup.layout.gradient_bytes < _FP32 <= setup.optimizer.copy_bytes:
        # An optimizer with lower-precision copies uses the gradients as they are (use_decoupled_grad).
        basis = "fp32 gradients of the own partition: megatron/core/optimizer/distrib_optimizer.py, copy_group_grads"
        return term("step", trained / _split(setup, 1) * _FP32, basis, low=0.5, high=1.1)
    if not setup.optimizer.foreach_temporary:
        return None
    size = sum(group.params * group.width for group in held_groups(setup)) / _split(setup, 3)
    return term("step", size, "one more copy of the parameters for foreach kernels: torch.optim documentation", low=0.0, high=1.5)


def buckets(setup: Setup) -> Term | None:
    """Return copies of gradients on their way to other GPUs."""
    trained = sum(group.params * _gradient_width(setup, group) for group in held_groups(setup))
    layout = setup.layout
    if layout.engine == "ddp" and layout.data > 1 and not layout.wide_gradients:
        # gradient_as_bucket_view is False by default: torch/nn/parallel/distributed.py.
        return term("buckets", trained / layout.tensor, "DDP keeps a second copy of the gradients in its buckets", low=0.0, high=1.0)
    if layout.engine == "deepspeed" and layout.data > 1:
        return _deepspeed_buckets(setup)
    if layout.engine in ("fsdp1", "fsdp2") and layout.data > 1:
        unit = count.largest_layer(setup.shape) * max(group.width for group in groups(setup))
        return term("buckets", min(2 * unit, trained) / layout.tensor, "the unreduced gradients of two units", low=0.5, high=2.0)
    return None


def keeps_buckets(setup: Setup) -> bool:
    """Return whether the buckets exist between the backward passes too: DDP's do, and those of ZeRO-3."""
    return setup.layout.engine == "ddp" or (setup.layout.engine == "deepspeed" and setup.layout.stage == SHARDS_ALL)


def _deepspeed_buckets(setup: Setup) -> Term:
    """Return one buffer of `reduce_bucket_size` elements, whatever is trained; below stage 3 a second one if communication overlaps."""
    basis = "reduce_bucket_size x 2 bytes, twice with overlap_comm below stage 3: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py"
    layout, size = setup.layout, bucket(setup)
    known, doubles = layout.bucket is not None, layout.overlaps if layout.stage < SHARDS_ALL else False
    most = (2.0 if doubles is None else 1.0) * (1.02 if known else ZERO_BUCKET * HALF / size)
    least = 0.98 if known else min(1.0, _auto_bucket(setup) * HALF / size)
    return term("buckets", size * (2 if doubles else 1), basis, low=least, high=max(1.02, most))


def bucket(setup: Setup) -> float:
    """Return the bytes of one bucket of DeepSpeed.

    From its config, or otherwise `auto` with ZeRO-3, and 2e8 elements below it, between the values in ZeRO-2 configs that people copy
    (`auto`, 2e8, 5e8).
    """
    elements = setup.layout.bucket
    if elements is None:
        elements = _auto_bucket(setup) if setup.layout.stage == SHARDS_ALL else _COPIED_BUCKET
    return float(elements * HALF)


def _auto_bucket(setup: Setup) -> int:
    """Return elements: transformers/integrations/deepspeed.py sets hidden x hidden for `auto`."""
    return setup.shape.hidden**2


def _experts(setup: Setup, stage: int) -> float:
    """Return the fraction of trained parameters on this GPU, if experts are divided and no ZeRO stage shards them anyway."""
    return 1.0 if setup.adapters is not None or setup.layout.sharded(stage) > 1 else experts_held(setup)


def _gradient_width(setup: Setup, group: TrainedGroup) -> float:
    if setup.layout.wide_gradients:
        return setup.layout.gradient_bytes
    return HALF if setup.layout.engine == "deepspeed" else group.width


def _split(setup: Setup, stage: int) -> int:
    return setup.layout.sharded(stage) * setup.layout.tensor
