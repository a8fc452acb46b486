"""The smallest plan that makes a failed run fit, as the first thing to do: single measures that are not enough come after it.

Only if the memory model explains the failure; a search takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Value
from oomdoctor.case.expected import Expected
from oomdoctor.case.incident import Incident
from oomdoctor.case.plan import Measure, Plan
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.text import Text
from oomdoctor.knowledge.pack import Pack
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.plan_request import plan_request
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.units import GIB

PLAN = "plan-1"
"""The id of the fix, and the name of the first plan for `oomdoctor fix --only`."""
_HARM = ("none", "slower", "effort", "quality", "hardware")


def with_smallest_plan(
    findings: Sequence[Finding], expected: Expected, training: RunConfig | None, log: Mapping[str, Value], incident: Incident, pack: Pack
) -> tuple[Finding, ...]:
    """Return the findings with the smallest plan as the first fix of the first of them, which the memory model explains."""
    first = findings[0]
    plan = _plan(training, log, incident, pack)
    if plan is None:
        return tuple(findings)
    fix = _as_fix(plan, expected, first.fixes, pack)
    if fix.id == PLAN:
        return (replace(first, fixes=(fix, *first.fixes)), *findings[1:])
    # One measure is enough: then the order of the finding decides among all that are.
    others = first.fixes if any(other.id == fix.id for other in first.fixes) else (fix, *first.fixes)
    fixes = tuple(fix if other.id == fix.id else other for other in others)
    return (replace(first, fixes=tuple(sorted(fixes, key=lambda other: other.fits != "yes"))), *findings[1:])


def _plan(training: RunConfig | None, log: Mapping[str, Value], incident: Incident, pack: Pack) -> Plan[Estimate] | None:
    request = plan_request(training, log, incident)
    if request.budget is None:
        return None
    keys = measure_keys(pack, training, log, request.framework)
    budget = request.budget.minus_unexplained(request.unexplained)
    fitting = keys.with_keys(plans(run_space(request.setup, budget, keys.has), top=1)).plans
    return fitting[0] if fitting else None


def _as_fix(plan: Plan[Estimate], expected: Expected, others: Sequence[Fix], pack: Pack) -> Fix:
    """Return the plan as a fix; for a single measure, the fix itself with the values of the plan."""
    settings = tuple(setting for measure in plan.measures for setting in measure.settings)
    freed = max(0, expected.estimate.expected - plan.outcome.expected)
    alone = next((fix for fix in others if [fix.id] == [measure.fix for measure in plan.measures]), None)
    if alone is not None:
        return replace(alone, settings=settings or alone.settings, frees_bytes=freed, fits="yes")
    records = [record for name in _fixes(plan.measures) if (record := pack.fix(name)) is not None]
    card = expected.budget.total if expected.budget is not None else 0
    together = Text(
        f"Together, because none of them is enough alone: the run then needs {plan.outcome.expected / GIB:.1f} GiB of {card / GIB:.1f} "
        "GiB.",
        f"几项要一起改，单独一项都不够：改后需要 {plan.outcome.expected / GIB:.1f} GiB，显卡共 {card / GIB:.1f} GiB。",
    )
    only = records[0] if len(records) == 1 else None
    return Fix(
        id=PLAN if only is None else only.id,
        title=_joined([record.title for record in records]),
        how=together if only is None else only.how,
        settings=settings,
        frees=Text("savings from these changes", "这些改动合计"),
        terms=tuple(dict.fromkeys(term for record in records if record.frees is not None for term in record.frees.terms)),
        frees_bytes=freed,
        fits="yes",
        costs=_joined([record.costs for record in records if record.costs is not None]),
        harm=max((record.harm for record in records), key=_HARM.index, default="none"),
        safety="safe" if all(record.safety == "safe" for record in records) else "review",
    )


def _fixes(measures: Sequence[Measure]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(measure.fix for measure in measures))


def _joined(texts: Sequence[Text]) -> Text:
    """Return several texts as one."""
    return Text("; ".join(text.en.rstrip(".") for text in texts), "；".join(text.zh.rstrip("。") for text in texts))
