"""The smallest sets of changes with which a server starts.

As for training, a set that holds a fitting one is never looked at. Of one subject the first value that helps counts: they are
ordered by how near they are to the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from msgspec.structs import replace

from oomdoctor.case.plan import Measure, MemoryBudget, Risk
from oomdoctor.case.serving import Served, ServedObstacle, ServedPlan, ServedPlans
from oomdoctor.knowledge.tables.cards import sizes
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.serving_options import Deployment, Way, harm, ways

_MOST = 3
"""Subjects that one plan changes."""
_MOST_CARDS = 64
_RISKS: tuple[Risk, ...] = ("none", "slight", "different", "data")


def plans(now: Deployment, within: MemoryBudget, can: Callable[[str], bool] = lambda _: True, *, top: int = 5) -> ServedPlans:
    """What makes the server start, the gentlest first and `top` at most; where nothing does, what would."""
    found = now.served()
    if found.starts == "yes":
        return ServedPlans(room=within, now=found)
    tried, fitting, closest = _search(now, can)
    wall = None if fitting else ServedObstacle(closest=closest[1], card=_card(closest[0]), cards=_cards(now, can))
    return ServedPlans(room=within, now=found, plans=tuple(fitting[:top]), wall=wall, combinations=tried)


def _search(now: Deployment, can: Callable[[str], bool]) -> tuple[int, list[ServedPlan], tuple[Deployment, ServedPlan]]:
    """How many sets were looked at, those that fit, and the nearest one with its deployment."""
    subjects = [found for options in ways(now) if (found := [one for one in options if can(harm(one.subject).fix)])]
    nearest = now, _plan((), now, now.served())
    fitting: list[tuple[frozenset[int], ServedPlan]] = []
    tried = 0
    for chosen in _sets(range(len(subjects))):
        if any(known <= frozenset(chosen) for known, _ in fitting):
            continue
        for picked in product(*(subjects[number] for number in chosen)):
            after = _applied(now, picked)
            if after is None:
                continue
            tried += 1
            plan = _plan(picked, after, after.served())
            if plan.served.starts == "yes":
                fitting.append((frozenset(chosen), plan))
                break
            if _worst(plan.served) > _worst(nearest[1].served):
                nearest = after, plan
    return tried, _ranked([plan for _, plan in fitting]), nearest


def _sets(subjects: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, _MOST + 1):
        yield from combinations(subjects, size)


def _applied(now: Deployment, picked: Sequence[Way]) -> Deployment | None:
    after: Deployment | None = now
    for one in picked:
        after = None if after is None else one.apply(after)
    return after


def _plan(picked: Sequence[Way], after: Deployment, found: Served) -> ServedPlan:
    measures: tuple[Measure, ...] = tuple(one.measure(after) for one in picked)
    costs = [harm(one.subject) for one in picked]
    risk = max((_RISKS.index(one.risk) for one in costs), default=0)
    return ServedPlan(measures=measures, served=found, risk=_RISKS[risk], effort=sum(one.effort for one in costs))


def _worst(found: Served) -> int:
    """The least that is left at any hurdle."""
    return min(one.spare.low for one in found.hurdles)


def _ranked(found: Sequence[ServedPlan]) -> list[ServedPlan]:
    """The fewest changes first, then the least effort; what is worse in both and in risk is left out."""
    ordered = sorted(found, key=_costs)
    return [one for n, one in enumerate(ordered) if not any(_beats(other, one) for other in ordered[:n])]


def _costs(one: ServedPlan) -> tuple[int, int, int]:
    return len(one.measures), one.effort, _RISKS.index(one.risk)


def _beats(one: ServedPlan, other: ServedPlan) -> bool:
    """Whether a plan is better everywhere: one change that helps alone beats several of the same or more harm."""
    return len(one.measures) < len(other.measures) and one.effort <= other.effort and _RISKS.index(one.risk) <= _RISKS.index(other.risk)


def _card(nearest: Deployment) -> str | None:
    """The smallest card on which the nearest set starts."""
    return next((one.name for one in sizes() if replace(nearest, total=memory_budget(one).total).served().starts == "yes"), None)


def _cards(now: Deployment, can: Callable[[str], bool]) -> int | None:
    """How many of these cards would do, in doublings."""
    number = now.setup.layout.cards * 2
    while number <= _MOST_CARDS:
        more = replace(now, setup=replace(now.setup, layout=replace(now.setup.layout, cards=number)))
        if _search(more, can)[1]:
            return number
        number *= 2
    return None
