"""How much of a card a plan may use, and whether a run fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Event, Value
from oomdoctor.case.plan import Fit, Fits, MemoryBudget
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import Card, card_named, version
from oomdoctor.memory.estimate import needed as needed_of

_USABLE = 0.97
"""Cards of one name differ by one to three per cent with ECC, with a display, with the driver's version."""


def memory_budget(card: Card) -> MemoryBudget:
    """The budget of a card."""
    return MemoryBudget(card.name, card.bytes, int(card.bytes * _USABLE), version(card.capability))


def budget_of_card(roots: Sequence[Event], log: Mapping[str, Value]) -> MemoryBudget | None:
    """The card of the first message that says its size, and what the process had there outside of torch."""
    root = next((one for one in roots if one.size("total_bytes")), None)
    if root is None:
        return None
    parts = [root.size(name) for name in ("process_bytes", "allocated_bytes", "reserved_unallocated_bytes")]
    outside = None if None in parts else (parts[0] or 0) - (parts[1] or 0) - (parts[2] or 0)
    name = str(log.get("log.gpu_name", ""))
    known = card_named(name) if name else None
    measured = outside if outside is not None and outside > 0 else None
    total = root.size("total_bytes") or 0
    return MemoryBudget(name, total, int(total * _USABLE) - (measured or 0), version(known.capability if known else ""), measured)


def without(within: MemoryBudget, unexplained: int) -> MemoryBudget:
    """The budget without bytes that a log shows and no setting explains: whatever takes them takes them again."""
    return replace(within, usable=max(0, within.usable - unexplained), unexplained=unexplained)


def needed(setup: Setup, within: MemoryBudget) -> Estimate:
    """What a run needs in this budget so that no request fails; what a log shows outside of torch is taken off the budget already."""
    return needed_of(setup, outside=within.outside is None)


def judge_fit(setup: Setup, within: MemoryBudget) -> Fit:
    """Whether a run fits in this budget: the one verdict of all commands."""
    need = needed(setup, within)
    return Fit(budget=within, needed=need, fits=fits(need, within))


def fits(found: Estimate, within: MemoryBudget) -> Fits:
    """`yes`: the most that it may need is there; `no`: even the least is not; else `close`."""
    return (
        "yes" if found.high <= within.usable else "no" if found.low > within.total - (within.outside or 0) - within.unexplained else "close"
    )
