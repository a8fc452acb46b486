"""From a run or a server and its GPU to the plans that are shown, or to the obstacle."""

from __future__ import annotations

from oomdoctor.case.plan import Obstacle, Plan, Plans
from oomdoctor.knowledge.tables.cards import sizes
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.options import Candidate
from oomdoctor.planning.search import Outcome, SearchSpace, search, undominated

_MOST_CARDS = 64
"""More GPUs than that are not useful advice for someone who asks about a few."""


def plans(space: SearchSpace[Candidate, Outcome], *, top: int = 5, also_dominated: bool = False) -> Plans[Outcome]:
    """Return what makes a run fit or a server start, the gentlest first and at most `top`; if nothing does, what would.

    With `also_dominated`, plans that are worse than another in every way follow.
    """
    now = space.evaluate(space.now)
    verdict = space.fits(now)
    if verdict == "yes":
        return Plans(budget=space.budget, now=now, fits=verdict)
    result = search(space)
    best = undominated(space, result.plans)
    others = [plan for plan in result.plans if plan not in best] if also_dominated else []
    return Plans(
        budget=space.budget,
        now=now,
        fits=verdict,
        plans=(*best, *others)[:top],
        obstacle=None if result.plans else _obstacle(space, now, result.closest),
        combinations=result.combinations,
    )


def _obstacle(space: SearchSpace[Candidate, Outcome], now: Outcome, closest: Plan[Outcome]) -> Obstacle[Outcome]:
    cards, plan = _enough_cards(space, now) or (None, None)
    return Obstacle(
        closest=closest,
        fits=space.fits(closest.outcome),
        card=_smallest_card(space, closest.outcome),
        card_now=_smallest_card(space, now),
        cards=cards,
        on_cards=plan,
    )


def _smallest_card(space: SearchSpace[Candidate, Outcome], outcome: Outcome) -> str | None:
    return next((card.name for card in sizes() if space.fits_card(outcome, memory_budget(card))), None)


def _enough_cards(space: SearchSpace[Candidate, Outcome], now: Outcome) -> tuple[int, Plan[Outcome]] | None:
    """Return the smallest sufficient increase of these GPUs, in doublings, with the gentlest plan."""
    cards = now.setup.layout.cards * 2
    while cards <= _MOST_CARDS:
        enough = search(space.on_cards(cards)).plans
        if enough and enough[0].risk not in space.limits.avoided:
            return cards, enough[0]
        cards *= 2
    return None
