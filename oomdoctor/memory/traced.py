"""Activations and logits if the model's own code was traced: one figure per pass replaces the formulas' terms."""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Setup, TracedMemory
from oomdoctor.memory.activations import shortest
from oomdoctor.memory.term import term


def passes(setup: Setup, traced: TracedMemory) -> tuple[tuple[Term], tuple[Term]]:
    """Return what is live besides weights, optimizer states and gradients: at the high-water mark, and when all gradients exist."""
    return (_term(setup, traced, "activations", traced.forward),), (_term(setup, traced, "activations", traced.backward),)


def prompt(setup: Setup, traced: TracedMemory) -> tuple[Term]:
    """Return what is live besides the weights while a prompt is read, including its cache."""
    return (_term(setup, traced, "prompt", traced.forward),)


def _term(setup: Setup, traced: TracedMemory, name: str, size: int) -> Term:
    basis = "both passes of the whole model with torch's fake tensors"
    if traced.layers is not None:
        few, more = traced.layers
        basis = f"both passes of {few} and {more} layers with torch's fake tensors, extrapolated to {traced.depth} layers"
    # GPU kernels have workspaces, and fused ones need less than the operations that they replace.
    return term(name, size / setup.layout.tensor, basis, low=0.85 * shortest(setup), high=1.2)
