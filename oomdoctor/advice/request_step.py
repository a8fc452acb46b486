"""The largest value of a setting with which a failed request fits: the request scaled by the power with which it grows.

A request that is the only one of its kind (a compute buffer, a cache) must fit into what was free. One of many that grow alike (the
activations of a layer, the copies of the logits) makes the others smaller with it: if it alone would have to shrink to less than half,
half of the setting is the next value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log2

from msgspec import Struct

from oomdoctor.advice.settings import number
from oomdoctor.case.request import FailingRequest
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.records.fix import SettingRecord

_MARGIN = 0.9
"""The fraction of the free memory that a request may use: sizes are rounded up, and another request follows."""
_STEPS = ((1024, 256), (256, 64), (64, 8))
"""From each of these values up, people write multiples of the second number."""
_LOWERING = ("divide", "at-most", "fitting")
"""Rule keywords that make a value smaller."""


class FittedValue(Struct, frozen=True):
    """A value for a setting, and how much smaller it makes the request."""

    value: float
    frees: int | None
    """None if the size of the request is unknown."""


def fitted_values(
    rows: Sequence[SettingRecord], request: FailingRequest, facts: Mapping[str, Fact], *, is_alone: bool = False
) -> dict[str, FittedValue]:
    """Return the values of settings that make a request smaller, by the names that all frameworks share.

    Excluded are values already at their minimum, values in force that are unknown, and those that the message itself implies.
    `is_alone`: nothing else grows with these settings.
    """
    powers = {growth.quantity: growth.power for growth in request.grows_with}
    out: dict[str, FittedValue] = {}
    for row in rows:
        power = powers.get(row.sets or "", 0)
        was = _in_force(row, request, facts)
        computed = row.change == "fitting" and all(number(facts.get(name)) is not None for name in row.facts)
        if row.sets is not None and power > 0 and was is not None and row.change in _LOWERING and not computed:
            least = 1.0 if row.least is None else float(row.least)
            fitted = _fitted(was, power, max(least, 1.0), request, is_alone=is_alone)
            if fitted is not None:
                out.setdefault(row.sets, fitted)
    return out


def rows_that_change(rows: Sequence[SettingRecord], request: FailingRequest) -> list[SettingRecord]:
    """Return the rows of a fix that change a request: those of quantities it grows with, if there are any, and those that go with them."""
    growing = {growth.quantity for growth in request.grows_with}
    if not any(row.sets in growing for row in rows):
        return list(rows)
    return [row for row in rows if row.sets in growing or row.along]


def _in_force(row: SettingRecord, request: FailingRequest, facts: Mapping[str, Fact]) -> float | None:
    """Return the value in force: from the message of the failure, or otherwise from config and log."""
    stated = number(facts.get(row.was or ""))
    if stated is not None:
        return stated
    return next((number(known.value) for known in request.in_force if known.setting == row.sets), None)


def _fitted(was: float, power: float, least: float, request: FailingRequest, *, is_alone: bool) -> FittedValue | None:
    """Return the next smaller value; None if it would be below the smallest sensible one."""
    value = _rounded(_next(was, power, request, is_alone=is_alone), was)
    if value < least:
        value = least
    if value >= was:
        return None
    frees = None if request.size is None else int(request.size * (1 - (value / was) ** power))
    return FittedValue(value, frees)


def _next(was: float, power: float, request: FailingRequest, *, is_alone: bool) -> float:
    half = was / 2 ** (1 / power) if power > 1 else was / 2
    size, missing = request.size, request.missing
    if not size or missing is None:
        return half
    fits = was * float(max(0.0, (size - missing) * _MARGIN / size) ** (1 / power))
    return fits if is_alone and fits > 0 else max(fits, half)


def _rounded(value: float, was: float) -> float:
    """Return a value rounded down as a person writes it: a power of two if the old one is one."""
    if was <= 1:
        return floor(value * 100 + 1e-6) / 100
    if value >= 1 and _is_power_of_two(was):
        return float(2 ** floor(log2(value)))
    step = next((step for least, step in _STEPS if value >= least), 1)
    return float(value // step * step)


def _is_power_of_two(value: float) -> bool:
    return value == int(value) and int(value) & (int(value) - 1) == 0
