"""A model of few layers from a config.json, with adapters where the run has them. Its weights are never made, no remote code runs."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers

from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.errors import Untraceable
from oomdoctor.knowledge.tables.memory import adapter_targets
from oomdoctor.memory.model.weights import SHARDS_ALL
from oomdoctor.tracing.classes import diffusers_class, is_diffusion, transformers_class
from oomdoctor.tracing.fused import register
from oomdoctor.tracing.packed import pack

_FP32 = 4
_DROPOUT = 0.05
"""A usual dropout of adapters; its mask is kept, so that 0 would take less."""
_MATRICES = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
_DEPTHS = ("num_decoder_layers", "decoder_layers")
"""Further numbers of layers that grow with the first."""
_ATTENTION_DROPOUT = ("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob")

_BY_CHANCE = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop", "apply_spec_augment")
"""Layers that are left out and sound that is masked by chance: without values nothing can be drawn."""


def config_of(config: Mapping[str, Any]) -> Any:
    """Return the config as transformers reads it, or as it is where it is one of diffusers.

    Raise Untraceable where its model_type has no class there.
    """
    if is_diffusion(config):
        return dict(config)
    kind = str(config.get("model_type", ""))
    if kind not in transformers.CONFIG_MAPPING:
        raise Untraceable(f"transformers {transformers.__version__} has no model class for model_type {kind[:60] or '(missing)'}")
    try:
        parsed = transformers.AutoConfig.for_model(**config)
    except Exception as why:  # noqa: BLE001 - whatever a class of transformers makes of a config that it does not like
        raise Untraceable(f"transformers cannot read this config: {str(why)[:200]}") from why
    if parsed.is_encoder_decoder and getattr(parsed, "decoder_start_token_id", None) is None:
        # Which token starts the output is nothing to memory, and configs need not say it.
        parsed.decoder_start_token_id = 0
    return parsed


def depth(config: Any) -> int | None:
    """Return how many layers the model has; None where its config does not count them."""
    layers = None if isinstance(config, dict) else getattr(config.get_text_config(), "num_hidden_layers", None)
    return layers if isinstance(layers, int) and layers > 0 else None


def steps(config: Any) -> tuple[int, int]:
    """Return the two numbers of layers to trace: what comes first with one round of the pattern of layers, and another round.

    Two at least: the first layer's input is the embedding's output, of which it needs no copy.
    """
    text = config.get_text_config()
    first = getattr(text, "first_k_dense_replace", 0) or 0
    kinds = getattr(text, "layer_types", None)
    period = _period(kinds) if isinstance(kinds, list) and kinds else 1
    few = first + max(2, period)
    return few, few + period


def _period(kinds: list[Any]) -> int:
    return next(n for n in range(1, len(kinds) + 1) if all(kind == kinds[i % n] for i, kind in enumerate(kinds)))


def shortened(config: Any, layers: int) -> Any:
    """Return the config with so many layers, and its lists of one entry a layer cut to them, or carried on."""
    short = copy.deepcopy(config)
    text = short.get_text_config()
    whole = text.num_hidden_layers
    for name, value in list(vars(text).items()):
        if isinstance(value, list) and len(value) == whole:
            setattr(text, name, [value[i % whole] for i in range(layers)])
    text.num_hidden_layers = layers
    for name in _DEPTHS:
        if hasattr(text, name):
            setattr(text, name, layers)
    return undropped(short)


def undropped(config: Any) -> Any:
    """Return the config without dropout of attention.

    Fused attention on a card draws it again in the backward pass; on the host it would be kept for every pair of tokens.
    """
    if isinstance(config, dict):
        return config
    text = config.get_text_config()
    for name in _ATTENTION_DROPOUT:
        if hasattr(text, name):
            setattr(text, name, 0.0)
    for name in _BY_CHANCE:
        if hasattr(config, name):
            setattr(config, name, type(getattr(config, name))(0))
    return config


def model_of(config: Any, setup: Setup, *, packed: bool = False) -> Any:
    """Return the model, all of it on torch's meta device; with `packed` its matrices are stored as the run stores them.

    Raise Untraceable for a config that no class runs.
    """
    # What is sharded whole is gathered in 16 bit.
    wide = setup.weights.bytes_per_param == _FP32 and setup.layout.sharded(SHARDS_ALL) == 1
    dtype = torch.float32 if wide else torch.bfloat16
    with torch.device("meta"):
        if isinstance(config, dict):
            model = diffusers_class(config).from_config(config).to(dtype)
        else:
            attentions = ("eager",) if setup.eager_attention else (register(), "sdpa", "eager")
            model = _built(transformers_class(config), config, dtype, attentions)
        if packed:
            pack(model, setup)
        return model if setup.adapters is None else _adapted(model, setup.adapters, setup.stack.adapter_bytes)


def _built(chosen: Any, config: Any, dtype: torch.dtype, attentions: Sequence[str]) -> Any:
    """Return the model with the first attention that its class can have; some know only their own."""
    make = getattr(chosen, "from_config", None) or chosen._from_config
    *better, last = attentions
    for attention in better:
        with contextlib.suppress(ValueError, KeyError):
            return make(config, dtype=dtype, attn_implementation=attention)
    return make(config, dtype=dtype, attn_implementation=last)


def fill(model: torch.nn.Module) -> None:
    """Replace the tensors on the meta device by tensors of the host; call it where tensors are fake."""
    made: dict[int, torch.Tensor] = {}

    def here(old: torch.Tensor) -> torch.Tensor:
        if id(old) not in made:
            new = torch.empty_like(old, device="cpu")
            made[id(old)] = torch.nn.Parameter(new, requires_grad=old.requires_grad) if isinstance(old, torch.nn.Parameter) else new
        return made[id(old)]

    for module in model.modules():
        for kind in (module._parameters, module._buffers):
            kind.update({name: here(old) for name, old in kind.items() if old is not None})


def _adapted(model: Any, adapters: Adapters, width: int) -> Any:
    """Return the model with LoRA on the matrices that the run names."""
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - only where adapters are trained

    named = sorted(name for name, module in model.named_modules() if isinstance(module, _MATRICES) and _is_meant(name, adapters))
    if not named or adapters.blocks:
        raise Untraceable("only full training and LoRA on known matrices can be traced")

    def adapted(base: Any, dropout: float) -> Any:
        config = LoraConfig(r=adapters.rank, target_modules=named, lora_dropout=dropout, task_type="CAUSAL_LM")
        return get_peft_model(base, config, autocast_adapter_dtype=width == _FP32)

    try:
        return adapted(copy.deepcopy(model), _DROPOUT)
    except ValueError:
        # Matrices of experts that are one parameter cannot have it (peft/tuners/lora/layer.py, ParamWrapper).
        return adapted(model, 0.0)


def _is_meant(name: str, adapters: Adapters) -> bool:
    """Return whether a matrix gets an adapter; one for queries, keys and values gets its own where any of the three is named."""
    targets = adapter_targets(name.rpartition(".")[2])
    return bool(targets & adapters.targets) or ("qkv" in targets and bool(adapters.targets & {"q", "k", "v"}))
