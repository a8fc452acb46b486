"""The format of a model's weights as stated: by an option, the name of a checkpoint or a GGUF file, or its config.json."""

from __future__ import annotations

import re

from oomdoctor.case.setup import WeightFormat
from oomdoctor.case.shape import Checkpoint, PackedGroup, Shape
from oomdoctor.knowledge.tables.memory import known_format, weight_format
from oomdoctor.knowledge.tables.model_names import is_ollama_tag
from oomdoctor.memory.model.gguf import gguf_format, mixture_in
from oomdoctor.memory.model.packing import packed_format

_WORDS = (
    (re.compile(r"nvfp4|modelopt_fp4|(?<![a-z0-9])fp4(?![a-z0-9])"), "nvfp4"),
    (re.compile(r"mxfp4"), "mxfp4"),
    (re.compile(r"gptq.{0,12}(?:int-?8|8-?bit)|(?:int-?8|8-?bit).{0,12}gptq"), "gptq-int8"),
    (re.compile(r"w4a16|w4a8"), "w4a16"),
    (re.compile(r"w8a8|w8a16"), "w8a8"),
    (re.compile(r"awq"), "awq-int4"),
    (re.compile(r"gptq|auto-?round|autoround"), "gptq-int4"),
    (re.compile(r"modelopt_mixed"), "nvfp4"),
    (re.compile(r"fp8|modelopt"), "fp8"),
    (re.compile(r"(?:bnb|bitsandbytes|unsloth)-(?:8-?bit|int8)|int8-bnb"), "int8"),
    (re.compile(r"bnb|bitsandbytes|nf4"), "nf4"),
    (re.compile(r"int-?8|8-?bit"), "gptq-int8"),
    (re.compile(r"int-?4|4-?bit"), "gptq-int4"),
)
"""Words in checkpoint names, the more precise first. `fp4` in a name is NVFP4; bitsandbytes' type of this name has no checkpoints."""
_ANY_OF_ITS_KIND = re.compile(r"modelopt\w*|deepseek_v4_fp8")
"""vLLM's names for checkpoints of NVIDIA's Model Optimizer, and of DeepSeek V4, which use the formats of the checkpoint:
override_quantization_method of vllm/model_executor/layers/quantization/modelopt.py and vllm/models/deepseek_v4/quant_config.py. So a config
takes precedence over them, and so does a name."""
_FILE = "gguf"
"""The format of a GGUF file that was read: it is more precise than any name."""
_WIDE = re.compile(r"(?<![a-z0-9])(?:bf16|fp16|f16)(?![a-z0-9])")


def weights_named(text: str, shape: Shape) -> WeightFormat | None:
    """Return the format given by an option or a name; None if it gives none."""
    lower = text.lower()
    mixture = mixture_in(lower.rsplit("/", 1)[-1])
    if mixture is not None:
        return gguf_format(shape, mixture)
    form = next((name for pattern, name in _WORDS if pattern.search(lower)), None)
    if form == "nvfp4" and (usual := _usual_nvfp4(shape)) is not None:
        return packed_format(shape, usual, known_format(form))
    if form is not None:
        return weight_format(form)
    if "gguf" in lower or is_ollama_tag(text):
        return gguf_format(shape, "gguf")
    return known_format("bf16") if _WIDE.search(lower) else None


def _usual_nvfp4(shape: Shape) -> Checkpoint | None:
    """Return how published NVFP4 configs treat a model that mixes tokens in an unusual way; None if they pack every matrix."""
    every = PackedGroup(known_format("nvfp4").bytes_per_param)
    if shape.latent is not None and shape.experts is not None:
        # nvidia/Kimi-K2.5-NVFP4, K2.6, GLM-5.1 and 5.2
        return Checkpoint(format="nvfp4", groups=(every,), kept=("self_attn",))
    if not any(part.name.startswith("linear_attn.") for layer in shape.each for part in layer.parts):
        return None
    if shape.experts is not None:
        # nvidia/Qwen3.5-122B-A10B-NVFP4 and 397B
        return Checkpoint(format="nvfp4", groups=(every,), kept=("self_attn", "linear_attn", "mlp.shared_experts"))
    # nvidia/Qwen3.6-27B-NVFP4
    return Checkpoint(format="nvfp4", groups=(PackedGroup(1.0, ("self_attn", "linear_attn")), every))


def own_weights(shape: Shape, tensor: int = 1) -> WeightFormat | None:
    """Return the format given by the checkpoint's config, on this many GPUs; None if it gives none, or one that is not in the table."""
    if shape.checkpoint is None:
        return None
    known = weight_format(shape.checkpoint.format)
    return None if known is None else packed_format(shape, shape.checkpoint, known, tensor)


def weights_said(shape: Shape, *stated: str | None, tensor: int = 1) -> WeightFormat | None:
    """Return the first format of a checkpoint given by options and names; None if none is given.

    A config describes its modules more precisely than a name: it counts if both mean the same format, or the same number of bits.
    """
    own = own_weights(shape, tensor)
    texts = [text for text in stated if text and not _ANY_OF_ITS_KIND.fullmatch(text.lower())]
    if own is None:
        texts += [text for text in stated if text and text not in texts]
    named = next((form for text in texts if (form := weights_named(text, shape)) is not None), None)
    if own is None or named is None or own.name == _FILE:
        return own or named
    return own if own.name == named.name or round(8 * own.bytes_per_param) == round(8 * named.bytes_per_param) else named
