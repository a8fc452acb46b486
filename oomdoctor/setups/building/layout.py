"""How a run is distributed across GPUs, according to its settings."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Engine, FrameworkTraits, Layout
from oomdoctor.case.shape import Shape
from oomdoctor.memory.model.weights import SHARDS_ALL
from oomdoctor.memory.optimizer import ZERO_BUCKET
from oomdoctor.setups.strategy import layout_from_strategy

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "remainder": 2}
"""Bytes per value of a type, by the names in settings; `remainder` is the 16 bits that bf16 lacks."""
_STAGE = 2
"""ZeRO stage of a DeepSpeed file if only its name is known and does not give one."""


def run_layout(settings: RunSettings, shape: Shape, cards: int) -> Layout:
    """Return how a run is distributed across this many GPUs."""
    engine, stage, spread = _engine(settings, cards)
    deepspeed = engine == "deepspeed"
    return replace(
        spread,
        engine=engine,
        stage=stage,
        tensor=positive(settings.tensor_parallel) or spread.tensor,
        pipeline=positive(settings.pipeline_parallel) or spread.pipeline,
        context=positive(settings.context_parallel) or spread.context,
        expert=positive(settings.expert_parallel) or spread.expert,
        bucket=_bucket(settings, shape) if deepspeed else None,
        overlaps=_overlaps(settings, stage) if deepspeed else None,
        live=positive(settings.zero_live),
        syncs=settings.syncs_gradients is True,
        meta_init=settings.fsdp_meta_init,
        copies=positive(settings.sharded_copies) or 1,
        sequence_parallel=settings.sequence_parallel is not False,
    )


def _engine(settings: RunSettings, cards: int) -> tuple[Engine, int, Layout]:
    """Return what distributes the run, its stage, and what else the strategy text says."""
    spread = layout_from_strategy(settings.strategy or "", cards)
    stage = settings.zero_stage and positive(settings.zero_stage)
    if stage is not None or settings.zero_file:
        return "deepspeed", _STAGE if stage is None else min(3, stage), spread
    if settings.fsdp:
        return ("fsdp2" if settings.fsdp_version == 2 else "fsdp1"), 3, spread
    return spread.engine, spread.stage, spread


def _bucket(settings: RunSettings, shape: Shape) -> int | None:
    """Return the elements of ZeRO's bucket: from its file, or otherwise DeepSpeed's default; None if a file is named but not available."""
    if settings.zero_bucket_auto is True:
        return shape.hidden**2
    return positive(settings.zero_bucket) or (ZERO_BUCKET if settings.zero_file is None else None)


def _overlaps(settings: RunSettings, stage: int) -> bool | None:
    """Return whether ZeRO overlaps communication: overlap_comm_valid of deepspeed/runtime/zero/config.py, if the file says nothing."""
    is_told = settings.zero_overlap is not None or settings.zero_file is not None
    return settings.zero_overlap if is_told else stage == SHARDS_ALL


def sharded_by_default(layout: Layout, settings: RunSettings, traits: FrameworkTraits) -> Layout:
    """Return the layout of a program that shards across all GPUs with FSDP by default; any other stays as it is."""
    is_open = traits.shards and layout.engine == "ddp" and settings.fsdp is not False and settings.strategy is None
    return replace(layout, engine="fsdp2", stage=SHARDS_ALL) if is_open else layout


def as_megatron(layout: Layout, settings: RunSettings) -> Layout:
    """Return the layout with gradients in their own type, and states divided by its distributed optimizer if that is on.

    By default bf16 is summed in fp32 and fp16 as it is: megatron/training/arguments.py:1171 to 1194 of core_v0.19.0. Without
    --sequence-parallel each GPU has complete hidden states and norms.
    """
    summed = settings.main_gradients or ("fp16" if settings.precision == "fp16" else "fp32")
    return replace(
        layout,
        wide_gradients=True,
        gradient_bytes=BYTES.get(summed, 4),
        sequence_parallel=settings.sequence_parallel is True,
        stage=max(layout.stage, 1) if settings.shards_states is True else layout.stage,
    )


def batch(settings: RunSettings, traits: FrameworkTraits, layout: Layout, *, training: bool) -> int:
    """Return the samples of one forward pass on a GPU.

    A pipeline cuts the batch of a rank into pieces (torchtitan); Megatron's micro-batch is already one piece.
    """
    pieces = 1 if layout.wide_gradients or not training else layout.pipeline
    return max(1, (positive(settings.micro_batch) or (traits.batch if training else 1)) // pieces)


def accumulation(settings: RunSettings, traits: FrameworkTraits, layout: Layout) -> int:
    """Return the micro-batches per update: as given, or otherwise the number that makes up the samples of an update."""
    told, samples, size = positive(settings.accumulation), positive(settings.global_batch), positive(settings.micro_batch)
    if not told and samples and size:
        told = max(1, samples // (size * max(1, layout.data // layout.context)))
    return max(told or (2 if traits.accumulates else 1), layout.pipeline)
