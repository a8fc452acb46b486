"""The families, by the name that rules use for them; each module is loaded when a log first needs it."""

from __future__ import annotations

from importlib import import_module

from oomdoctor.parse.families.family import Family

FAMILIES = {
    "torch-allocator": "torch_allocator",
    "translated": "translated",
    "nvml-assert": "nvml_assert",
    "kernel-oom": "kernel_oom",
    "nvidia-smi": "nvidia_smi",
    "memory-summary": "memory_summary",
    "elastic-box": "elastic_box",
    "array-size": "array_size",
    "refusal": "refusal",
}
_loaded: dict[str, Family] = {}


def load_family(name: str) -> Family:
    """Return the code that reads the messages of a family."""
    if name not in _loaded:
        _loaded[name] = import_module(f"oomdoctor.parse.families.{FAMILIES[name]}").parse
    return _loaded[name]
