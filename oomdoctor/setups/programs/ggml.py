"""A run of llama.cpp, or of a program built on it, according to its options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import GgmlRun, Setup, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.memory.model.gguf import gguf_format, type_bytes
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.weights_said import weights_said
from oomdoctor.units import GIB

_PROGRAMS = frozenset({"llama.cpp", "ollama", "koboldcpp", "lm-studio"})
_FIT_LAYERS = frozenset({"llama.cpp", "ollama"})
"""Programs that determine how many layers fit: `--fit` of llama.cpp (common/fit.cpp), which Ollama starts (llm/llama_server.go)."""
_SPLITS_CELLS = "ollama"
"""Gives each request its own context (num_ctx x OLLAMA_NUM_PARALLEL); llama.cpp shares one among all."""
_MIXTURE = "q4_k_m"
"""What -hf and Ollama load if the name does not give it: llama.cpp common/arg.cpp, ollama library."""
_HALF = 2.0
_EXPERTS = ("gate", "up", "down")
"""The expert matrices of layer N: blk.N.ffn_gate_exps.weight (llama.cpp gguf-py/gguf/constants.py)."""
_ON_HOST = re.compile(r"=\s*CPU\b", re.IGNORECASE)
_NESTED = re.compile(r"[)\]][+*{]")
"""Repeated groups: such a pattern may take forever to match, and none is needed to name layers."""
_LONGEST = 300


def ggml_run(framework: str | None, layers: int | None = None, chunk: int | None = None) -> GgmlRun | None:
    """Return how such a program runs; None for any other."""
    if framework not in _PROGRAMS:
        return None
    key = "num_gpu" if framework == _SPLITS_CELLS else "-ngl"
    return GgmlRun(layers_key=key, layers=layers if layers is not None and layers >= 0 else None, chunk=chunk or GgmlRun().chunk)


def on_ggml(setup: Setup, settings: RunSettings, framework: str | None) -> Setup:
    """Return the setup as such a program runs it; the setup of any other stays as it is. A GPU is filled layer by layer."""
    run = ggml_run(framework, settings.gpu_layers, positive(settings.max_batched_tokens))
    if run is None:
        return setup
    # Ollama has one type for both (OLLAMA_KV_CACHE_TYPE), llama.cpp one for each (-ctk, -ctv).
    of_values = settings.value_cache_dtype or (settings.kv_cache_dtype if framework == _SPLITS_CELLS else None)
    keys, values = (ggml_width(kind) for kind in (settings.kv_cache_dtype, of_values))
    weights = _weights_said(setup.shape, settings) or gguf_format(setup.shape, _MIXTURE) or setup.weights
    layout = replace(setup.layout, engine="device_map" if setup.layout.cards > 1 else "none")
    told = (settings.gpu_layers, settings.host_experts, settings.tensor_override)
    fits_itself = framework in _FIT_LAYERS and all(value is None for value in told) and setup.layout.cards == 1
    run = replace(
        run, host_experts=_host_experts(setup.shape, settings), fits_itself=fits_itself, whole_windows=settings.whole_windows is True
    )
    requests = positive(settings.max_num_seqs) if framework == _SPLITS_CELLS else None
    # A GGUF file has the language model; the image encoder is in a separate file (llama.cpp tools/mtmd, --mmproj).
    setup = replace(setup, shape=replace(setup.shape, vision=None))
    return replace(setup, ggml=run, weights=weights, cache_bytes=(keys + values) / 2, layout=layout, batch=requests or setup.batch)


def with_context(settings: RunSettings, framework: str | None, shape: Shape, card: int | None, cards: int = 1) -> RunSettings:
    """Return the settings with the default context of such a program, from the bytes of a GPU; others stay as they are."""
    if positive(settings.max_model_len) or positive(settings.sequence_length):
        return settings
    every = [row for row in table("context_defaults") if row["framework"] == framework]
    row = next((row for row in every if (card or 0) * cards >= GIB * float(row["card_gib"])), None)
    return settings if row is None else replace(settings, max_model_len=min(int(row["tokens"]), shape.longest or int(row["tokens"])))


def ggml_assumptions(setup: Setup, settings: RunSettings) -> Iterator[Assumption]:
    """Yield what had to be assumed about such a run."""
    if setup.ggml is None:
        return
    if _weights_said(setup.shape, settings) is None:
        name = _MIXTURE.upper()
        yield assumed("weights", f"the model file is {name}, which is loaded by default", f"模型文件为 {name}，即默认载入的量化格式")
    if settings.gpu_layers is None or setup.ggml.layers is None:
        layers = setup.shape.layers
        yield assumed("gpu_layers", f"all {layers} layers are on the card", f"全部 {layers} 层都放在显卡上")


def ggml_width(kind: str | None) -> float:
    """Return the bytes per value in a cache of this type; 16 bit if it is unknown."""
    return _HALF if kind is None else type_bytes(kind) or _HALF


def _host_experts(shape: Shape, settings: RunSettings) -> float:
    """Return how many layers keep their experts on the host."""
    told = settings.host_experts
    if told is True:
        return float(shape.layers)
    if isinstance(told, int) and told > 0:
        return float(min(told, shape.layers))
    return sum(_overridden(part, shape.layers) for part in (settings.tensor_override or "")[:_LONGEST].split(",") if _ON_HOST.search(part))


def _overridden(part: str, layers: int) -> float:
    """Return for how many layers a pattern names the expert matrices."""
    pattern = _ON_HOST.split(part)[0].strip("\"' ")
    if _NESTED.search(pattern.replace("[0-9]+", "").replace("[0-9]*", "")):
        return 0.0
    try:
        named = re.compile(pattern)
    except re.error:
        return 0.0
    every = (f"blk.{layer}.ffn_{name}_exps.weight" for layer in range(layers) for name in _EXPERTS)
    return sum(named.search(name) is not None for name in every) / len(_EXPERTS)


def _weights_said(shape: Shape, settings: RunSettings) -> WeightFormat | None:
    return weights_said(shape, settings.weight_format, settings.quantization, settings.model)
