"""The quantization_config of a config.json: how many bytes a parameter has, and which modules stay as they were.

Read as the loaders do: transformers/utils/quantization_config.py, compressed_tensors/quantization/quant_args.py, modelopt's
hf_quant_config.json (vllm/model_executor/layers/quantization/modelopt.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.shape import Checkpoint, PackedGroup
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, part_of, size, sizes

_HALF = 2
_FP32 = 4
_BITS = 8
_MOST_NAMES = 200_000
"""Names of modules that a config may list; what comes after them is not read."""
_ALGORITHMS = {
    "FP8": ("fp8", 1.0),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", 1.0),
    "FP8_PB_WO": ("fp8", 1.0 + _FP32 / 128**2),
    "MXFP8": ("fp8", 1.0 + 1 / 32),
    "NVFP4": ("nvfp4", 0.5 + 1 / 16),
    "NVFP4_AWQ": ("nvfp4", 0.5 + 1 / 16),
    "W4A16_NVFP4": ("nvfp4", 0.5 + 1 / 16),
    "W4A8_NVFP4_FP8": ("nvfp4", 0.5 + 1 / 16),
    "W4A8_AWQ": ("awq-int4", 0.5 + _HALF / 128),
    "INT4_AWQ": ("awq-int4", 0.5 + _HALF / 128),
    "W4A16_AWQ": ("awq-int4", 0.5 + _HALF / 128),
    "W8A8_SQ_PER_CHANNEL": ("w8a8", 1.0),
    "W8A16": ("w8a8", 1.0),
    "W4A16": ("awq-int4", 0.5 + _HALF / 128),
    "W8A8_MXFP8": ("fp8", 1.0 + 1 / 32),
    "W4A8_MXFP4_FP8": ("mxfp4", 0.5 + 1 / 32),
    "MXFP4": ("mxfp4", 0.5 + 1 / 32),
}
"""Algorithms of modelopt, each with its name here and the bytes of a parameter, scales included."""
_EXPERTS = ("mlp.experts",)


def checkpoint(config: HubConfig) -> Checkpoint | None:
    """Return the formats that a config.json says its weights have; None where it says none that is known."""
    packing = part_of(config, "quantization_config", "compression_config", "quantization")
    method = str(packing.get("quant_method") or packing.get("quant_algo") or "").lower().replace("_", "-")
    made = _of_method(packing, method)
    if made is None:
        return None
    name, groups = made
    if config.get("expert_dtype") == "fp4" and name == "fp8":
        # DeepSeek V4: the experts are MXFP4, whatever the rest is.
        name, groups = "mxfp4", (PackedGroup(0.5 + 1 / 32, _EXPERTS), *groups)
    return Checkpoint(format=name, groups=groups, kept=tuple(_kept(packing)))


def _of_method(packing: HubConfig, method: str) -> tuple[str, tuple[PackedGroup, ...]] | None:
    if packing.get("quantized_layers") and isinstance(packing.get("quantized_layers"), Mapping):
        return _layer_by_layer(packing["quantized_layers"])
    algorithm = _ALGORITHMS.get(str(packing.get("quant_algo") or "").upper())
    if algorithm is not None:
        return algorithm[0], (PackedGroup(algorithm[1]),)
    if part_of(packing, "config_groups") or method == "compressed-tensors":
        return _compressed_tensors(packing)
    simple = _simple(packing, method)
    return None if simple is None else (simple[0], (PackedGroup(simple[1]),))


def _simple(packing: HubConfig, method: str) -> tuple[str, float] | None:
    """Return one format for all matrices: its name and the bytes of a parameter."""
    group = size(packing, "group_size", "q_group_size") or 128
    bits = size(packing, "bits", "w_bit", "nbits", "weight_bits") or 4
    if method in ("fp8", "fbgemm-fp8", "deepseek-fp8"):
        block = sizes(packing, "weight_block_size")
        return "fp8", 1.0 + (_FP32 / (block[0] * block[1]) if len(block) == 2 and 0 not in block else 0.0)  # noqa: PLR2004 - rows and columns
    if method == "mxfp4":
        return "mxfp4", 0.5 + 1 / 32
    if method == "awq":
        return "awq-int4", bits / _BITS + _HALF / group + bits / _BITS / group
    if method in ("gptq", "auto-round", "intel/auto-round", "gptq-marlin", "autoround"):
        return ("gptq-int8" if bits == _BITS else "gptq-int4"), bits / _BITS + _HALF / group + bits / _BITS / group
    if method == "bitsandbytes":
        if packing.get("load_in_8bit") is True:
            return "int8", 1.002
        return ("nf4-dq", 0.5159) if packing.get("bnb_4bit_use_double_quant") is True else ("nf4", 0.5625)
    if method == "hqq":
        return "hqq-int4", bits / _BITS + 2 * _HALF / group
    return None


def _compressed_tensors(packing: HubConfig) -> tuple[str, tuple[PackedGroup, ...]] | None:
    groups = [group for group in part_of(packing, "config_groups").values() if isinstance(group, Mapping)]
    form = str(packing.get("format") or "")
    if not groups:
        name = {"float-quantized": "fp8", "naive-quantized": "fp8", "int-quantized": "w8a8", "nvfp4-pack-quantized": "nvfp4"}.get(form)
        of = {"fp8": 1.0, "w8a8": 1.0, "nvfp4": 0.5 + 1 / 16}
        return None if name is None else (name, (PackedGroup(of[name]),))
    packed = [(_weights(part_of(group, "weights"), str(group.get("format") or form)), _targets(group)) for group in groups]
    known = [(stored, targets) for stored, targets in packed if stored is not None]
    # Groups that name modules go before those that mean every matrix.
    known.sort(key=lambda group: not group[1])
    return (
        (min(known, key=lambda group: group[0][1])[0][0], tuple(PackedGroup(stored[1], targets) for stored, targets in known))
        if known
        else None
    )


def _weights(packing: HubConfig, form: str) -> tuple[str, float] | None:
    """Return the name of a group's format and the bytes of one of its parameters."""
    bits, group = size(packing, "num_bits"), size(packing, "group_size")
    if bits is None or bits > 2 * _BITS:
        return None
    whole = bits / _BITS
    if packing.get("type") == "float":
        if bits == _BITS:
            block = sizes(packing, "block_structure")
            scale = _FP32 / (block[0] * block[1]) if len(block) == 2 and 0 not in block else 1 / group if group else 0.0  # noqa: PLR2004 - rows and columns
            return "fp8", whole + scale
        return ("mxfp4" if "mxfp4" in form or group == 32 else "nvfp4"), whole + 1 / (group or 16)  # noqa: PLR2004 - OCP MX: blocks of 32
    zeros = 0.0 if packing.get("symmetric", True) is not False or not group else whole / group
    name = "w8a8" if bits == _BITS else "gptq-int4"
    return name, whole + (_HALF / group if group else 0.0) + zeros


def _targets(group: HubConfig) -> tuple[str, ...]:
    """Return the modules that a group names; none where it means every linear layer."""
    named = [name for name in group.get("targets") or () if isinstance(name, str)][:_MOST_NAMES]
    return () if "Linear" in named else tuple(named)


def _layer_by_layer(layers: Mapping[str, object]) -> tuple[str, tuple[PackedGroup, ...]] | None:
    """Return the groups of a table that has an algorithm for each module."""
    by_algorithm: dict[tuple[str, float], list[str]] = {}
    for name, chosen in list(layers.items())[:_MOST_NAMES]:
        stored = _ALGORITHMS.get(str(chosen.get("quant_algo") or "").upper()) if isinstance(chosen, Mapping) else None
        if stored is not None:
            by_algorithm.setdefault(stored, []).append(name)
    if not by_algorithm:
        return None
    smallest = min(by_algorithm, key=lambda stored: stored[1])
    return smallest[0], tuple(PackedGroup(stored[1], tuple(names)) for stored, names in by_algorithm.items())


def _kept(packing: HubConfig) -> Iterator[str]:
    for key in ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "llm_int8_skip_modules"):
        named = packing.get(key)
        if isinstance(named, list):
            yield from [name for name in named if isinstance(name, str)][:_MOST_NAMES]
