"""Whether a request has the size of a weight matrix of the model the run names: then it was weights, gradients or optimizer state.

PyTorch requests these matrix by matrix, and the largest in a block is that of its MLP: hidden x intermediate elements of 2 or 4 bytes
(transformers, models/llama/modeling_llama.py, LlamaMLP; gate and up may be one matrix). If no model is named, nothing is inferred from a
size: activations of many models are as large.
"""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.event import Event
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.request_product import is_size
from oomdoctor.knowledge.tables.models import ModelRow, model_row
from oomdoctor.units import MIB

_LEAST = 24 * MIB
"""Smaller pieces come from larger blocks, whose size is not informative."""
_BYTES = (2, 4)


def weight_matrix(root: Event, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the facts for rules about the matrix with the size of the request, as `derived.<name>`; empty if the model has none."""
    requested, total = root.size("requested_bytes"), root.size("total_bytes")
    name = known.get("training.model", known.get("log.model_name_or_path"))
    row = model_row(str(name)) if name else None
    if requested is None or requested < _LEAST or row is None or not row.hidden_size or not row.intermediate_size:
        return {}
    columns = row.intermediate_size * (2 if row.fused_gate else 1)
    size = next((size for size in _BYTES if is_size(row.hidden_size * columns * size, requested)), None)
    return {} if size is None else _facts(row, columns, size, total)


def _facts(row: ModelRow, columns: int, size: int, total: int | None) -> dict[str, Fact]:
    out: dict[str, Fact] = {
        "derived.matrix_shape": f"{row.hidden_size} x {columns}",
        "derived.matrix_bits": 8 * size,
        "derived.matrix_model": row.name.rpartition("/")[2],
    }
    weights = (row.params_total_published or row.params_total_formula or 0) * size
    if weights:
        out["derived.matrix_weights_bytes"] = weights
        # A 32-bit matrix may be a gradient or an optimizer state alongside 16-bit weights.
        if total and size == _BYTES[0]:
            out["derived.matrix_weights_share"] = round(weights / total, 4)
    return out
