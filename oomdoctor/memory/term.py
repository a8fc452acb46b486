"""How terms are created: a figure, its possible range, and where its formula is from."""

from __future__ import annotations

from oomdoctor.case.estimate import Term


def term(name: str, size: float, basis: str, *, low: float = 0.98, high: float = 1.02) -> Term:
    """Return a term of `size` bytes; `low` and `high` are factors. Two percent covers rounding to blocks and small buffers."""
    return Term(name=name, bytes=round(size), low=round(size * low), high=round(size * high), basis=basis)
