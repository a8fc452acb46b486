"""Whether a request has the size of a weight matrix, which tells a model and its weights where the log names none.

PyTorch asks for weights, their gradients and the states of an optimizer matrix by matrix, and the largest of a block is that of its MLP:
hidden x intermediate elements of 2 or 4 bytes (transformers, models/llama/modeling_llama.py, LlamaMLP; gate and up may be one matrix).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from oomdoctor.case.event import Event
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.request_product import is_size
from oomdoctor.knowledge.tables.models import ModelRow, model_row, model_rows
from oomdoctor.units import MIB

_BLOCK = 2 * MIB
_LEAST = 80 * MIB
"""Of models below 7 billion parameters a matrix is as large as much else."""
_TELLING = 17
"""A size of which the odd part is smaller (48, 64, 112 MiB) is that of many tensors, as people like powers of two."""
_COMPUTING = ("forward", "backward", "evaluation", "generation")
_BYTES = (2, 4)
_OUTSTANDING = 0.5


class WeightMatrix(Struct, frozen=True):
    """A matrix of a model that has the size of a request."""

    rows: int
    columns: int
    bytes_each: int
    model: str
    parameters: int

    def facts(self, card_bytes: int | None) -> dict[str, Fact]:
        """Return what rules may ask of it, as `derived.<name>`."""
        weights = self.parameters * self.bytes_each
        # A matrix of 32 bits may be a gradient or a state of the optimizer beside weights of 16.
        share = {"derived.matrix_weights_share": round(weights / card_bytes, 4)} if card_bytes and self.bytes_each == _BYTES[0] else {}
        return {
            "derived.matrix_shape": f"{self.rows} x {self.columns}",
            "derived.matrix_bits": 8 * self.bytes_each,
            "derived.matrix_model": self.model.rpartition("/")[2],
            "derived.matrix_weights_bytes": weights,
            **share,
        }


def weight_matrix(root: Event, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the facts of the matrix that has the size of the request; none where no model has one, or several readings are as good."""
    requested = root.size("requested_bytes")
    if requested is None or requested < _LEAST or known.get("incident.works_on") not in (None, "text"):
        return {}
    name = known.get("training.model", known.get("log.model_name_or_path"))
    row = model_row(str(name)) if name else None
    if row is not None:
        matches = list(_matrices(row, requested))
    elif name or _computes(known) or not _is_telling(requested):
        return {}
    else:
        matches = [match for each in _rows() for match in _matrices(each, requested)]
    match = _most_usual(matches)
    return {} if match is None else match.facts(root.size("total_bytes"))


def _most_usual(matches: Sequence[WeightMatrix]) -> WeightMatrix | None:
    """Return the first model of the shape that most models have; None where no shape stands out, as two readings are as good then."""
    shapes = Counter((match.rows, match.columns, match.bytes_each) for match in matches)
    if not shapes:
        return None
    shape, count = shapes.most_common(1)[0]
    if count < _OUTSTANDING * len(matches):
        return None
    # The table has the models that people run first, and derivatives of the same shape behind them.
    return next(match for match in matches if (match.rows, match.columns, match.bytes_each) == shape)


def _computes(known: Mapping[str, Fact]) -> bool:
    """Return whether steps had passed or a pass was running, where most requests are of what is computed."""
    step = known.get("derived.step")
    return known.get("incident.phase") in _COMPUTING or (isinstance(step, int) and step > 0)


def _is_telling(requested: int) -> bool:
    blocks = round(requested / _BLOCK)
    return requested % _BLOCK == 0 and blocks // (blocks & -blocks) >= _TELLING


@lru_cache(maxsize=1)
def _rows() -> tuple[ModelRow, ...]:
    """Return the models whose MLP is one matrix, or three."""
    return tuple(row for row in model_rows() if row.hidden_size and row.intermediate_size and not row.n_experts)


def _matrices(row: ModelRow, requested: int) -> Iterator[WeightMatrix]:
    """Yield the reading of a request as a matrix of the MLP."""
    columns = row.intermediate_size * (2 if row.fused_gate else 1)
    parameters = row.params_total_published or row.params_total_formula
    for size in _BYTES:
        if parameters and is_size(row.hidden_size * columns * size, requested):
            yield WeightMatrix(row.hidden_size, columns, size, row.name, parameters)
