"""The combinations of changes that make a run fit, each as small as it can be.

Sets of changes are looked at from the smallest on. A set that holds one that fits already is never looked at: it would change
more for nothing. Of micro batches only the largest that fits is of interest, and where the smallest does not fit none does. The search
ends a step after the first set that fits, is not slow and trains what was to be trained: who can do with two changes makes no four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Measure, MemoryBudget, Plan
from oomdoctor.case.setup import Setup
from oomdoctor.planning.incompatible import incompatible
from oomdoctor.planning.memory_budget import fits, needed
from oomdoctor.planning.options import RISKS, Option, batches, lengths, subjects
from oomdoctor.planning.step_time import seconds

_MOST = 5
"""Subjects that one plan changes beside the batch: longer lists nobody follows."""
_SLOW = 2.0
"""Times as long as today, from which on a plan comes behind others and is no reason to stop looking for them."""
_FURTHER = 1
"""Subjects more than in the smallest set that fits."""
_SLIGHT = 8
"""Steps of time that a little quality is worth: two fifths of today's."""
_HOST = 32 << 30
"""Bytes of host memory that make a difference: what a machine with cards has to spare without a thought."""
_HOST_STEPS = 2
"""Steps of time that each of these is worth, as nobody here knows whether the machine has them."""
_MATTERS = 0.005
"""A change is left out where it lowers no phase by this share of the card, alone or beside all others."""


_KEEPING = ("none", "slight")
"""Risks of plans that train what was to be trained."""


class Search(Struct, frozen=True):
    """Everything that was found."""

    plans: tuple[Plan, ...]
    """Every smallest combination that fits, the gentlest first."""
    closest: Plan
    """The one that needs the least, whether it fits or not."""
    combinations: int
    looked_at: int


class _SearchProgress(Struct):
    """What is known in the middle of a search."""

    before: float
    """Seconds of an update today."""
    closest: Plan
    refused: frozenset[str]
    """What programs do not take in the run as it is: that it runs shows that its program does."""
    plans: list[Plan] = []
    fitting: list[tuple[frozenset[Measure], int]] = []
    """Sets of changes that fit, and the largest micro batch with which they do."""
    looked_at: int = 0


def anything(fix: str) -> bool:  # noqa: ARG001 - what a framework has is asked fix by fix
    """Every fix can be done: what is taken where no framework is known."""
    return True


def search(setup: Setup, room: MemoryBudget, can: Callable[[str], bool] = anything, *, first: bool = False) -> Search:
    """All smallest combinations of changes with which the run fits; the empty one where it fits as it is.

    The data are cut only where nothing else helps. `can` says which fixes the run's framework has; `first`: any one plan is enough.
    """
    smaller, before = batches(setup), seconds(setup)
    ways = _mattering(setup, subjects(setup, room.capability, can), smaller, room)
    known = _SearchProgress(before, _plan((), needed(setup, room), setup, before), incompatible(setup, room.capability))
    cuts = [(), *((option,) for option in lengths(setup, can))]
    decided = 0
    for number, cut in enumerate(cuts):
        # Behind the first one something fits only with the cut, as without it nothing did.
        decided += prod(len(subject) + 1 for subject in ways) * (len(smaller) + 1)
        for picked in _sets(ways, known):
            _look(setup, (*picked, *cut), smaller, room, known)
            if first and known.plans:
                break
        if known.plans and (not number or first):
            break
    return Search(tuple(ranked(known.plans)), known.closest, decided, known.looked_at)


def _sets(ways: Sequence[Sequence[Option]], known: _SearchProgress) -> Iterator[tuple[Option, ...]]:
    """Every choice of options of different subjects, a set before all that hold it, until larger ones are of no interest."""
    last = min(_MOST, len(ways))
    for size in range(last + 1):
        if size > last:
            return
        for chosen in combinations(ways, size):
            yield from product(*chosen)
        if any(plan.risk in _KEEPING and plan.time <= _SLOW for plan in known.plans):
            last = min(last, size + _FURTHER)


def ranked(plans: Sequence[Plan]) -> list[Plan]:
    """What trains something else or cuts the data comes last, before it what is slow; then the fewest changes, then the least harm."""

    def order(plan: Plan) -> tuple[float, ...]:
        worst, changes, steps, effort, host = costs(plan)
        return max(1, worst), plan.time > _SLOW, changes, steps + _SLIGHT * min(1, worst) + _HOST_STEPS * host, worst, effort, plan.time

    return sorted(plans, key=order)


def undominated(plans: Sequence[Plan]) -> list[Plan]:
    """The plans than which no other is better, or as good with the same fixes: in changes, time, risk, effort and host memory."""
    return [one for number, one in enumerate(plans) if not any(_dominates(other, one, at < number) for at, other in enumerate(plans))]


def _dominates(one: Plan, other: Plan, comes_first: bool) -> bool:
    mine, theirs = costs(one), costs(other)
    if mine == theirs:
        return comes_first and {measure.fix for measure in one.measures} == {measure.fix for measure in other.measures}
    return all(left <= right for left, right in zip(mine, theirs, strict=True))


def costs(plan: Plan) -> tuple[int, ...]:
    """What a plan costs: risk, changes, time, effort, host memory."""
    return _place(plan), len(plan.measures), _steps(plan), plan.effort, plan.estimate.host // _HOST


def _place(plan: Plan) -> int:
    return RISKS.index(plan.risk)


def _steps(plan: Plan) -> int:
    """Time in steps of five per cent: the model is no finer."""
    return round(plan.time * 20)


def _look(setup: Setup, options: tuple[Option, ...], smaller: Sequence[Option], room: MemoryBudget, known: _SearchProgress) -> None:
    """Looks at one set of changes with every micro batch that could still make a difference."""
    measures = frozenset(measure for option in options for measure in option.measures)
    reached = max((batch for others, batch in known.fitting if others <= measures), default=0)
    if reached >= setup.batch:
        return
    changed = _applied(setup, options)
    if not incompatible(changed, room.capability) <= known.refused:
        return
    smaller = () if changed.optimizer.in_backward else smaller  # Smaller batches are accumulated, and that cannot be.
    tries = [options, *((*options, one) for one in smaller if one.fields["batch"] > reached)]
    plan = _first_fitting(setup, tries, room, known)
    if plan is not None:
        known.plans.append(plan)
        known.fitting.append((measures, plan.estimate.setup.batch))


def _first_fitting(setup: Setup, tries: Sequence[tuple[Option, ...]], room: MemoryBudget, known: _SearchProgress) -> Plan | None:
    """The first of `tries` that fits. Batches fall from one to the next: where the last does not fit none of them does."""
    last = _tried(setup, tries[-1], room, known)
    if fits(last.estimate, room) != "yes":
        return None
    larger = (_tried(setup, one, room, known) for one in tries[:-1])
    return next((plan for plan in larger if fits(plan.estimate, room) == "yes"), last)


def _tried(setup: Setup, options: tuple[Option, ...], room: MemoryBudget, known: _SearchProgress) -> Plan:
    changed = _applied(setup, options)
    plan = _plan(options, needed(changed, room), changed, known.before)
    known.looked_at += 1
    if plan.estimate.high < known.closest.estimate.high:
        known.closest = plan
    return plan


def _applied(setup: Setup, options: Sequence[Option]) -> Setup:
    """The setup with all of them. What puts cards together multiplies the accumulation that a smaller batch leaves, so it comes last."""
    return reduce(lambda made, option: option.applied(made), sorted(options, key=lambda option: option.together), setup)


def _mattering(setup: Setup, ways: Sequence[Sequence[Option]], smaller: Sequence[Option], room: MemoryBudget) -> list[tuple[Option, ...]]:
    """The options that lower what some phase needs: in the run as it is, with its smallest batch, or where all else is changed."""
    gentle = [options[-1] for options in ways]
    few = [option.applied(setup) for option in smaller[-1:]]
    out = []
    for own in ways:
        around = setup
        for option in (*(one for one in gentle if one not in own), *smaller[-1:]):
            around = option.applied(around)
        kept = tuple(option for option in own if any(_lowers(base, option, room) for base in (setup, *few, around)))
        if kept:
            out.append(kept)
    return out


def _lowers(base: Setup, option: Option, room: MemoryBudget) -> bool:
    """Whether an option lowers a phase, or what the run may need at most: it can settle what nobody knows."""
    now, then = needed(base, room), needed(option.applied(base), room)
    after = {phase.name: phase.bytes for phase in then.phases}
    saved = max(now.high - then.high, *(phase.bytes - after.get(phase.name, 0) for phase in now.phases))
    return saved > _MATTERS * room.total


def _plan(options: Sequence[Option], estimate: Estimate, changed: Setup, before: float) -> Plan:
    return Plan(
        measures=tuple(_settled(measure, changed) for option in options for measure in option.measures),
        estimate=estimate,
        time=seconds(changed) / before,
        risk=RISKS[max((option.risk for option in options), default=0)],
        effort=sum(option.effort for option in options),
    )


def _settled(measure: Measure, changed: Setup) -> Measure:
    """The measure with the accumulation that all measures together lead to."""
    if "accumulation" not in dict(measure.sets):
        return measure
    return replace(measure, sets=tuple((name, changed.accumulation if name == "accumulation" else to) for name, to in measure.sets))
