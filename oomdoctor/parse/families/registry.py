"""The families, by the names rules use for them; each module is loaded when a log first needs it."""

from __future__ import annotations

from importlib import import_module

from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.families.family import Family

FAMILIES = {
    "torch-allocator": "torch_allocator",
    "nvml-assert": "nvml_assert",
    "kernel-oom": "kernel_oom",
    "nvidia-smi": "nvidia_smi",
    "memory-summary": "memory_summary",
    "elastic-box": "elastic_box",
    "array-size": "array_size",
    "words": "any_program",
}
READERS = frozenset({"words"})
"""Families that read a text by what its words mean."""


def load_family(name: str, pack: Pack) -> Family:
    """Return the code that reads the messages of a family."""
    module = import_module(f"oomdoctor.parse.families.{FAMILIES[name]}")
    family: Family = module.reader(pack.lexicon) if name in READERS else module.parse
    return family
