"""From a diagnosis back to the arithmetic: what the run should have taken, and what each fix would free.

Only for runs whose log or config tells the model; nothing here is loaded for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.settings import number
from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Value
from oomdoctor.case.expected import Expected
from oomdoctor.case.incident import Incident
from oomdoctor.case.plan import Fits, MemoryBudget
from oomdoctor.case.settings import RunConfig, Scalar
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.pack import Pack
from oomdoctor.planning.at_failure import at_failure
from oomdoctor.planning.memory_budget import budget_of_card, fits, needed, without
from oomdoctor.setups.from_log import LoggedRun, run_from_log, setup_from_log

_BOUNDLESS = 1 << 62


class ExpectedVsObserved(Struct, frozen=True):
    """A run of which the model is known."""

    run: LoggedRun
    shape: Shape
    expected: Expected
    lacking: int
    """Bytes that the failed request lacked, as far as the log tells."""

    def facts(self) -> dict[str, Value | bool | float | None]:
        """What rules can ask of the estimate, as `estimate.NAME`; the weights only where something tells their type."""
        settings, expected = self.run.settings, self.expected
        if not (settings.precision or settings.load_bits or settings.finetuning):
            return {}
        weights = sum(term.bytes for term in expected.estimate.phases[0].terms if term.name == "weights")
        out: dict[str, Value | bool | float | None] = {"estimate.model": self.shape.name, "estimate.weights_bytes": weights}
        if expected.budget is not None:
            out["estimate.card_bytes"] = expected.budget.total
            out["estimate.over_card"] = weights > expected.budget.total
        if expected.is_told:
            out["estimate.needed_bytes"] = expected.estimate.expected
            out["estimate.fits"] = expected.fits
        return out

    def weighed(self, findings: Iterable[Finding], pack: Pack) -> tuple[Finding, ...]:
        """The findings, with what each of their fixes would free and whether the run would fit then."""
        if not self.expected.is_told:
            return tuple(findings)
        known: dict[str, Fix] = {}

        def of_fix(fix: Fix) -> Fix:
            if fix.id not in known:
                known[fix.id] = _weighed(fix, self, pack)
            return known[fix.id]

        return tuple(replace(one, fixes=tuple(of_fix(fix) for fix in one.fixes)) for one in findings)


def expected_vs_observed(training: RunConfig | None, log: Mapping[str, Value], incident: Incident) -> ExpectedVsObserved | None:
    """The run of a failure; None where its model is not known."""
    known = run_from_log(training, log)
    if known.shape is None:
        return None
    setup, assumptions = setup_from_log(known, known.shape)
    budget = budget_of_card([incident.root], log)
    found = needed(setup, budget or _nowhere())
    expected = Expected(
        estimate=found,
        budget=budget,
        fits=fits(found, budget) if budget else None,
        assumptions=assumptions,
        is_told=known.is_told,
        at=at_failure(setup, incident) if known.is_told else None,
    )
    asked, free = incident.root.size("requested_bytes"), incident.root.size("free_bytes")
    return ExpectedVsObserved(known, known.shape, expected, max(0, (asked or 0) - (free or 0)))


def _weighed(fix: Fix, found: ExpectedVsObserved, pack: Pack) -> Fix:
    sets = changed(fix, pack)
    if not sets:
        return fix
    expected = found.expected
    same_adapters = not sets.keys() & {"finetuning", "lora_rank", "lora_targets", "modules_to_save"}
    then = replace(found.run, settings=found.run.settings.with_values(sets), trained=found.run.trained if same_adapters else None)
    estimate = _estimate(then, found.shape, expected.budget)
    if estimate.expected == expected.estimate.expected:
        # The arithmetic knows nothing of this setting, or it is in force already.
        return fix
    frees = max(0, expected.estimate.expected - estimate.expected)
    return replace(fix, frees_bytes=frees, fits="no" if frees < found.lacking else _fits(estimate, expected))


def _fits(then: Estimate, expected: Expected) -> Fits | None:
    """Whether a changed run fits. What was seen above what was expected stays; where a run failed that should fit, nobody can say."""
    if expected.budget is None or expected.fits == "yes":
        return None
    unexplained = max(0, expected.at.seen - expected.at.expected) if expected.at else 0
    return fits(then, without(expected.budget, unexplained))


def _estimate(known: LoggedRun, shape: Shape, budget: MemoryBudget | None) -> Estimate:
    return needed(setup_from_log(known, shape)[0], budget or _nowhere())


def _nowhere() -> MemoryBudget:
    """A card without bounds, for figures that no card is compared with."""
    return MemoryBudget("", _BOUNDLESS, _BOUNDLESS)


def changed(fix: Fix, pack: Pack) -> dict[str, Scalar]:
    """What a fix sets, by the names that all frameworks share; empty where a row of it has no such name."""
    record = pack.fix(fix.id)
    rows = {(row.framework, row.key): row for row in record.settings} if record is not None else {}
    out: dict[str, Scalar] = {}
    for setting in fix.settings:
        row = rows.get((setting.framework, setting.key))
        if row is not None and row.sets:
            out.setdefault(row.sets, _value(row.means if row.means is not None and setting.to == row.to else setting.to))
    return {name: value for name, value in out.items() if value is not None}


def _value(text: str) -> Scalar:
    """A value of a rule as a setting; a factor (`× 4`) is none."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    found = number(text)
    if found is not None:
        return int(found) if found == int(found) else found
    return None if text.startswith("×") else text
