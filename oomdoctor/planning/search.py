"""The combinations of changes that make a run fit, each as small as it can be.

Sets of changes are looked at from the smallest on. A set that holds one that fits already is never looked at: it would change
more for nothing. Of micro batches only the largest that fits is of interest, and where the smallest does not fit none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from math import prod

from msgspec import Struct

from oomdoctor.case.estimate import Estimate, Setup
from oomdoctor.case.plan import Measure, Plan, Room
from oomdoctor.planning.options import RISKS, Option, batches, is_possible, subjects
from oomdoctor.planning.room import fits, needed
from oomdoctor.planning.speed import seconds

_MOST = 5
"""Subjects that one plan changes beside the batch: longer lists nobody follows."""
_MATTERS = 0.005
"""A change is left out where it lowers no phase by this share of the card, alone or beside all others."""


class Search(Struct, frozen=True):
    """Everything that was found."""

    plans: tuple[Plan, ...]
    """Every smallest combination that fits, the gentlest first."""
    closest: Plan
    """The one that needs the least, whether it fits or not."""
    combinations: int
    looked_at: int


class _Progress(Struct):
    """What is known in the middle of a search."""

    before: float
    """Seconds of an update today."""
    closest: Plan
    plans: list[Plan] = []
    fitting: list[tuple[frozenset[Measure], int]] = []
    """Sets of changes that fit, and the largest micro batch with which they do."""
    looked_at: int = 0


def anything(fix: str) -> bool:  # noqa: ARG001 - what a framework has is asked fix by fix
    """Every fix can be done: what is taken where no framework is known."""
    return True


def search(setup: Setup, room: Room, can: Callable[[str], bool] = anything, *, first: bool = False) -> Search:
    """All smallest combinations of changes with which the run fits; the empty one where it fits as it is.

    The data are cut only where nothing else helps. `can` says which fixes the run's framework has; `first`: any one plan is enough.
    """
    found = _search(setup, room, can, first=first, last_resort=False)
    return found if found.plans else _search(setup, room, can, first=first, last_resort=True)


def _search(setup: Setup, room: Room, can: Callable[[str], bool], *, first: bool, last_resort: bool) -> Search:
    smaller = batches(setup)
    ways = _mattering(setup, subjects(setup, room.capability, can, last_resort=last_resort), smaller, room)
    before = seconds(setup)
    known = _Progress(before, _plan((), needed(setup, room), setup, before))
    for picked in _sets(ways):
        _look(setup, picked, smaller, room, known)
        if first and known.plans:
            break
    combinations = prod(len(subject) + 1 for subject in ways) * (len(smaller) + 1)
    return Search(tuple(ranked(known.plans)), known.closest, combinations, known.looked_at)


def _sets(ways: Sequence[Sequence[Option]]) -> Iterator[tuple[Option, ...]]:
    """Every choice of options of different subjects, a set before all that hold it."""
    for size in range(min(_MOST, len(ways)) + 1):
        for chosen in combinations(ways, size):
            yield from product(*chosen)


def ranked(plans: Sequence[Plan]) -> list[Plan]:
    """What trains something else or cuts the data comes last; before that the fewest changes, then the least harm."""
    return sorted(plans, key=lambda plan: (max(1, _place(plan)), len(plan.measures), _steps(plan), _place(plan), plan.effort, plan.time))


def undominated(plans: Sequence[Plan]) -> list[Plan]:
    """The plans than which no other is better, or as good with the same fixes: in changes, time, risk and effort."""
    return [one for number, one in enumerate(plans) if not any(_dominates(other, one, at < number) for at, other in enumerate(plans))]


def _dominates(one: Plan, other: Plan, comes_first: bool) -> bool:
    mine, theirs = costs(one), costs(other)
    if mine == theirs:
        return comes_first and {measure.fix for measure in one.measures} == {measure.fix for measure in other.measures}
    return all(left <= right for left, right in zip(mine, theirs, strict=True))


def costs(plan: Plan) -> tuple[int, ...]:
    """What a plan costs: risk, changes, time, effort."""
    return _place(plan), len(plan.measures), _steps(plan), plan.effort


def _place(plan: Plan) -> int:
    return RISKS.index(plan.risk)


def _steps(plan: Plan) -> int:
    """Time in steps of five per cent: the model is no finer."""
    return round(plan.time * 20)


def _look(setup: Setup, options: tuple[Option, ...], smaller: Sequence[Option], room: Room, known: _Progress) -> None:
    """Looks at one set of changes with every micro batch that could still make a difference."""
    measures = frozenset(measure for option in options for measure in option.measures)
    reached = max((batch for others, batch in known.fitting if others <= measures), default=0)
    if reached >= setup.batch:
        return
    changed = reduce(lambda made, option: option.applied(made), options, setup)
    if not is_possible(changed):
        return
    tries = [options, *((*options, one) for one in smaller if one.fields["batch"] > reached)]
    plan = _first_fitting(setup, tries, room, known)
    if plan is not None:
        known.plans.append(plan)
        known.fitting.append((measures, plan.estimate.setup.batch))


def _first_fitting(setup: Setup, tries: Sequence[tuple[Option, ...]], room: Room, known: _Progress) -> Plan | None:
    """The first of `tries` that fits. Behind the first one batches fall: where the last does not fit none of them does."""
    tried = dict[int, Plan]()
    for number in (0, len(tries) - 1, *range(1, len(tries) - 1)):
        plan = tried[number] = _tried(setup, tries[number], room, known)
        fitting = fits(plan.estimate, room) == "yes"
        if fitting and number != len(tries) - 1:
            return plan
        if not fitting and number == len(tries) - 1:
            return None
    return tried[len(tries) - 1]


def _tried(setup: Setup, options: tuple[Option, ...], room: Room, known: _Progress) -> Plan:
    changed = reduce(lambda made, option: option.applied(made), options, setup)
    plan = _plan(options, needed(changed, room), changed, known.before)
    known.looked_at += 1
    if plan.estimate.high < known.closest.estimate.high:
        known.closest = plan
    return plan


def _mattering(setup: Setup, ways: Sequence[Sequence[Option]], smaller: Sequence[Option], room: Room) -> list[tuple[Option, ...]]:
    """The options that lower what some phase needs: in the run as it is, or where everything else is changed already."""
    gentle = [options[-1] for options in ways]
    out = []
    for own in ways:
        around = setup
        for option in (*(one for one in gentle if one not in own), *smaller[-1:]):
            around = option.applied(around)
        kept = tuple(option for option in own if any(_lowers(base, option, room) for base in (setup, around)))
        if kept:
            out.append(kept)
    return out


def _lowers(base: Setup, option: Option, room: Room) -> bool:
    before = {phase.name: phase.bytes for phase in needed(base, room).phases}
    after = {phase.name: phase.bytes for phase in needed(option.applied(base), room).phases}
    return any(size - after.get(name, 0) > _MATTERS * room.total for name, size in before.items())


def _plan(options: Sequence[Option], estimate: Estimate, changed: Setup, before: float) -> Plan:
    return Plan(
        measures=tuple(measure for option in options for measure in option.measures),
        estimate=estimate,
        time=seconds(changed) / before,
        risk=RISKS[max((option.risk for option in options), default=0)],
        effort=sum(option.effort for option in options),
    )
