"""From a run and its cards to the plans that are shown, or to what stands in the way."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget, Obstacle, Plan, Plans
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import sizes
from oomdoctor.planning.memory_budget import fits, memory_budget, needed
from oomdoctor.planning.search import anything, search, undominated

_MOST_CARDS = 64
"""More cards than that are no advice for somebody who asks about a few."""


def plans(setup: Setup, within: MemoryBudget, can: Callable[[str], bool] = anything, *, top: int = 5) -> Plans:
    """What makes the run fit, the gentlest first and `top` at most; where nothing does, what would.

    `can` says which fixes the run's framework has.
    """
    now = needed(setup, within)
    verdict = fits(now, within)
    if verdict == "yes":
        return Plans(room=within, now=now, fits=verdict)
    found = search(setup, within, can)
    return Plans(
        room=within,
        now=now,
        fits=verdict,
        plans=tuple(undominated(found.plans)[:top]),
        wall=None if found.plans else _wall(now, within, can, found.closest),
        combinations=found.combinations,
    )


def _wall(now: Estimate, within: MemoryBudget, can: Callable[[str], bool], closest: Plan) -> Obstacle:
    peak = max(closest.estimate.phases, key=lambda phase: phase.bytes)
    spread = _enough_cards(now.setup, within, can)
    return Obstacle(
        closest=closest,
        term=max(peak.terms, key=lambda term: term.bytes).name,
        fits=fits(closest.estimate, within),
        card=_smallest_card(closest.estimate),
        card_now=_smallest_card(now),
        cards=None if spread is None else spread.estimate.setup.layout.cards,
        on_cards=spread,
    )


def _smallest_card(found: Estimate) -> str | None:
    return next((one.name for one in sizes() if memory_budget(one).usable >= found.high), None)


def _enough_cards(setup: Setup, within: MemoryBudget, can: Callable[[str], bool]) -> Plan | None:
    """The gentlest plan with as few more of these cards as will do, in doublings."""
    number = setup.layout.cards * 2
    while number <= _MOST_CARDS:
        engine = "ddp" if setup.layout.engine == "none" and setup.task == "train" else setup.layout.engine
        more = replace(setup, layout=replace(setup.layout, cards=number, engine=engine))
        if (found := search(more, within, can).plans) and found[0].risk != "data":
            return found[0]
        number *= 2
    return None
