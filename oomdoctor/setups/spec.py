"""A run described by one line of JSON (`estimate --spec`), as a setup; null is unknown, and what is taken for it is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Union

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.setup import Adapters, Checkpointing, Counter, FrameworkTraits, GgmlRun, Layout, Optimizer, Setup, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.memory import (
    adapter_targets,
    cache_bytes,
    framework_traits,
    known_format,
    known_optimizer,
    optimizer_named,
    weight_format,
)
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery
from oomdoctor.memory.model.gguf import gguf_format
from oomdoctor.setups import prompts
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.nearest_model import nearest_model, size_in
from oomdoctor.setups.programs.ggml import ggml_run, ggml_width
from oomdoctor.setups.strategy import layout_from_strategy
from oomdoctor.setups.weights_said import weights_said

_PUBLISHED = (("transformers", "4.46"), ("torchtitan", "0.1"))
"""The releases with which tables were measured that name none: most of them are of 2023 and 2024."""
_COUNT = re.compile(r"trainable\s*=\s*([\d,]{1,20})")
_LENGTH = 2048
_LONGEST = 40
_BLOCKS = 4
"""New layers of LLaMA-Pro, and the default of freeze tuning in LLaMA-Factory is 2: small against the model either way."""
_ADAPTERS = (
    "lora",
    "adapter",
    "loha",
    "lokr",
    "oft",
    "boft",
    "prefix",
    "prompt",
    "tuning",
    "ia3",
    "vera",
    "fourier",
    "dora",
    "galore",
    "miss",
    "bone",
    "c3a",
    "ln",
)


class Spec(Struct, kw_only=True):
    """One question. Names and meaning are those of the evaluation's contract; a key that is missing is null."""

    id: Union[str, int, None] = None
    model: str | None = None
    family: str | None = None
    params: int | None = None
    task: str = "train"
    method: str | None = None
    framework: str | None = None
    trainable_modules: str | None = None
    lora_rank: int | None = None
    weights_dtype: str | None = None
    compute_dtype: str | None = None
    optimizer: str | None = None
    strategy: str | None = None
    gpus: int | None = None
    gpu: str | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    seq_len: int | None = None
    gradient_checkpointing: Union[bool, str, None] = None
    attention: str | None = None
    fused_loss: bool | None = None
    prompt_logits: bool | None = None
    packing: str | None = None
    offload: str | None = None
    counter: str | None = None
    kv_dtype: str | None = None
    """Type of the cache of keys, and of values where they have none of their own."""
    value_dtype: str | None = None
    gpu_layers: int | None = None
    host_experts: int | None = None


class RefusedSpec(Struct, frozen=True):
    """Why a question has no answer."""

    why: str


def setup_from_spec(spec: Spec) -> tuple[Setup, tuple[Assumption, ...]] | RefusedSpec:
    """Return the setup of a question, and what had to be assumed."""
    known = _shape(spec)
    if known is None:
        return RefusedSpec(f"the model {spec.model or ''} is not known and its number of parameters is not given".replace("  ", " "))
    if spec.task not in ("train", "infer"):
        return RefusedSpec(f"the task {spec.task} is neither train nor infer")
    training = spec.task == "train"
    method = (spec.method or ("full" if training else "generate")).lower()
    spread = layout_from_strategy(spec.strategy or "", spec.gpus or 1)
    traits = framework_traits(spec.framework, DefaultsQuery(engine=spread.engine, packed="qlora" in method, versions=_PUBLISHED))
    adapters = _adapters(spec, method, traits) if training else None
    made = Setup(
        shape=known,
        task="train" if training else "infer",
        stack=traits,
        weights=_weights(spec, known, traits, method, training),
        optimizer=_optimizer(spec, traits, spread, adapters),
        adapters=adapters,
        layout=spread,
        batch=max(1, (spec.micro_batch or 1) // _pieces(spread)),
        length=1 if method == "load" else max(1, spec.seq_len or _LENGTH, _image(known) if training else 0),
        accumulation=max(1, spec.grad_accum or (2 if traits.accumulates else 1), spread.pipeline),
        checkpointing=_checkpointing(spec),
        eager_attention=(spec.attention or "").lower() == "eager" and traits.name != "ms-swift",
        offload_params=_offloaded(spec, "param"),
        offload_optimizer=_offloaded(spec, "optimizer"),
        offload_activations=traits.offloads_checkpoints or _offloaded(spec, "activation"),
        fused_loss=spec.fused_loss is True,
        prompt_logits=None if training else spec.prompt_logits,
        ggml=None if training else _ggml(spec, known),
        cache_bytes=_cache_bytes(spec, known),
        even_lengths=_even(spec.packing),
        tower_trained=_tower(spec) if training else False,
        counter=_counter(spec.counter),
    )
    return made, tuple(_assumptions(spec, made))


def _ggml(spec: Spec, shape: Shape) -> GgmlRun | None:
    run = ggml_run(spec.framework, spec.gpu_layers)
    return None if run is None else replace(run, host_experts=float(min(spec.host_experts or 0, shape.layers)))


def _cache_bytes(spec: Spec, shape: Shape) -> float:
    """Return the bytes of a value in the cache; keys and values may be of two types."""
    kinds = (spec.kv_dtype, spec.value_dtype or spec.kv_dtype)
    if ggml_run(spec.framework) is not None:
        return sum(map(ggml_width, kinds)) / len(kinds)
    return sum(cache_bytes(kind, shape) for kind in kinds) / len(kinds)


def _shape(spec: Spec) -> Shape | None:
    known = model_shape(spec.model) if spec.model else None
    if known is not None and spec.task == "infer" and gguf_format(known, (spec.weights_dtype or "").lower()) is not None:
        # A GGUF file has the language model; what reads pictures is a file of its own (llama.cpp tools/mtmd, --mmproj).
        known = replace(known, vision=None)
    params = spec.params or size_in(spec.model or "")
    return nearest_model(params, spec.model or "") if known is None and params else known


def _pieces(spread: Layout) -> int:
    """Into how many pieces a pipeline cuts the batch that is told: torchtitan's is that of a rank, Megatron's is one piece already."""
    return 1 if spread.wide_gradients else spread.pipeline


def _tower(spec: Spec) -> bool | None:
    """Return whether gradients go through a vision tower: only where the trained modules say so is it known."""
    return True if re.search(r"\bvi(?:sion|sual|t)\b", spec.trainable_modules or "", re.IGNORECASE) else None


def _image(known: Shape) -> int:
    """Tokens of one image: a sample of a vision model is at least as long, wherever its text is cut."""
    return known.vision.tokens if known.vision else 0


def _adapters(spec: Spec, method: str, traits: FrameworkTraits) -> Adapters | None:
    modules = spec.trainable_modules or ""
    if "pro" in method.split("-") or "llamapro" in method or "freeze" in method:
        return Adapters(rank=0, targets=frozenset(), blocks=_BLOCKS)
    if method.startswith("full") or not any(kind in method for kind in _ADAPTERS):
        return None
    targets = adapter_targets(modules) or frozenset("qv")
    counted = _COUNT.search(modules)
    copies = targets & {"embed"} | (targets & {"head"} if "emb" in method else frozenset())
    lora = "lora" in method
    return Adapters(
        rank=spec.lora_rank or traits.rank,
        targets=frozenset(targets - copies) if lora else frozenset(),
        full=frozenset(copies),
        scales_outputs="adapter_v2" in method or "ia3" in method,
        count=int(counted[1].replace(",", "")) if counted else None,
    )


def _weights(spec: Spec, shape: Shape, traits: FrameworkTraits, method: str, training: bool) -> WeightFormat:
    stated = (spec.weights_dtype or "").lower()
    dtype = "" if " or " in stated else stated.split(" ")[0]
    if training and method.startswith("full") and "autocast" in (spec.compute_dtype or "").lower():
        # Autocast computes in 16 bit over fp32 weights; over 16-bit weights it would do nothing.
        dtype = "fp32"
    if not training and (stored := gguf_format(shape, dtype) or (weights_said(shape, spec.model) if not dtype else None)) is not None:
        return stored
    default = "nf4" if "qlora" in method else traits.full_weights if training and method.startswith("full") else "bf16"
    return weight_format(dtype) or known_format(default)


def _optimizer(spec: Spec, traits: FrameworkTraits, spread: Layout, adapters: Adapters | None) -> Optimizer:
    name = "galore" if "galore" in (spec.method or "").lower() else spec.optimizer or traits.optimizer
    if traits.name == "torchtune" and spec.optimizer is None and adapters is None and spread.cards == 1:
        # Its recipe for one card: the states of a full model would fit no card that people have.
        name = "pagedadamw8bit in backward"
    optimizer = optimizer_named(name) or known_optimizer(traits.optimizer)
    return known_optimizer(traits.optimizer) if (optimizer.name, traits.optimizer) == ("adamw", "adamw-fused") else optimizer


def _checkpointing(spec: Spec) -> Checkpointing:
    given = spec.gradient_checkpointing
    if given == "selective":
        return "selective"
    return "none" if given is False else "full"


def _even(packing: str | None) -> bool | None:
    if packing is None:
        return None
    return packing.lower().startswith(("yes", "fixed")) or "bucket" in packing.lower()


def _offloaded(spec: Spec, what: str) -> bool:
    """Return whether something is offloaded; offload without saying of what is that of parameters and optimizer."""
    stated = (spec.offload or "").lower()
    if any(part in stated for part in ("param", "optimizer", "activation")):
        return what in stated
    return what != "activation" and stated.startswith(("cpu", "nvme", "yes", "true", "full"))


def _counter(name: str | None) -> Counter:
    if name in ("max_allocated", "peak_active"):
        return "max_allocated"
    return "max_reserved" if name == "max_reserved" else "nvidia-smi" if name == "nvidia-smi" else "unknown"


def _assumptions(spec: Spec, made: Setup) -> Iterator[Assumption]:
    if made.shape.guessed:
        yield assumed(
            "shape",
            f"only the number of parameters of {made.shape.name} is known; its layers are a neighbour's",
            f"只知道 {made.shape.name} 的参数量，层结构取自相近的模型",
        )
    if made.task == "train" and spec.micro_batch is None:
        yield assumed("micro_batch", "a batch of 1 on each card", "每张卡批大小为 1")
    dtype = (spec.weights_dtype or "").split(" ")[0].lower()
    if dtype and " or " not in (spec.weights_dtype or "") and weight_format(dtype) is None and made.weights.name != dtype:
        named, taken = dtype[:_LONGEST], made.weights.name
        texts = (f"the format {named} is not known; taken like {taken}", f"未知格式 {named}，按 {taken} 计算")
        yield assumed("weights_dtype", *texts)
    if spec.seq_len is None:
        yield assumed("sequence_length", f"{_LENGTH} tokens for each sample", f"每条样本 {_LENGTH} 个 token")
    if made.task == "train" and spec.gradient_checkpointing is None:
        yield assumed("gradient_checkpointing", "gradient checkpointing is on", "已开启梯度检查点")
    if spec.counter is None and made.ggml is None:
        yield assumed("counter", "the figure may be torch's or the driver's", "该数值可能来自 torch，也可能来自驱动", is_question=False)
    if made.task == "infer" and made.ggml is None:
        yield from prompts.prompt_assumptions(made)
    if made.task == "train" and not made.even_lengths and not made.stack.longest_first:
        yield assumed("lengths", "samples differ in length", "样本长度不一", is_question=False)
