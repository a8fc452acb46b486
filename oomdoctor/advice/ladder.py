"""What to do if the first step is not enough: the next one up in harm, not a variant of the same one."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.diagnosis import Fix


def ladder(fixes: Sequence[Fix]) -> list[Fix]:
    """Return the fixes in order, with those last that lower the same memory at the same cost as an earlier one.

    A fix with settings from this run has a known value, so it is not a mere variant.
    """
    steps: list[Fix] = []
    variants: list[Fix] = []
    for fix in fixes:
        is_variant = bool(fix.terms) and not fix.settings and any(_is_same(fix, step) for step in steps)
        (variants if is_variant else steps).append(fix)
    return [*steps, *variants]


def _is_same(fix: Fix, step: Fix) -> bool:
    return fix.harm == step.harm and set(fix.terms) == set(step.terms)
