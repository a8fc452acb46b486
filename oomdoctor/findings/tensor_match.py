"""A failed request as a product of the run's own dimensions: which tensor it was.

A request of batch x tokens x vocabulary x 2 or 4 bytes is the logits, parameters x bytes / N a copy or a shard of the weights.
A product is named only if the model's dimensions are known and it matches the printed size within its rounding; sources:
docs of the loss implementations (float32 copies of the logits) and ZeRO (flat buffers of parameters / ranks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.event import Event
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.tables.models import ModelRow, model_row
from oomdoctor.units import GIB, MIB

_BYTES = (4, 2)
_MOST_SHARES = 64
_WHOLE = 64
"""If the batch is unknown, only multiples of this are taken to be its tokens."""
_EXACT = 0.002


class TensorMatch(Struct, frozen=True):
    """One reading of a request."""

    kind: str
    """`logits`, `hidden` (one activation of a layer) or `parameters`."""
    text: str
    """`2 x 2048 x 151552 x 4`"""
    bytes: int


class Dimensions(Struct, frozen=True):
    """The model sizes whose products are requests; None is unknown."""

    vocab: int | None = None
    hidden: int | None = None
    parameters: int | None = None
    heads: int | None = None
    layers: int | None = None
    intermediate: int | None = None


def request_reading(root: Event, settings: Mapping[str, Fact]) -> dict[str, int | float | str | None]:
    """Return `request_as_product` and `request_kind` of a failure, if the run names its model."""
    requested = root.size("requested_bytes")
    if not requested:
        return {}
    batch = _first_whole(settings, "training.micro_batch", "log.per_device_train_batch_size")
    length = _first_whole(settings, "training.sequence_length", "log.cutoff_len", "log.max_seq_length", "log.max_length")
    matches = tensor_matches(requested, dimensions(settings), batch, length)
    return {"request_as_product": matches[0].text, "request_kind": matches[0].kind} if matches else {}


def dimensions(settings: Mapping[str, Fact]) -> Dimensions:
    """Return what the log prints, or otherwise what is known about the named model."""
    name = settings.get("training.model", settings.get("log.model_name_or_path"))
    row = model_row(str(name)) if name else None
    known = Dimensions() if row is None else _of_row(row)
    vocab, hidden = settings.get("log.vocab_size"), settings.get("log.hidden_size")
    return replace(
        known, vocab=vocab if isinstance(vocab, int) else known.vocab, hidden=hidden if isinstance(hidden, int) else known.hidden
    )


def _of_row(row: ModelRow) -> Dimensions:
    """Return the sizes of a known model; a row has 0 for what it does not know."""
    return Dimensions(
        vocab=row.vocab_size or None,
        hidden=row.hidden_size or None,
        parameters=row.params_total_published or row.params_total_formula or None,
        heads=row.num_heads or None,
        layers=row.num_layers or None,
        intermediate=row.intermediate_size or None,
    )


def _first_whole(settings: Mapping[str, Fact], *names: str) -> int | None:
    values = (settings.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def tensor_matches(requested: int, model: Dimensions, batch: int | None, length: int | None) -> tuple[TensorMatch, ...]:
    """Return the readings of a request of `requested` bytes, the most specific first; empty if none matches."""
    tolerance = _rounding(requested)
    tokens = batch * length if batch and length else None
    return (
        *_of_tokens("logits", requested, tolerance, model.vocab, tokens, batch, length),
        *_of_parameters(requested, tolerance, model.parameters),
        *_of_tokens("hidden", requested, tolerance, model.hidden, tokens, batch, length),
    )


def _rounding(requested: int) -> int:
    """Return half of the last printed digit, two decimals of GiB or MiB, plus a little for the binary fraction it is read as."""
    return int((GIB if requested >= GIB - MIB else MIB) * 0.00501)


def _of_tokens(
    kind: str, requested: int, tolerance: int, width: int | None, tokens: int | None, batch: int | None, length: int | None
) -> Iterator[TensorMatch]:
    """Yield tokens x width x bytes: for the known batch, or logits for any number of tokens if the size is printed precisely enough."""
    for size in _BYTES if width else ():
        row = (width or 0) * size
        if tokens is not None and abs(tokens * row - requested) <= tolerance:
            yield TensorMatch(kind, f"{batch} x {length} x {width} x {size}", tokens * row)
        count = round(requested / row)
        if tokens is None and kind == "logits" and count >= _WHOLE and count % _WHOLE == 0 and tolerance < row // 2:
            if abs(count * row - requested) <= tolerance:
                yield TensorMatch(kind, f"{count} x {width} x {size}", count * row)


def _of_parameters(requested: int, tolerance: int, parameters: int | None) -> Iterator[TensorMatch]:
    if not parameters:
        return
    for size in reversed(_BYTES):
        shares = round(parameters * size / requested)
        if 1 <= shares <= _MOST_SHARES and abs(parameters * size / shares - requested) <= max(tolerance, requested * _EXACT):
            text = f"{parameters} x {size}" + (f" / {shares}" if shares > 1 else "")
            yield TensorMatch("parameters", text, parameters * size // shares)
            return
