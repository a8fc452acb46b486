"""A plan of the memory model as one proposal: without any one of its measures the run would not fit, or the server not start."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.case.diagnosis import Fix
from oomdoctor.case.plan import Measure
from oomdoctor.case.serving import AnyPlan, AnyPlans
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import RefusedChange
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.configs.proposals.proposal import Proposal, fix_proposal
from oomdoctor.knowledge.pack import Pack


def plan_proposals(result: AnyPlans, targets: EditTargets, run: RunSettings, pack: Pack, folder: str | None = None) -> list[Proposal]:
    """Return the plans in their order, as `plan-1`, `plan-2` ...; `run` and `folder` are those of `fix_proposal`."""
    plans: tuple[AnyPlan, ...] = result.plans
    return [
        replace(measures_proposal(f"plan-{number}", plan.measures, targets, run, pack, folder), plan=plan)
        for number, plan in enumerate(plans, 1)
    ]


def measures_proposal(
    name: str, measures: Sequence[Measure], targets: EditTargets, run: RunSettings, pack: Pack, folder: str | None = None
) -> Proposal:
    """Return the measures of a plan, with their settings in the keys of the run's framework, as one proposal."""
    fixes = list(dict.fromkeys(measure.fix for measure in measures))
    title = Text(*(mark.join(_title(fix, pack, lang) for fix in fixes) for lang, mark in (("en", "; "), ("zh", "；"))))
    fix = Fix(
        id=name,
        title=title,
        how=title,
        settings=tuple(setting for measure in measures for setting in measure.settings),
        fits="yes",
        safety="safe" if all(_is_safe(name, pack) for name in fixes) else "review",
    )
    proposal = fix_proposal(fix, targets, run, pack, folder)
    nameless = tuple(RefusedChange(_NO_KEY, _sets(measure)) for measure in measures if not _is_written(measure, measures, pack))
    return replace(proposal, by_hand=(*proposal.by_hand, *nameless))


def _is_written(measure: Measure, measures: Sequence[Measure], pack: Pack) -> bool:
    """Return whether some key does it: one of its own, or one of another measure, as one file shards and offloads."""
    fix = pack.fix(measure.fix)
    rows = fix.settings if fix is not None else ()
    keys = {(setting.framework, setting.key) for other in measures for setting in other.settings}
    return bool(measure.settings) or any((row.framework, row.key) in keys for row in rows)


def _sets(measure: Measure) -> str:
    return ", ".join(f"{name}: {value}" for name, value in measure.sets)


def _title(fix: str, pack: Pack, lang: str) -> str:
    record = pack.fix(fix)
    return fix if record is None else record.title.get(lang).rstrip(".。")


def _is_safe(fix: str, pack: Pack) -> bool:
    record = pack.fix(fix)
    return record is not None and record.safety == "safe"


_NO_KEY = Text("this framework has no known key for it", "在这个框架里没有已知的对应配置项")
