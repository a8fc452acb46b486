"""The moment of a failure in its run: the step shown by progress, and what the settings do at that step."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.findings.conditions import Fact

_FIRST = 2
"""The optimizer creates its states at its first step; with a warm-up that skips steps it can be the second."""


def failure_step(step: int | None, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return `derived.step` and what happens at it: evaluation, a save, the first steps, a late failure; unknown settings leave it open.

    A bar shows the last finished step; evaluation and saving come after it, so step 500 of `eval_steps: 500` fails in evaluation.
    """
    if step is None:
        return {}
    out: dict[str, Fact] = {"derived.step": step, "derived.step_is_first": step < _FIRST, "derived.step_is_late": step >= 100}
    for what, name in (("eval", "eval_steps"), ("save", "save_steps")):
        every = _whole(facts.get(f"training.{name}", facts.get(f"log.{name}")))
        if every:
            out[f"derived.step_is_{what}"] = step > 0 and step % every == 0
    return out


def _whole(value: Fact) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        # A share of all steps (eval_steps: 0.1) says nothing without their number.
        return int(value) if value >= 1 else None
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else None
