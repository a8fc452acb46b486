"""A failed request as a product of quantities: whether batch x length x vocabulary x 4 is what was requested.

PyTorch prints what it requested from the GPU, in whole blocks: up to 1 MiB as 2 MiB, up to 10 MiB as 20 MiB, above that in steps of 2 MiB
(c10/core/CachingDeviceAllocator, get_allocation_size). Sizes of a GiB and more are printed with two decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.tensor_match import dimensions
from oomdoctor.units import GIB, MIB

_SMALL, _LARGE = MIB, 10 * MIB
_BLOCK = 2 * MIB
_DECIMALS = 0.00501
_LEAST = 10 * MIB
"""A size below this is a block, not a product."""
_OF_MODEL = {
    "vocabulary": "vocab", "hidden": "hidden", "parameters": "parameters", "heads": "heads", "layers": "layers",
    "intermediate": "intermediate",
}  # fmt: skip


def quantity(name: str, facts: Mapping[str, Fact]) -> Fact:
    """Return the value of a quantity, as given by settings and logs or by the named model."""
    known = facts.get(f"training.{name}", facts.get(f"log.{name}"))
    return getattr(dimensions(facts), _OF_MODEL[name]) if known is None and name in _OF_MODEL else known


def is_product(factors: Sequence[str | int | float], requested: int | None, facts: Mapping[str, Fact]) -> bool:
    """Return whether a request is the product of numbers and quantities, each of them known."""
    if requested is None or requested < _LEAST:
        return False
    values = [quantity(factor, facts) if isinstance(factor, str) else factor for factor in factors]
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0]
    return len(numbers) == len(values) and is_size(prod(numbers), requested)


def is_size(exact: float, printed: int) -> bool:
    """Return whether a size of `exact` bytes is printed as `printed` once the allocator has rounded it."""
    rounding = (GIB if printed >= GIB - MIB else MIB) * _DECIMALS
    return -rounding <= printed - exact <= _BLOCK + rounding


def rounded_request(size: int) -> int:
    """Return what PyTorch requests from the GPU when a tensor of `size` bytes is created."""
    if size <= _SMALL:
        return _BLOCK
    return 20 * MIB if size < _LARGE else -(-size // _BLOCK) * _BLOCK
