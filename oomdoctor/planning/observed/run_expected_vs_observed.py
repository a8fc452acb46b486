"""Compare the memory a failed run should have used with what its log shows, and report how much each fix would free.

Also reports, for the moment of failure, how much of the live tensors the settings explain and which samples would account for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.estimate import STANDING, Estimate
from oomdoctor.case.event import Value
from oomdoctor.case.expected import AtFailure, Expected
from oomdoctor.case.incident import Incident
from oomdoctor.case.plan import Fits, MemoryBudget
from oomdoctor.case.settings import RunConfig, Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.pack import Pack
from oomdoctor.memory.estimate import at_phases
from oomdoctor.planning.memory_budget import budget_from_log, fits, needed
from oomdoctor.planning.observed.expected_vs_observed import weigh_fixes
from oomdoctor.setups.from_log import LoggedRun, run_from_log, setup_from_log

_UNBOUNDED = MemoryBudget("", 1 << 62, 1 << 62)
"""A GPU for figures that are not compared with one."""
_NEW_FILE = "ds.json"
_ADAPTER_SETTINGS = frozenset({"finetuning", "lora_rank", "lora_targets", "modules_to_save"})
"""Settings that change the number of trained parameters."""
_PHASES = {"forward": ("forward",), "backward": ("forward", "backward"), "optimizer-step": ("step",), "evaluation": ("evaluation",)}
"""Estimate phases -> incident phases. A backward pass begins with what the forward pass ends with."""
_NEAR = 1.25
"""The estimate explains a failure whose live tensors exceed its range by less than this."""
_COUNTED = frozenset({
    "batch-too-large", "data-parallel-full-replica", "logits-too-large", "model-too-large", "near-limit", "no-gradient-checkpointing",
    "optimizer-states", "sequence-too-long", "too-many-trainable-parameters",
})  # fmt: skip
"""Causes that the memory model accounts for: for another process, a leak or fragmentation, a plan is not the first thing to do."""
_STEP = 64
_LONGEST = 1 << 20
"""Tokens; no sample is longer."""


class RunExpectedVsObserved(Struct, frozen=True):
    """A failed run of a known model."""

    run: LoggedRun
    shape: Shape
    expected: Expected
    lacking: int
    """The shortfall in bytes of the failed request, as far as the log shows it."""

    @property
    def is_judged(self) -> bool:
        """Return whether the estimate relies on known facts about the run, and not on an assumed batch and length."""
        return self.expected.is_told or self.expected.stands_too_large

    def explains(self, finding: Finding) -> bool:
        """Return whether the memory model accounts for a cause, the run should not have fit, and observed memory is close to expected."""
        expected = self.expected
        if finding.cause not in _COUNTED or not self.is_judged or expected.budget is None or expected.fits in (None, "yes"):
            return False
        at = expected.at
        return at is None or at.low / _NEAR <= at.seen <= at.high * _NEAR

    def facts(self) -> dict[str, Value | bool | float | None]:
        """Return the facts about the estimate that rules can query, as `estimate.NAME`; the weights only if something shows their type."""
        settings, expected = self.run.settings, self.expected
        if not (settings.precision or settings.load_bits or settings.finetuning or expected.stands_too_large):
            return {}
        weights = sum(term.bytes for term in expected.estimate.phases[0].terms if term.name == "weights")
        facts: dict[str, Value | bool | float | None] = {"estimate.model": self.shape.name, "estimate.weights_bytes": weights}
        if expected.budget is not None:
            facts["estimate.card_bytes"] = expected.budget.total
            facts["estimate.over_card"] = weights > expected.budget.total
        if expected.stands_too_large:
            facts["estimate.stands_too_large"] = True
        if self.is_judged:
            facts["estimate.needed_bytes"] = expected.estimate.expected
            facts["estimate.fits"] = expected.fits
            if expected.fits == "no":
                facts["estimate.explains"] = True
        return facts

    def weigh(self, findings: Iterable[Finding], pack: Pack) -> tuple[Finding, ...]:
        """Return the findings with what each of their fixes would free and whether the run would then fit."""
        return weigh_fixes(findings, pack, self._weigh) if self.is_judged else tuple(findings)

    def changed(self, changes: Mapping[str, Scalar]) -> Estimate:
        """Return what the run would need with these settings, by the names that all frameworks share."""
        trained = None if changes.keys() & _ADAPTER_SETTINGS else self.run.trained
        settings = self.run.settings.with_values(changes)
        if "zero_stage" in changes and self.run.settings.zero_stage is None:
            # A fix comes with its own file, whose buffers are unknown here.
            settings = replace(settings, zero_file=settings.zero_file or _NEW_FILE)
        run = replace(self.run, settings=settings, trained=trained)
        return needed(setup_from_log(run, self.shape)[0], self.expected.budget or _UNBOUNDED)

    def _weigh(self, fix: Fix, changes: Mapping[str, Scalar]) -> Fix:
        expected = self.expected.estimate.expected
        changed = self.changed(changes)
        if changed.expected == expected:
            # The memory model does not know this setting, or it is in force already.
            return fix
        frees = max(0, expected - changed.expected)
        return replace(fix, frees_bytes=frees, fits="no" if frees < self.lacking else self._fits(changed))

    def _fits(self, changed: Estimate) -> Fits | None:
        """Return whether a changed run fits; None if the run should have fit as it was.

        Memory that was observed above what was expected will be in use again.
        """
        budget, at = self.expected.budget, self.expected.at
        if budget is None or self.expected.fits == "yes":
            return None
        return fits(changed, budget.minus_unexplained(max(0, at.seen - at.expected) if at else 0))


def run_expected_vs_observed(training: RunConfig | None, log: Mapping[str, Value], incident: Incident) -> RunExpectedVsObserved | None:
    """Compare the run of a failure with its log; None if its model is unknown."""
    run = run_from_log(training, log)
    if run.shape is None:
        return None
    setup, assumptions = setup_from_log(run, run.shape)
    budget = budget_from_log(incident.root, log)
    estimate = needed(setup, budget or _UNBOUNDED)
    at = at_failure(setup, incident)
    got_there = bool(incident.steps_passed) or (
        at is not None and incident.phase != "optimizer-step" and budget is not None and at.low > budget.total
    )
    expected = Expected(
        estimate=estimate,
        budget=budget,
        fits=fits(estimate, budget) if budget else None,
        assumptions=assumptions,
        is_told=run.is_told,
        # A run that reached a moment for which the GPU is too small differs from its description.
        stands_too_large=budget is not None and _has_method(run) and not got_there and _standing(estimate) > budget.usable,
        at=at if run.is_told else None,
    )
    requested, free = incident.root.size("requested_bytes"), incident.root.size("free_bytes")
    return RunExpectedVsObserved(run, run.shape, expected, max(0, (requested or 0) - (free or 0)))


def _has_method(run: LoggedRun) -> bool:
    """Return whether what is trained is known.

    A run sharded by DeepSpeed or FSDP, with no mention of adapters, trains everything.
    """
    settings = run.settings
    return settings.finetuning is not None or (settings.lora_rank is None and bool(settings.zero_stage or settings.fsdp))


def _standing(estimate: Estimate) -> int:
    """Return the minimum that is on the GPU throughout the fullest phase."""
    return max(sum(term.low for term in phase.terms if term.name in STANDING) for phase in estimate.phases)


def at_failure(setup: Setup, incident: Incident) -> AtFailure | None:
    """Compare what should have been allocated at the failure with what was."""
    names = _PHASES.get(incident.phase or "", ())
    allocated, requested = incident.root.size("allocated_bytes"), incident.root.size("requested_bytes")
    counted = replace(setup, counter="max_allocated")
    sizes, total = at_phases(counted, names), incident.root.size("total_bytes")
    if sizes is None or allocated is None or requested is None:
        return None
    if total is not None and sizes[0] > total:
        sizes = at_phases(_in_first_step(counted), names) or sizes
    expected, low, high = sizes
    return AtFailure(phase=str(incident.phase), expected=expected, low=low, high=high, seen=allocated + requested)


def _in_first_step(setup: Setup) -> Setup:
    """Return the run without optimizer states: a run that does not fit with them dies before they are created.

    torch creates them in the first update, DeepSpeed when it starts (initialize_optimizer_states of runtime/zero/stage_1_and_2.py).
    """
    if setup.layout.engine == "deepspeed" or setup.task != "train":
        return setup
    return replace(setup, optimizer=replace(setup.optimizer, states=0.0, bytes_per_param=None))


def explaining_length(setup: Setup, incident: Incident) -> int | None:
    """Return the sample length in tokens that gives the memory use seen at the failure, in steps of 64.

    None if no length does: the failure had another reason, or the moment is unknown.
    """
    low, high = 1, _LONGEST // _STEP

    def too_short(steps: int) -> bool | None:
        at = at_failure(replace(setup, length=steps * _STEP), incident)
        return None if at is None else at.expected < at.seen

    if not too_short(low) or too_short(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_short(middle) else (low, middle)
    return high * _STEP
