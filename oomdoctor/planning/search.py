"""Search for the smallest combinations of changes that make a run fit or a server start.

Sets of changes are considered in order of size. A set that contains one that already fits is skipped: it would change
more for nothing. Of micro-batches only the largest that fits matters, and if the smallest does not fit, none does. The search
ends one step after the first good set that fits: nobody who can manage with two changes makes four.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, product
from typing import ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.plan import RISKS, Fits, Measure, MemoryBudget, Plan, Risk
from oomdoctor.case.settings import Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.planning.options import Candidate, Option, applied


class HasSetup(Protocol):
    """The part of an estimate, or of a server's use of a GPU, that is read here."""

    @property
    def setup(self) -> Setup:
        """The setup that it is about."""
        ...


Outcome = TypeVar("Outcome", bound=HasSetup)


class SearchLimits(Struct, frozen=True, kw_only=True):
    """Where a search begins and ends."""

    fewest: int
    most: int
    """The maximum number of subjects that one plan changes besides the batch: nobody follows longer lists."""
    further: int
    """Additional subjects beyond the smallest good set that are considered."""
    alternatives: bool
    """Whether plans with equally many changes are all shown, whatever their cost."""
    avoided: frozenset[Risk]
    """Risks that disqualify a plan on more GPUs as advice."""


class SearchSpace(Protocol[Candidate, Outcome]):
    """The interface between a search and a training run or server: what can be changed, and how the result is judged."""

    limits: ClassVar[SearchLimits]

    @property
    def now(self) -> Candidate:
        """The current run or server."""
        ...

    @property
    def budget(self) -> MemoryBudget:
        """The memory it may use on its GPU."""
        ...

    def subjects(self) -> Sequence[Sequence[Option[Candidate]]]:
        """Return the options of each subject, the nearest to the current value first."""
        ...

    def cuts(self) -> Sequence[Option[Candidate]]:
        """Return options that are considered only if nothing else helps."""
        ...

    def batches(self, candidate: Candidate, above: int) -> Sequence[Option[Candidate]]:
        """Return smaller micro-batches that a candidate can have, above `above` samples, the largest first."""
        ...

    def is_compatible(self, candidate: Candidate) -> bool:
        """Return whether programs accept the combination."""
        ...

    def evaluate(self, candidate: Candidate) -> Outcome:
        """Return the outcome for a candidate."""
        ...

    def fits(self, outcome: Outcome) -> Fits:
        """Return whether that fits on the GPU."""
        ...

    def fits_card(self, outcome: Outcome, budget: MemoryBudget) -> bool:
        """Return whether it would certainly fit on another GPU."""
        ...

    def lack(self, outcome: Outcome) -> int:
        """Return bytes by which outcomes are compared: less is nearer to fitting."""
        ...

    def time(self, candidate: Candidate) -> float | None:
        """Return the time of an update, as a multiple of the current one; None if unknown."""
        ...

    def settled(self, candidate: Candidate) -> dict[str, Scalar]:
        """Return the settings whose value is determined by all measures of a plan together."""
        ...

    def decided(self, subjects: Sequence[Sequence[Option[Candidate]]], rounds: int, tried: int) -> int:
        """Return how many combinations a search decided after trying this many."""
        ...

    def order(self, plan: Plan[Outcome]) -> tuple[float, ...]:
        """Return the sort key of a plan, the gentlest first."""
        ...

    def costs(self, plan: Plan[Outcome]) -> tuple[int, ...]:
        """Return the costs of a plan, in the dimensions in which another can be better."""
        ...

    def is_sure(self, outcome: Outcome) -> bool:
        """Return whether a fit is certain whatever is unknown; a larger set is considered in addition to one that only may fit."""
        ...

    def is_good(self, plan: Plan[Outcome]) -> bool:
        """Return whether a plan is good enough to end the search soon."""
        ...

    def on_cards(self, cards: int) -> SearchSpace[Candidate, Outcome]:
        """Return the same on another number of GPUs."""
        ...


class SearchResult(Struct, Generic[Outcome], frozen=True):
    """All smallest combinations."""

    plans: tuple[Plan[Outcome], ...]
    """Every smallest combination that fits, the gentlest first."""
    closest: Plan[Outcome]
    """The one with the smallest shortfall, whether it fits or not."""
    combinations: int
    """How many were decided, most of them without being tried."""
    tried: int


class _SearchProgress(Struct, Generic[Outcome]):
    """The state of a search."""

    closest: Plan[Outcome]
    batch: int
    """The current micro-batch."""
    plans: list[Plan[Outcome]] = []
    fitting: list[tuple[frozenset[Hashable], int]] = []
    """Marks of the sets that certainly fit, and the largest micro-batch with which they do."""
    unsure: set[frozenset[Hashable]] = set()
    """Marks of the sets that only may fit: another with the same marks matters if it certainly fits."""
    tried: int = 0


def search(space: SearchSpace[Candidate, Outcome]) -> SearchResult[Outcome]:
    """Return all smallest combinations that fit; the empty one if nothing must be changed."""
    subjects, now = space.subjects(), space.evaluate(space.now)
    progress = _SearchProgress(_plan(space, (), space.now, now), now.setup.batch)
    rounds = 0
    for cut in ((), *((option,) for option in space.cuts())):
        rounds += 1
        for options in _sets(space, subjects, progress):
            _evaluate_set(space, (*options, *cut), progress)
        if progress.plans and not cut:
            break
    return SearchResult(ranked(space, progress.plans), progress.closest, space.decided(subjects, rounds, progress.tried), progress.tried)


def ranked(space: SearchSpace[Candidate, Outcome], plans: Sequence[Plan[Outcome]]) -> tuple[Plan[Outcome], ...]:
    """Return plans, the gentlest first, but preceded by the gentlest of those that certainly fit."""
    ordered = sorted(plans, key=space.order)
    first = next((plan for plan in ordered if space.is_sure(plan.outcome)), None)
    return tuple(ordered) if first is None else (first, *(plan for plan in ordered if plan is not first))


def undominated(space: SearchSpace[Candidate, Outcome], plans: Sequence[Plan[Outcome]]) -> list[Plan[Outcome]]:
    """Return the plans that no other is better than, or equally good as with the same fixes."""
    costs = [space.costs(plan) for plan in plans]

    def dominates(other: int, number: int) -> bool:
        if space.limits.alternatives and len(plans[other].measures) >= len(plans[number].measures):
            return False
        if costs[other] == costs[number]:
            return other < number and _fixes(plans[other]) == _fixes(plans[number])
        return all(less <= more for less, more in zip(costs[other], costs[number], strict=True))

    return [plan for number, plan in enumerate(plans) if not any(dominates(other, number) for other in range(len(plans)))]


def _fixes(plan: Plan[Outcome]) -> set[str]:
    return {measure.fix for measure in plan.measures}


def _sets(
    space: SearchSpace[Candidate, Outcome], subjects: Sequence[Sequence[Option[Candidate]]], progress: _SearchProgress[Outcome]
) -> Iterator[tuple[Option[Candidate], ...]]:
    """Yield every choice of options of different subjects, a set before all that contain it, until larger ones no longer matter."""
    last = min(space.limits.most, len(subjects))
    for size in range(space.limits.fewest, last + 1):
        if size > last:
            return
        for chosen in combinations(subjects, size):
            yield from product(*chosen)
        if any(map(space.is_good, progress.plans)):
            last = min(last, size + space.limits.further)


def _evaluate_set(
    space: SearchSpace[Candidate, Outcome], options: tuple[Option[Candidate], ...], progress: _SearchProgress[Outcome]
) -> None:
    """Evaluate one set of changes with every micro-batch that could still make a difference."""
    marks: frozenset[Hashable] = frozenset().union(*(option.marks for option in options))
    reached = max((batch for fitting, batch in progress.fitting if fitting <= marks), default=0)
    if reached >= progress.batch:
        return
    candidate = applied(space.now, options)
    if candidate is None or not space.is_compatible(candidate):
        return
    plan = _first_fitting(space, options, candidate, reached, progress)
    if plan is None:
        return
    if space.is_sure(plan.outcome):
        progress.fitting.append((marks, plan.outcome.setup.batch))
    elif marks in progress.unsure:
        return
    else:
        progress.unsure.add(marks)
    progress.plans.append(plan)


def _first_fitting(
    space: SearchSpace[Candidate, Outcome],
    options: tuple[Option[Candidate], ...],
    candidate: Candidate,
    reached: int,
    progress: _SearchProgress[Outcome],
) -> Plan[Outcome] | None:
    """Return the plan with the largest micro-batch that fits. If the smallest does not fit, none of them does."""

    def tried(picked: tuple[Option[Candidate], ...]) -> Plan[Outcome] | None:
        changed = candidate if picked is options else applied(space.now, picked)
        return None if changed is None else _tried(space, picked, changed, progress)

    *larger, smallest = (options, *((*options, batch) for batch in space.batches(candidate, reached)))
    last = tried(smallest)
    if last is None or space.fits(last.outcome) != "yes":
        return None
    plans = (plan for picked in larger if (plan := tried(picked)) is not None)
    return next((plan for plan in plans if space.fits(plan.outcome) == "yes"), last)


def _tried(
    space: SearchSpace[Candidate, Outcome], options: Sequence[Option[Candidate]], candidate: Candidate, progress: _SearchProgress[Outcome]
) -> Plan[Outcome]:
    plan = _plan(space, options, candidate, space.evaluate(candidate))
    progress.tried += 1
    if space.lack(plan.outcome) < space.lack(progress.closest.outcome):
        progress.closest = plan
    return plan


def _plan(
    space: SearchSpace[Candidate, Outcome], options: Sequence[Option[Candidate]], candidate: Candidate, outcome: Outcome
) -> Plan[Outcome]:
    settled = space.settled(candidate)
    costs = [cost for option in options for cost in option.costs]
    return Plan(
        measures=tuple(_settled(measure, settled) for option in options for measure in option.measures if not _is_idle(measure, settled)),
        outcome=outcome,
        risk=RISKS[max((cost.risk for cost in costs), default=0)],
        effort=sum(cost.effort for cost in costs),
        time=space.time(candidate),
    )


def _is_idle(measure: Measure, settled: dict[str, Scalar]) -> bool:
    """Return whether everything a measure sets is settled as not needed in combination with the others."""
    return all(name in settled and settled[name] is None for name, _ in measure.sets)


def _settled(measure: Measure, settled: dict[str, Scalar]) -> Measure:
    """Return the measure with the values that result from all measures together."""
    if not any(name in settled for name, _ in measure.sets):
        return measure
    return replace(measure, sets=tuple((name, settled.get(name, to)) for name, to in measure.sets))
