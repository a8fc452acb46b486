"""What the GPUs of a run have, if not all GPUs are alike: pipelines, `device_map="auto"`, DataParallel.

Ranks of distributed data, tensor and context parallelism are alike. So are the GPUs that write a full checkpoint with ZeRO-3 or
FSDP: all of them gather each module, and only the first process copies it to the host (`host_saving`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import replace

from oomdoctor.case.setup import Placement, Setup
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.placement import in_flight

_BUFFER = 1.25
"""Layers that a GPU may have beyond an even share: get_balanced_memory of accelerate/utils/modeling.py (1.15)."""


def ranks(setup: Setup) -> tuple[Setup, ...]:
    """Return the setup of each GPU that differs from the others, in layer order; in the middle of a pipeline, only the fullest."""
    layout = setup.layout
    copies = layout.engine == "dp" and layout.cards > 1
    if (layout.stages == 1 and not copies) or setup.placement is not None:
        return (setup,)
    parts = _replicas(setup) if copies else _balanced(setup) if layout.engine == "device_map" else _stages(setup)
    return tuple(replace(setup, placement=placement) for placement in parts)


def _replicas(setup: Setup) -> Iterator[Placement]:
    """Yield the GPUs of DataParallel.

    The first GPU has the model, gathers all outputs and gets all gradients (torch/nn/parallel/data_parallel.py); the others have a
    copy of the weights, and its gradients until the last one of them has arrived (Broadcast of torch/nn/parallel/_functions.py).
    """
    layers, end = setup.shape.layers, setup.layout.cards - 1
    yield Placement(layers=layers, outputs=setup.layout.cards)
    yield Placement(first=1, last=end, layers=layers, steps=False)


def _stages(setup: Setup) -> Iterator[Placement]:
    """Yield the first stage, the second for all in the middle, since it holds the most micro-batches of them, and the last."""
    end = setup.layout.pipeline - 1
    layers = setup.shape.layers / setup.layout.pipeline
    yield Placement(layers=layers, scores=False, in_flight=in_flight(setup, 0))
    if end > 1:
        yield Placement(first=1, last=end - 1, layers=layers, embeds=False, scores=False, in_flight=in_flight(setup, 1))
    yield Placement(first=end, last=end, layers=layers, embeds=False, in_flight=in_flight(setup, end))


def _balanced(setup: Setup) -> Iterator[Placement]:
    """Yield the result of infer_auto_device_map of accelerate/utils/modeling.py for the memory given by get_balanced_memory (1.15).

    GPUs are filled one after another. Each except the last has room for an even share of the bytes and 1.25 layers; the first keeps
    as much of it free as needed by the largest piece still to be placed. A tied output projection goes where the embedding is.
    """
    end, layers = setup.layout.cards - 1, setup.shape.layers
    embedding, head = weights.embedding(setup), weights.head(setup)
    layer = (weights.stored(setup) - embedding - head) / layers
    share = weights.stored(setup) / setup.layout.cards + _BUFFER * layer
    pieces = [(embedding, "embedding"), *[(layer, "layer")] * layers, *([(head, "head")] if head else [])]
    filled: list[list[str]] = [[]]
    used = 0.0
    for size, name in pieces:
        while used + size > share - (max(layer, head) if len(filled) == 1 else 0.0) and len(filled) <= end:
            filled.append([])
            used = 0.0
        filled[-1].append(name)
        used += size
    for names, alike in groupby(enumerate(filled), key=lambda card: card[1]):
        cards = [number for number, _ in alike]
        yield Placement(
            first=cards[0],
            last=cards[-1],
            layers=names.count("layer"),
            embeds="embedding" in names,
            scores="head" in names or (not head and "embedding" in names),
        )
