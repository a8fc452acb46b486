"""What is trained in a model and in which types, according to the settings of a run."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Adapters, FrameworkTraits, Optimizer, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.memory import adapter_targets, known_format, known_optimizer, optimizer_named, weight_format
from oomdoctor.memory.model.gguf import gguf_format
from oomdoctor.setups.building.layout import BYTES
from oomdoctor.setups.weights_said import weights_said

ADAPTED = ("lora", "dora", "loha", "lokr", "oft", "boft")
"""Training methods that add matrices to those of the model; a name contains one of these words (`qlora`, `adalora`)."""
_BESIDE = ("adapter", "prefix", "prompt", "tuning", "ia3", "vera", "fourier", "galore", "miss", "bone", "c3a", "ln")
"""Other methods that train something small alongside the model."""
_GALORE = "galore"
_BLOCKS, _NEW_BLOCKS = 2, 4
"""Layers that freeze tuning trains by default, freeze_trainable_layers of LLaMA-Factory hparams/finetuning_args.py; and new ones of
LLaMA-Pro, which are small compared with the model either way."""
_HALVES = ("bf16", "fp16")
PACKED = {4: "nf4", 8: "int8"}
"""By the number of bits in which weights are loaded."""
_ANY_ADAMW = ("adamw", "adam")
"""Names that leave open which implementation it is."""


def finetuning(settings: RunSettings, traits: FrameworkTraits) -> str:
    """Return what is trained, in lowercase: `full`, `lora`, `qlora`, ..."""
    return (settings.finetuning or traits.finetuning).lower()


def loads_packed(settings: RunSettings) -> bool:
    """Return whether the frozen weights are loaded packed."""
    told = weight_format(settings.weight_format or "")
    if told is not None:
        return told.packed
    return positive(settings.load_bits) in PACKED or "qlora" in (settings.finetuning or "").lower()


def packs_experts(settings: RunSettings) -> bool | None:
    """Return whether routed experts are packed with the rest; None if that depends on the program.

    Naming the format of the weights on the GPU includes them.
    """
    return True if settings.packs_experts is None and settings.weight_format else settings.packs_experts


def adapters(settings: RunSettings, traits: FrameworkTraits, shape: Shape) -> Adapters | None:
    """Return what is trained alongside frozen weights; None if all weights are trained."""
    kind = finetuning(settings, traits)
    if "pro" in kind.split("-") or "llamapro" in kind or "freeze" in kind:
        blocks = _BLOCKS if "freeze" in kind else _NEW_BLOCKS
        return Adapters(rank=0, targets=frozenset(), blocks=min(blocks, shape.layers))
    if kind.startswith("full") or not any(word in kind for word in (*ADAPTED, *_BESIDE)):
        return None
    targets = _targets(settings, traits)
    copies = adapter_targets(settings.modules_to_save or "") & {"embed", "head"} | targets & {"embed"}
    return Adapters(
        rank=positive(settings.lora_rank) or traits.rank,
        targets=targets - copies if any(word in kind for word in ADAPTED) else frozenset(),
        full=copies,
        scales_outputs="adapter_v2" in kind or "ia3" in kind,
        count=positive(settings.trained_parameters),
    )


def _targets(settings: RunSettings, traits: FrameworkTraits) -> frozenset[str]:
    targets = adapter_targets(settings.lora_targets or "") or adapter_targets(traits.lora_targets)
    targets |= adapter_targets("mlp") if settings.adapts_mlp else frozenset()
    return targets | (adapter_targets("head") if settings.adapts_head else frozenset())


def weights(settings: RunSettings, traits: FrameworkTraits, shape: Shape, trained: Adapters | None) -> WeightFormat:
    """Return the weight format of a run that trains.

    `bf16: true` alone means autocast over weights of the type in which a Trainer loads or casts them.
    """
    told = weight_format(settings.weight_format or "")
    bits = positive(settings.load_bits)
    if told is not None:
        return told
    if bits in PACKED:
        return known_format(PACKED[bits])
    if trained is not None and (stored := _packed_checkpoint(settings, shape)) is not None:
        return stored
    if bits is None and "qlora" in finetuning(settings, traits):
        return known_format(PACKED[4])
    kept, stated = traits.full_weights if trained is None else traits.frozen_weights, (settings.precision or "").lower()
    return known_format(stated if kept in _HALVES and stated in _HALVES else kept)


def _packed_checkpoint(settings: RunSettings, shape: Shape) -> WeightFormat | None:
    """Return the packed format given by the model's name or config, on which adapters can be trained."""
    stored = weights_said(shape, settings.model)
    return stored if stored is not None and stored.packed and (stored.unpacks or stored.rebuilds) else None


def loaded_weights(settings: RunSettings, shape: Shape) -> WeightFormat:
    """Return the weight format of a run that trains nothing."""
    told = (settings.weight_format or "").lower()
    known = gguf_format(shape, told) or weight_format(told) or weight_format((settings.precision or "").lower())
    return known or weights_said(shape, settings.quantization, settings.model) or known_format("bf16")


def optimizer(settings: RunSettings, traits: FrameworkTraits) -> Optimizer:
    """Return the optimizer with the types that the config gives its weight copy and its moments."""
    default = known_optimizer(traits.optimizer)
    if settings.optimizer is None:
        chosen = known_optimizer(_GALORE) if _GALORE in finetuning(settings, traits) else default
    elif settings.optimizer.lower() in _ANY_ADAMW and default.name == "adamw-fused":
        chosen = default
    else:
        chosen = optimizer_named(settings.optimizer) or default
    chosen = replace(chosen, in_backward=True) if settings.optimizer_in_backward is True else chosen
    return _as_stored(chosen, settings)


def _as_stored(chosen: Optimizer, settings: RunSettings) -> Optimizer:
    types = [settings.first_moment, settings.second_moment]
    if any(types) and chosen.bytes_per_param is None:
        chosen = replace(chosen, bytes_per_param=sum(BYTES.get(name or "fp32", 4) for name in types))
    return replace(chosen, copy_bytes=BYTES[settings.main_weights]) if settings.main_weights in BYTES else chosen
