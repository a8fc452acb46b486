"""The search space of a training run, or of one that generates text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import RISKS, Fits, Measure, MemoryBudget, Plan
from oomdoctor.case.settings import Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.planning.incompatible import incompatible
from oomdoctor.planning.memory_budget import fits, needed
from oomdoctor.planning.run_options import RunOption, batches, lengths, subjects
from oomdoctor.planning.search import SearchLimits
from oomdoctor.planning.step_time import seconds

_SLOW = 2.0
"""The slowdown from which a plan is ranked after others and does not end the search."""
_STEPS = 20
"""Time steps that make up the current time: the time model is no finer than five percent."""
_SLIGHT = 8
"""Time steps that a little quality is worth: two fifths of the current time."""
_HOST = 32 << 30
"""Bytes of host memory that make a difference: what a GPU machine can easily spare."""
_HOST_STEPS = 2
"""Time steps that each of these is worth, since it is unknown whether the machine has them."""
_MATTERS = 0.005
"""An option is left out if it lowers no phase by this share of the GPU, alone or with all others."""
_FREE = frozenset({"distributed-optimizer"})
"""Measures with no noticeable cost, so that they come before all others: Megatron's own way to use less."""
_KEEPING = ("none", "slight")
"""Risks of plans that train what was to be trained."""


class RunSpace(Struct, frozen=True, kw_only=True):
    """What can be changed in a run so that it fits on its GPU."""

    limits: ClassVar = SearchLimits(fewest=0, most=5, further=1, alternatives=False, avoided=frozenset({"data"}))

    now: Setup
    budget: MemoryBudget
    can: Callable[[str], bool]
    writes: Callable[[Sequence[Measure]], bool]
    """Whether the run's files can express some measures."""
    seconds: float
    """Current time of an update."""
    smaller: tuple[tuple[int, RunOption], ...]
    """Smaller micro-batches, the largest first."""
    accepted: frozenset[str]
    """Combinations that programs reject but that are in the current run: that it runs shows that its program accepts them."""

    def subjects(self) -> tuple[tuple[RunOption, ...], ...]:
        """Return the options that lower a phase: in the current run, with its smallest batch, or with everything else changed."""
        every = [self._written(options) for options in subjects(self.now, self.budget.capability, self.can)]
        every = [options for options in every if options]
        gentle, smallest = [options[-1] for options in every], [option for _, option in self.smaller[-1:]]
        few = [option.apply(self.now) or self.now for option in smallest]
        kept = []
        for options in every:
            around = self.now
            for option in (*(other for other in gentle if other not in options), *smallest):
                around = option.apply(around) or around
            kept.append(tuple(option for option in options if any(self._lowers(base, option) for base in (self.now, *few, around))))
        return tuple(filter(None, kept))

    def cuts(self) -> tuple[RunOption, ...]:
        """Return shorter samples."""
        return self._written(lengths(self.now, self.can))

    def batches(self, candidate: Setup, above: int) -> list[RunOption]:
        """Return the smaller micro-batches; empty if an update in the backward pass cannot accumulate."""
        return [] if candidate.optimizer.in_backward else [option for size, option in self.smaller if size > above]

    def is_compatible(self, candidate: Setup) -> bool:
        """Return whether programs accept the combination."""
        return incompatible(candidate, self.budget.capability) <= self.accepted

    def evaluate(self, candidate: Setup) -> Estimate:
        """Return what the run needs for no request to fail."""
        return needed(candidate, self.budget)

    def fits(self, outcome: Estimate) -> Fits:
        """Return whether it fits on the GPU."""
        return fits(outcome, self.budget)

    def fits_card(self, outcome: Estimate, budget: MemoryBudget) -> bool:
        """Return whether another GPU has room for the maximum that it may need."""
        return budget.usable >= outcome.high

    def lack(self, outcome: Estimate) -> int:
        """Return the maximum that it may need."""
        return outcome.high

    def time(self, candidate: Setup) -> float:
        """Return the time of an update, as a multiple of the current one."""
        return seconds(candidate) / self.seconds

    def settled(self, candidate: Setup) -> dict[str, Scalar]:
        """Return the accumulation that results from all measures; without any there are no micro-batches to exchange anything between."""
        settled: dict[str, Scalar] = {"accumulation": candidate.accumulation}
        return settled if candidate.accumulation > 1 else {**settled, "syncs_gradients": None}

    def decided(self, subjects: Sequence[Sequence[RunOption]], rounds: int, tried: int) -> int:  # noqa: ARG002 - servers count what they tried
        """Return the number of combinations, tried or not. After the first round one fits only with a cut, since none did without it."""
        return rounds * prod(len(options) + 1 for options in subjects) * (len(self.smaller) + 1)

    def order(self, plan: Plan[Estimate]) -> tuple[float, ...]:
        """Put what trains something else or truncates data last, before it what is slow; then the fewest changes, then the least harm."""
        risk, changes, steps, effort, host = self.costs(plan)
        time = plan.time or 0.0
        return max(1, risk), time > _SLOW, changes, steps + _SLIGHT * min(1, risk) + _HOST_STEPS * host, risk, effort, time

    def costs(self, plan: Plan[Estimate]) -> tuple[int, ...]:
        """Return risk, changes, time, effort, host memory."""
        changes = sum(measure.fix not in _FREE for measure in plan.measures)
        return RISKS.index(plan.risk), changes, round((plan.time or 0.0) * _STEPS), plan.effort, plan.outcome.host // _HOST

    def is_sure(self, outcome: Estimate) -> bool:  # noqa: ARG002 - an estimate is of the one version that is known
        """Return true: what fits is certain to fit."""
        return True

    def is_good(self, plan: Plan[Estimate]) -> bool:
        """Return whether a plan is not slow and trains what was to be trained."""
        return plan.risk in _KEEPING and (plan.time or 0.0) <= _SLOW

    def on_cards(self, cards: int) -> RunSpace:
        """Return the same run on another number of GPUs."""
        engine = "ddp" if self.now.layout.engine == "none" and self.now.task == "train" else self.now.layout.engine
        return run_space(replace(self.now, layout=replace(self.now.layout, cards=cards, engine=engine)), self.budget, self.can)

    def _written(self, options: Sequence[RunOption]) -> tuple[RunOption, ...]:
        return tuple(option for option in options if self.writes(option.measures))

    def _lowers(self, base: Setup, option: RunOption) -> bool:
        """Return whether an option lowers a phase, or the maximum the run may need: it can settle an unknown."""
        now, then = self.evaluate(base), self.evaluate(option.apply(base) or base)
        after = {phase.name: phase.bytes for phase in then.phases}
        saved = max(now.high - then.high, *(phase.bytes - after.get(phase.name, 0) for phase in now.phases))
        return saved > _MATTERS * self.budget.total


def run_space(
    setup: Setup,
    budget: MemoryBudget,
    can: Callable[[str], bool] = lambda _: True,
    writes: Callable[[Sequence[Measure]], bool] = lambda _: True,
) -> RunSpace:
    """Return the search space of a run; `can` says whether its framework has a fix, `writes` whether its files can express measures."""
    return RunSpace(
        now=setup,
        budget=budget,
        can=can,
        writes=writes,
        seconds=seconds(setup),
        smaller=tuple(((option.apply(setup) or setup).batch, option) for option in batches(setup) if writes(option.measures)),
        accepted=incompatible(setup, budget.capability),
    )
