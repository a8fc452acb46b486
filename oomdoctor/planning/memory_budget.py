"""Work out how much of a card a plan may use, and whether a run fits."""

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
"""Cards of one name differ by one to three per cent with ECC, with a display, with the driver's version."""


def memory_budget(card: Card) -> MemoryBudget:
    """Return the budget of a card."""
    return MemoryBudget(card.name, card.bytes, int(card.bytes * _USABLE), parse_capability(card.capability))


def budget_from_log(root: Event, log: Mapping[str, Value]) -> MemoryBudget | None:
    """Return the budget of the card of a failure, without what the process had there outside of torch; None where its size is unknown."""
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
    """Estimate what a run needs so that no request fails; what a log shows outside of torch is taken off the budget already."""
    return needed_of(on_card(setup, budget.total), outside=budget.outside is None)


def judge_fit(setup: Setup, budget: MemoryBudget) -> Fit:
    """Judge whether a run fits a budget: the one verdict of all commands."""
    estimate = needed(setup, budget)
    return Fit(budget=budget, needed=estimate, fits=fits(estimate, budget))


def fits(estimate: Estimate, budget: MemoryBudget) -> Fits:
    """Return `yes` where the most that a run may need is there, `no` where even the least is not, else `close`."""
    if estimate.high <= budget.usable:
        return "yes"
    return "no" if estimate.low > budget.usable else "close"
