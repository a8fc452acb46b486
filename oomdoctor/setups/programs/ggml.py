"""A run of llama.cpp, or of a program that is built on it, as its options say it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import GgmlRun, Setup
from oomdoctor.memory.model.gguf import gguf_format, type_bytes
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.weights_said import weights_said

_PROGRAMS = frozenset({"llama.cpp", "ollama", "koboldcpp", "lm-studio"})
_MIXTURE = "q4_k_m"
"""What -hf and Ollama load where the name does not say it: llama.cpp common/arg.cpp, ollama library."""
_HALF = 2.0


def ggml_run(framework: str | None, layers: int | None = None, chunk: int | None = None) -> GgmlRun | None:
    """Return how such a program runs; None for any other."""
    if framework not in _PROGRAMS:
        return None
    return GgmlRun(layers=layers if layers is not None and layers >= 0 else None, chunk=chunk or GgmlRun().chunk)


def on_ggml(setup: Setup, settings: RunSettings, framework: str | None) -> Setup:
    """Return the setup as such a program runs it; a setup of any other stays as it is. A card is filled layer by layer."""
    run = ggml_run(framework, settings.gpu_layers, positive(settings.max_batched_tokens))
    if run is None:
        return setup
    keys, values = (_width(kind) for kind in (settings.kv_cache_dtype, settings.value_cache_dtype))
    weights = weights_said(setup.shape, settings.quantization, settings.model) or gguf_format(setup.shape, _MIXTURE) or setup.weights
    layout = replace(setup.layout, engine="device_map" if setup.layout.cards > 1 else "none")
    return replace(setup, ggml=run, weights=weights, cache_bytes=(keys + values) / 2, layout=layout)


def ggml_assumptions(setup: Setup, settings: RunSettings) -> Iterator[Assumption]:
    """Yield what had to be assumed of such a run."""
    if setup.ggml is None:
        return
    if weights_said(setup.shape, settings.quantization, settings.model) is None:
        name = _MIXTURE.upper()
        yield assumed("weights", f"the model file is {name}, what is loaded by default", f"模型文件为 {name}，即默认载入的量化格式")
    if setup.ggml.layers is None:
        layers = setup.shape.layers
        yield assumed("gpu_layers", f"all {layers} layers are on the card", f"全部 {layers} 层都放在显卡上")


def _width(kind: str | None) -> float:
    return _HALF if kind is None else type_bytes(kind) or _HALF
