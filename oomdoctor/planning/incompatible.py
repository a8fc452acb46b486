"""Combinations of settings that programs reject, each with the source that says so."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.setup import Setup

_BF16 = (8, 0)
"""The minimum compute capability with bf16: rules/tables/compute_capabilities.csv."""


def incompatible(setup: Setup, capability: tuple[int, ...] = ()) -> frozenset[str]:
    """Return why programs reject the combination on GPUs of this compute capability, if known; empty if they accept it.

    An existing run may be rejected here and continue nevertheless: a change is judged by what it adds.
    """
    return frozenset(_refused(setup, capability))


def _refused(setup: Setup, capability: tuple[int, ...]) -> Iterator[str]:
    layout, packed, training = setup.layout, setup.weights.packed, setup.task == "train"
    if setup.weights.name == "int8" and layout.sharded(3) > 1:
        # "Only 4-bit quantized model can use fsdp+qlora": LLaMA-Factory model/model_utils/quantization.py.
        yield "eight bits are not sharded"
    if training and packed and setup.adapters is None:
        yield "packed weights are not trained"
    if setup.offload_params and packed and layout.engine == "deepspeed":
        # rules/fixes/offload-params.yaml
        yield "DeepSpeed does not offload packed weights"
    if setup.offload_params and packed and capability and capability < _BF16:
        # FSDP moves packed weights that are stored as bf16: docs/source/accelerate/fsdp.md of peft.
        yield "packed weights move as bf16"
    if layout.cards % (layout.tensor * layout.pipeline * layout.context):
        yield "cards are left over"
    if layout.engine == "deepspeed" and (setup.optimizer.paged or setup.optimizer.in_backward):
        # DeepSpeed keeps fp32 weights and gradients of its own, on the GPU or offloaded as a whole: runtime/zero/stage3.py.
        yield "DeepSpeed has its own states"
    if setup.optimizer.in_backward and setup.accumulation > 1:
        # "Gradient accumulation is not supported with optimizer in bwd": torchtune/recipes/full_finetune_single_device.py.
        yield "an update in the backward pass accumulates nothing"
    if training and layout.tensor > 1 and setup.fused_loss:
        # axolotl/integrations/liger/args.py
        yield "a fused loss wants whole rows"
    if training and layout.tensor > 1 and setup.optimizer.bytes_per_param is not None:
        # axolotl/utils/schemas/validation.py
        yield "packed states are not split"
    if setup.offload_activations and setup.checkpointing == "none":
        yield "only the inputs of checkpointed layers are offloaded"
