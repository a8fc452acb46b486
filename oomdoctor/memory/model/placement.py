"""How much of something is on the GPU in question, if the layers of a model are divided among GPUs."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.setup import Placement, Setup


def card_placement(setup: Setup) -> Placement:
    """Return the part of the model on this GPU; if none is named, both ends and as many micro-batches in flight as any GPU has."""
    placement = setup.placement or Placement(layers=setup.shape.layers / setup.layout.stages, in_flight=in_flight(setup, 0))
    return placement if setup.shape.scores else replace(placement, scores=False)


def in_flight(setup: Setup, stage: int) -> int:
    """Return the micro-batches in flight whose activations stage `stage` of a pipeline holds, from 0.

    As many as there are stages to come (1F1B, arXiv 1806.03377). GPUs filled by `device_map` work in turn and hold one.
    """
    return max(1, min(setup.layout.pipeline - stage, setup.accumulation))


def held(setup: Setup, layers: float, embedding: float = 0.0, head: float = 0.0) -> float:
    """Return this GPU's part of something that is distributed over the layers, the embedding and the output projection."""
    placement = card_placement(setup)
    return layers * placement.layers / setup.shape.layers + embedding * placement.embeds + head * placement.scores
