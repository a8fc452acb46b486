"""The room that a server makes on the GPU for LoRA adapters when it loads: two narrow matrices per matrix, for each adapter.

Source: vllm/lora/layers, create_lora_weights: the first matrix of a column parallel layer is whole on each GPU and the second divided;
for a row parallel one it is the other way round.
"""

from __future__ import annotations

from oomdoctor.case.serving import Server
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model.weights import HALF


def adapter_bytes(setup: Setup, server: Server) -> int:
    """Return the bytes on one GPU; experts, and layers that differ, count with their attention alone."""
    shape, tensor = setup.shape, setup.layout.tensor
    inner = 0 if shape.experts is not None or shape.each else shape.intermediate
    columns = [shape.query, shape.key, shape.value, *([inner] * (1 + shape.gated) if inner else [])]
    rows = [shape.query, *([inner] if inner else [])]
    widths = sum(shape.hidden + out / tensor for out in columns) + sum(shape.hidden + into / tensor for into in rows)
    return round(HALF * server.adapters * server.adapter_rank * shape.layers / setup.layout.pipeline * widths)
