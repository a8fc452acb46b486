"""A run as described by its settings, as a setup; what is not given is taken from defaults and named.

Every entry point uses this: options, config files, lines of JSON, the library, the page, agents' tools, logs and plans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Checkpointing, Counter, FrameworkTraits, Layout, Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.memory import cache_bytes, framework_traits, training_method
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery, without_a_word
from oomdoctor.setups.building import layout as spread
from oomdoctor.setups.building import rollouts, trained
from oomdoctor.setups.building.assumptions import run_assumptions
from oomdoctor.setups.building.pictures import on_pictures, picture_assumptions
from oomdoctor.setups.programs.ggml import ggml_assumptions, on_ggml

NO_VERSIONS: Mapping[str, str] = MappingProxyType({})
_LENGTH = 2048
_BY_PROGRAM: Mapping[str, str] = {"sentence-transformers": "embedding"}
"""What a program trains by default."""
_EVAL_BATCH = 8
"""per_device_eval_batch_size of transformers/training_args.py."""
_MODULE = re.compile(r"[A-Za-z][\w-]{0,60}")
_EVERYWHERE = frozenset({"all-linear"})
_OPERATIONS = "op"
"""The keyword for chosen operations: torchtitan's selective_ac_option."""
_ANSWERS = ("serve", "generate", "load")
"""Methods that train nothing; `load` is the model alone."""
_COUNTERS: Mapping[str, Counter] = MappingProxyType(
    {"max_allocated": "max_allocated", "peak_active": "max_allocated", "max_reserved": "max_reserved", "unknown": "unknown"}
)


def setup_from_settings(
    settings: RunSettings, shape: Shape, framework: str | None, cards: int, versions: Mapping[str, str] = NO_VERSIONS
) -> tuple[Setup, tuple[Assumption, ...]]:
    """Return the setup of a run on `cards` GPUs, and what had to be assumed.

    `versions` are the known ones, by framework; for others the newest that was read counts. The estimate is for what nvidia-smi
    will show, unless the settings name another counter.
    """
    training = settings.method not in _ANSWERS
    method = settings.method or (_BY_PROGRAM.get(framework or "") if training else None)
    if training and not training_method(method or "").scores:
        shape = replace(shape, scores=False)
    settings = _as_the_program(settings, framework) if training else settings
    layout = spread.run_layout(settings, shape, cards)
    traits = framework_traits(framework, _query(settings, layout, versions))
    if training and (sharded := spread.sharded_by_default(layout, settings, traits)) is not layout:
        layout, traits = sharded, framework_traits(framework, _query(settings, sharded, versions))
    if training and traits.wide_gradients:
        layout = spread.as_megatron(layout, settings)
    if trained.packs_experts(settings) is not None:
        traits = replace(traits, wide_experts=not trained.packs_experts(settings))
    whole = framework_traits(framework, replace(_query(settings, layout, versions), whole=True, packed=False))
    adapters = trained.adapters(settings, traits, shape) if training else None
    compared = training_method(method or "")
    weights = trained.weights(settings, traits, shape, adapters) if training else trained.loaded_weights(settings, shape)
    made = Setup(
        shape=shape,
        task="train" if training else "infer",
        stack=traits,
        weights=weights,
        optimizer=trained.optimizer(settings, traits),
        given_weights=settings.weights,
        adapters=adapters,
        layout=layout,
        batch=spread.batch(settings, traits, layout, training=training),
        length=_length(settings, traits, shape, training=training),
        written=_written(settings, shape) if training else None,
        sequences=compared.sequences,
        reference=compared.reference and rollouts.has_reference(settings, framework),
        rollout=rollouts.engine(settings, framework, answers=not compared.counted) if training else None,
        critic=rollouts.critic(settings, framework, whole, shape) if training else None,
        reward=rollouts.reward(settings, framework, shape) if training else None,
        accumulation=spread.accumulation(settings, traits, layout),
        checkpointing=_checkpointing(settings, traits),
        checkpointed_every=_checkpointed_every(settings) or _beside_block(settings, shape, layout),
        checkpointed_together=(positive(settings.recompute_layers) or 1) if settings.recompute_method == "uniform" else 1,
        eager_attention=(settings.attention or "").lower() == "eager",
        fused_loss=traits.fused_loss if settings.fused_cross_entropy is None else settings.fused_cross_entropy,
        offload_params=_offloaded(settings.offload_params) or settings.fsdp_offload is True,
        offload_optimizer=_offloaded(settings.offload_optimizer),
        offload_activations=traits.offloads_checkpoints or settings.activation_offload is True,
        even_lengths=_even(settings),
        tower_trained=_tower(settings, traits, shape) if training else False,
        counter=_COUNTERS.get(settings.counter or "", "nvidia-smi"),
        prompt_logits=None if training else settings.prompt_logits,
        cache_bytes=_cache_bytes(settings, shape),
        eval_batch=_eval_batch(settings) if training else None,
        saves_whole=_saves_whole(settings),
        merges=training and settings.merge_adapters is True,
    )
    if shape.pictures is not None:
        made = on_pictures(made, settings, framework)
        return made, tuple(picture_assumptions(made, settings))
    made = on_ggml(made, settings, framework)
    return made, (*run_assumptions(settings, made), *ggml_assumptions(made, settings))


def _as_the_program(settings: RunSettings, framework: str | None) -> RunSettings:
    """Return the settings with a program's defaults; if the distribution of a run is given, it is given completely."""
    spread_said = any(value is not None for value in (settings.strategy, settings.zero_stage, settings.zero_file, settings.fsdp))
    always = without_a_word(framework)
    return settings.with_values({
        name: value for name, value in always.items() if getattr(settings, name) is None and not (spread_said and name != "weights")
    })  # fmt: skip


def _query(settings: RunSettings, layout: Layout, versions: Mapping[str, str]) -> DefaultsQuery:
    return DefaultsQuery(
        engine=layout.engine,
        method=(settings.method or "sft").lower(),
        weights=settings.weights,
        attention=settings.attention or "sdpa",
        packed=trained.loads_packed(settings),
        whole=settings.finetuning.lower().startswith("full") if settings.finetuning else None,
        computes_wide=(settings.precision or "").lower() == "fp32",
        versions=tuple(sorted(versions.items())),
    )


def _cache_bytes(settings: RunSettings, shape: Shape) -> float:
    """Return the bytes per value in the cache; keys and values may have different types."""
    kinds = (settings.kv_cache_dtype, settings.value_cache_dtype or settings.kv_cache_dtype)
    return sum(cache_bytes(kind, shape) for kind in kinds) / len(kinds)


def _saves_whole(settings: RunSettings) -> bool | None:
    """Return whether a checkpoint of a sharded model is written in full."""
    kind = settings.fsdp_state_dict
    return settings.zero_saves_whole if kind is None else kind.upper() == "FULL_STATE_DICT"


def _even(settings: RunSettings) -> bool | None:
    """Return whether batches have one length: packed or grouped; None if not given."""
    stated = (settings.packing, settings.group_by_length)
    return True if True in stated else False if False in stated else None


def _checkpointing(settings: RunSettings, traits: FrameworkTraits) -> Checkpointing:
    stated, chosen = settings.gradient_checkpointing, settings.selective_checkpointing
    if chosen == _OPERATIONS:
        return "selective"
    if traits.checkpoints_always or stated or _checkpointed_every(settings) is not None:
        return "full"
    if stated is False or not traits.checkpointing:
        return "none"
    return "selective" if traits.selective else "full"


def _checkpointed_every(settings: RunSettings) -> int | None:
    """Return N if one in every N layers is checkpointed as configured; None if not given."""
    chosen = str(settings.selective_checkpointing)
    return positive(int(chosen)) if chosen.isdigit() else None


def _beside_block(settings: RunSettings, shape: Shape, layout: Layout) -> float:
    """Return N if one in every N layers is checkpointed because a number of those on a GPU are: `block` of Megatron."""
    layers, chosen = shape.layers / layout.pipeline, positive(settings.recompute_layers)
    return max(1.0, layers / chosen) if settings.recompute_method == "block" and chosen else 1


def _length(settings: RunSettings, traits: FrameworkTraits, shape: Shape, *, training: bool) -> int:
    """Return the tokens of a sample; for a trained vision model it is at least as long as an image, wherever its text is truncated."""
    if settings.method == "load":
        return 1
    parts = [positive(settings.prompt_length), positive(settings.completion_length)]
    answered = sum(part or 0 for part in parts) if all(parts) else None
    told = positive(settings.sequence_length) or positive(settings.max_model_len) or answered
    if training and not shape.vocab and shape.positions:
        return shape.positions + 1  # the patches of an image, and one token of the model's own
    if training and shape.heard:
        return _mean_positions(shape, told or shape.longest or _LENGTH)
    told = told or traits.length or _LENGTH
    return max(told, shape.vision.tokens) if training and shape.vision else told


def _mean_positions(shape: Shape, written: int) -> int:
    """Return the positions of an average layer of Whisper: encoder layers have them all, the others the text."""
    return round((shape.heard_layers * shape.heard + (shape.layers - shape.heard_layers) * written) / shape.layers)


def _written(settings: RunSettings, shape: Shape) -> int | None:
    return positive(settings.sequence_length) or shape.longest if shape.heard else None


def _eval_batch(settings: RunSettings) -> int | None:
    """Return the batch of an evaluation; None if none runs."""
    if settings.eval_strategy in (None, "no", False):
        return None
    return positive(settings.eval_batch) or _EVAL_BATCH


def _tower(settings: RunSettings, traits: FrameworkTraits, shape: Shape) -> bool | None:
    """Return whether gradients go through a vision tower; None if not given.

    The config takes precedence, then the framework's default. Adapters are added to every matrix whose name is one of their targets,
    including those of the tower (peft/tuners/tuners_utils.py, check_target_module_exists).
    """
    if settings.freeze_vision is not None or traits.freezes_tower:
        return settings.freeze_vision is False
    modules = shape.vision.modules if shape.vision else frozenset()
    named = frozenset(_MODULE.findall(settings.lora_targets or ""))
    if not modules or not named or not any(word in (settings.finetuning or "") for word in trained.ADAPTED):
        return None
    return bool(named & (modules | _EVERYWHERE))


def _offloaded(device: str | bool | None) -> bool:
    return device in ("cpu", "nvme", True)
