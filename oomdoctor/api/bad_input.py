"""What no run has: settings that exclude each other, meaningless names, absurd sizes. Each error is one line."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.settings import RunSettings, Scalar, positive
from oomdoctor.case.shape import Shape
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.tables.likeness import did_you_mean
from oomdoctor.knowledge.tables.memory import adapter_targets, target_names, weight_format, weight_format_names
from oomdoctor.setups.strategy import STRATEGIES, is_strategy
from oomdoctor.setups.weights_said import weights_said

_ANY: tuple[Scalar, ...] = ()
_EXCLUDED = (
    (("finetuning", ("full",)), ("lora_rank", _ANY), "finetuning lora, qlora or dora, or no rank"),
    (("finetuning", ("full",)), ("load_bits", (4, 8)), "finetuning qlora or lora, or load_bits 16"),
    (("finetuning", ("qlora",)), ("load_bits", (16,)), "finetuning lora, or load_bits 4 or 8"),
)
"""Two settings with values that no run combines, and what to use; without values, any value is meant."""
OF_TRAINING = (
    "finetuning", "lora_rank", "lora_targets", "optimizer", "accumulation", "gradient_checkpointing", "packing", "fused_cross_entropy",
    "zero_stage",
)  # fmt: skip
"""Settings that do not apply to a server."""
_BEYOND = 64
"""A length this many times what a model was made for is a mistake: YaRN and LongRoPE stretch it 4 to 32 times (arXiv 2309.00071,
2402.13753)."""
_FORMATS = ("bf16", "nf4", "q4_k_m")
_EVERY = ("all", "default", "linear")


def check_together(values: Mapping[str, Scalar], *, serve: bool) -> None:
    """Raise UsageError if the given settings cannot be combined."""
    for first, second, instead in _EXCLUDED:
        if all(values.get(name) is not None and (not wrong or values[name] in wrong) for name, wrong in (first, second)):
            told = " and ".join(f"{name} {values[name]!r}" for name, _ in (first, second))
            raise UsageError(f"settings: {told} are mutually exclusive; use {instead}")
    if values.get("zero_stage") and "fsdp" in str(values.get("strategy", "")).lower():
        stage, strategy = values["zero_stage"], values["strategy"]
        raise UsageError(
            f"settings: zero_stage {stage} and strategy {strategy!r} are mutually exclusive; either DeepSpeed or FSDP shards a run"
        )
    of_training = next((name for name in OF_TRAINING if serve and values.get(name) is not None), None)
    if of_training is not None:
        raise UsageError(f"settings: {of_training} applies to training, and a server does not train; leave it out, or do not serve")
    strategy = values.get("strategy")
    if isinstance(strategy, str) and not is_strategy(strategy):
        raise UsageError(f"settings: strategy {strategy!r} is not known{did_you_mean(strategy, STRATEGIES) or _among(STRATEGIES)}")
    targets = values.get("lora_targets")
    if isinstance(targets, str) and not adapter_targets(targets) and not any(word in targets.lower() for word in _EVERY):
        raise UsageError(f"settings: lora_targets {targets!r} names no layer{did_you_mean(targets, target_names())}")


def check_sizes(settings: RunSettings, shape: Shape) -> None:
    """Raise UsageError if a size is absurd for this model, or the format of its weights is unknown."""
    length, rank = positive(settings.sequence_length), positive(settings.lora_rank)
    longest = shape.longest or 0
    if length is not None and longest and length > _BEYOND * longest:
        near = ", ".join(f"{size:,}" for size in (longest, 2 * longest, 4 * longest))
        raise UsageError(f"length {length:,} is {length // longest:,} times the limit of {shape.name}; the nearest: {near}")
    if rank is not None and rank > shape.hidden:
        raise UsageError(f"rank {rank:,} exceeds the width of {shape.name} ({shape.hidden:,}); usual values: 8, 16, 64")
    named = settings.weight_format
    if named is not None and weight_format(named) is None and weights_said(shape, named) is None:
        meant = did_you_mean(named, weight_format_names()) or _among(_FORMATS)
        raise UsageError(f"weights {named!r} is not a known format{meant}")


def _among(known: tuple[str, ...]) -> str:
    return f"; use one such as {', '.join(known[:3])}"
