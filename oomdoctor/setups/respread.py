"""A run that is distributed in another way: DeepSpeed and FSDP keep weights in their own types."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.setup import Layout, Setup
from oomdoctor.knowledge.tables.memory import framework_traits, known_format
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery


def respread(setup: Setup, layout: Layout) -> Setup:
    """Return the run with this layout, and its weights in the type that they have there."""
    known, packed = setup.stack.version, setup.weights.packed
    if not known or packed or setup.task != "train":
        return replace(setup, layout=layout)
    versions = ((setup.stack.name, known),)
    traits = framework_traits(setup.stack.name, DefaultsQuery(engine=layout.engine, weights=setup.given_weights, versions=versions))
    kept = traits.full_weights if setup.adapters is None else traits.frozen_weights
    return replace(setup, layout=layout, weights=known_format(kept), stack=traits)
