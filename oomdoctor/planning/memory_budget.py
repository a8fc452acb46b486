"""Calculate how much of a GPU a plan may use, and whether a run fits."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Event, Value
from oomdoctor.case.plan import Fit, Fits, MemoryBudget
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import Card, card_named, parse_capability
from oomdoctor.memory.estimate import needed as needed_of
from oomdoctor.memory.rollout import on_card

_USABLE = 0.97
"""GPUs with the same name differ by one to three percent depending on ECC, an attached display, and the driver version."""


def memory_budget(card: Card) -> MemoryBudget:
    """Return the budget of a GPU."""
    return MemoryBudget(card.name, card.bytes, int(card.bytes * _USABLE), parse_capability(card.capability))


def budget_from_log(root: Event, log: Mapping[str, Value]) -> MemoryBudget | None:
    """Return the budget of the GPU in a failure, minus what the process had there outside torch; None if its size is unknown."""
    name = str(log.get("log.gpu_name", ""))
    card = card_named(name) if name else None
    total = root.size("total_bytes") or (card.bytes if card is not None else None)
    if not total:
        return None
    process, allocated, reserved = (root.size(name) for name in ("process_bytes", "allocated_bytes", "reserved_unallocated_bytes"))
    known = process is not None and allocated is not None and reserved is not None
    outside = max(0, (process or 0) - (allocated or 0) - (reserved or 0)) if known else 0
    return MemoryBudget(name, total, int(total * _USABLE) - outside, parse_capability(card.capability if card else ""), outside or None)


def needed(setup: Setup, budget: MemoryBudget) -> Estimate:
    """Estimate what a run needs for no request to fail; memory that a log shows outside torch is already subtracted from the budget."""
    return needed_of(on_card(setup, budget.total), outside=budget.outside is None)


def judge_fit(setup: Setup, budget: MemoryBudget) -> Fit:
    """Judge whether a run fits a budget: the one verdict of all commands."""
    estimate = needed(setup, budget)
    return Fit(budget=budget, needed=estimate, fits=fits(estimate, budget))


def fits(estimate: Estimate, budget: MemoryBudget) -> Fits:
    """Return `yes` if the maximum that a run may need is available, `no` if not even the minimum is, otherwise `close`."""
    if estimate.high <= budget.usable:
        return "yes"
    return "no" if estimate.low > budget.usable else "close"
