"""A run described by one line of JSON (`estimate --spec`), in setting names: `setup_from_settings` makes its setup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Union

from msgspec import Struct

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.memory import adapter_targets, weight_format
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.memory.model.gguf import gguf_format
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.from_settings import NO_VERSIONS, setup_from_settings
from oomdoctor.setups.nearest_model import nearest_model, size_in
from oomdoctor.setups.picture_models import named_pictures

_COUNT = re.compile(r"trainable\s*=\s*([\d,]{1,20})")
_TOWER = re.compile(r"(?i)\bvi(?:sion|sual|t)\b")
_EMBEDDING = "emb"
"""In a method's name: embedding and output projection are fully trained alongside the adapters."""
_LONGEST = 40


class Spec(Struct, kw_only=True):
    """One question. A key that is missing, or null, is unknown: then the framework's defaults apply, as for any other entry point."""

    id: Union[str, int, None] = None
    """Returned with the answer."""
    model: str | None = None
    """Name of the model, or the path of its config."""
    family: str | None = None
    """`model_type` of its config.json; ignored if the model is known."""
    params: int | None = None
    """Its parameters, for an unknown model."""
    task: str = "train"
    """`train` or `infer`."""
    method: str | None = None
    """What is trained (`full`, `lora`, `qlora`, `freeze`, ...); `generate` or `load` for inference."""
    framework: str | None = None
    framework_version: str | None = None
    """Its release; the newest that was read if unknown."""
    trainable_modules: str | None = None
    """Modules that get adapters, as people write them; `trainable=4,194,304` is how many parameters they have."""
    lora_rank: int | None = None
    weights_dtype: str | None = None
    """Format of the weights on the GPU."""
    compute_dtype: str | None = None
    """Type of the passes; `bf16 (autocast)` over fp32 weights."""
    optimizer: str | None = None
    strategy: str | None = None
    """How the run is distributed, in a few words: `zero3`, `fsdp 32 + tp 8`."""
    gpus: int | None = None
    gpu: str | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    seq_len: int | None = None
    """Tokens of the longest sample."""
    gradient_checkpointing: Union[bool, str, None] = None
    """True, false or `selective`."""
    attention: str | None = None
    fused_loss: bool | None = None
    prompt_logits: bool | None = None
    packing: str | None = None
    """`yes` or `fixed length` if all batches have one length, `no` if they differ."""
    offload: str | None = None
    """`params cpu`, `optimizer cpu`, `activations cpu`; `cpu` alone is parameters and optimizer."""
    counter: str | None = None
    """`max_allocated`, `max_reserved` or `nvidia-smi`, as requested by options and configs; unknown may be any of them."""
    kv_dtype: str | None = None
    """Type of the key cache, and of the value cache if it has no type of its own."""
    value_dtype: str | None = None
    gpu_layers: int | None = None
    """Layers that llama.cpp puts on the GPU."""
    host_experts: int | None = None
    """Layers whose experts it keeps on the host."""


_SIZES = ("micro_batch", "seq_len", "gpus")


class RefusedSpec(Struct, frozen=True):
    """Why a question has no answer."""

    why: str


def setup_from_spec(spec: Spec, versions: Mapping[str, str] = NO_VERSIONS) -> tuple[Setup, tuple[Assumption, ...]] | RefusedSpec:
    """Return the setup of a question, and what had to be assumed; `versions` are other known framework versions."""
    shape = _shape(spec)
    if shape is None:
        return RefusedSpec(f"the model {spec.model or ''} is not known and its number of parameters is not given".replace("  ", " "))
    if spec.task not in ("train", "infer"):
        return RefusedSpec(f"the task {spec.task} is neither train nor infer")
    wrong = next((name for name in _SIZES if getattr(spec, name) is not None and positive(getattr(spec, name)) is None), None)
    if wrong is not None:
        return RefusedSpec(f"{wrong} {getattr(spec, wrong)} is not a valid size: use 1 to 1,000,000,000")
    named = {spec.framework: spec.framework_version} if spec.framework and spec.framework_version else {}
    made, assumptions = setup_from_settings(spec_settings(spec), shape, spec.framework, max(1, spec.gpus or 1), {**versions, **named})
    return made, (*assumptions, *_of_formats(spec, made))


def spec_settings(spec: Spec) -> RunSettings:
    """Return a question as settings."""
    training = spec.task == "train"
    method, modules = (spec.method or "").lower(), spec.trainable_modules or ""
    checkpointing, counted = spec.gradient_checkpointing, _COUNT.search(modules)
    return RunSettings(
        model=spec.model,
        method=None if training else "load" if method == "load" else "generate",
        finetuning=method or None,
        framework_version=spec.framework_version,
        lora_rank=spec.lora_rank,
        lora_targets=modules or None,
        modules_to_save="lm_head" if _EMBEDDING in method and "head" in adapter_targets(modules) else None,
        trained_parameters=int(counted[1].replace(",", "")) if counted else None,
        freeze_vision=False if _TOWER.search(modules) else None,
        weight_format=_weight_format(spec, method),
        quantization=None if training else spec.weights_dtype,
        precision=(spec.compute_dtype or "").lower().replace("-", " ").split(" ")[0] or None,
        optimizer=spec.optimizer,
        strategy=spec.strategy,
        micro_batch=spec.micro_batch,
        accumulation=spec.grad_accum,
        sequence_length=spec.seq_len,
        gradient_checkpointing=checkpointing if isinstance(checkpointing, bool) else None,
        selective_checkpointing="op" if checkpointing == "selective" else None,
        attention=spec.attention,
        fused_cross_entropy=spec.fused_loss,
        prompt_logits=spec.prompt_logits,
        packing=_even(spec.packing),
        offload_params=_offloaded(spec, "param"),
        offload_optimizer=_offloaded(spec, "optimizer"),
        activation_offload=_offloaded(spec, "activation"),
        counter=spec.counter or "unknown",
        kv_cache_dtype=spec.kv_dtype,
        value_cache_dtype=spec.value_dtype or spec.kv_dtype,
        gpu_layers=spec.gpu_layers,
        host_experts=spec.host_experts,
    )


def _shape(spec: Spec) -> Shape | None:
    known = model_shape(spec.model) or named_pictures(spec.model) if spec.model else None
    params = spec.params or size_in(spec.model or "")
    return nearest_model(params, spec.model or "") if known is None and params else known


def _weight_format(spec: Spec, method: str) -> str | None:
    """Return the one stated format; autocast computes in 16 bit over fp32 weights, and over 16-bit weights it would do nothing."""
    if spec.task == "train" and method.startswith("full") and "autocast" in (spec.compute_dtype or "").lower():
        return "fp32"
    stated = (spec.weights_dtype or "").lower()
    return None if " or " in stated else stated.split(" ")[0] or None


def _even(packing: str | None) -> bool | None:
    if packing is None:
        return None
    return packing.lower().startswith(("yes", "fixed")) or "bucket" in packing.lower()


def _offloaded(spec: Spec, what: str) -> bool | None:
    """Return whether something is offloaded; offload without further detail means parameters and optimizer."""
    stated = (spec.offload or "").lower()
    if any(part in stated for part in ("param", "optimizer", "activation")):
        return what in stated
    return (what != "activation" and stated.startswith(("cpu", "nvme", "yes", "true", "full"))) or None


def _of_formats(spec: Spec, made: Setup) -> Iterator[Assumption]:
    stated = spec.weights_dtype or ""
    name = stated.split(" ")[0].lower()
    if not name or " or " in stated or weight_format(name) is not None or gguf_format(made.shape, name) is not None:
        return
    named, taken = name[:_LONGEST], made.weights.name
    yield assumed("weights_dtype", f"the format {named} is not known; treated like {taken}", f"未知格式 {named}，按 {taken} 计算")
