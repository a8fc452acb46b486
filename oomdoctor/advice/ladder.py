"""What to do where the first step is not enough: the next one up in harm, not the same once more in another way."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.diagnosis import Fix


def ladder(fixes: Sequence[Fix]) -> list[Fix]:
    """Return the fixes with those last that lower the same memory at the same cost as one before, in their order.

    Of a fix with settings of this run the value is known, so that it is no mere variant.
    """
    steps: list[Fix] = []
    variants: list[Fix] = []
    for fix in fixes:
        is_variant = bool(fix.terms) and not fix.settings and any(_is_same(fix, step) for step in steps)
        (variants if is_variant else steps).append(fix)
    return [*steps, *variants]


def _is_same(fix: Fix, step: Fix) -> bool:
    return fix.harm == step.harm and set(fix.terms) == set(step.terms)
