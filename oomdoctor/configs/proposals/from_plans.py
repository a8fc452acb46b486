"""A plan of the memory model as one proposal: without any one of its measures the run would not fit, or the server not start."""

from __future__ import annotations

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
    """Return the plans in their order, as `plan-1`, `plan-2` ...; `run` and `folder` are those of `of_fix`."""
    plans: tuple[AnyPlan, ...] = result.plans
    return [_of_plan(f"plan-{number}", plan, targets, run, pack, folder) for number, plan in enumerate(plans, 1)]


def _of_plan(name: str, plan: AnyPlan, targets: EditTargets, run: RunSettings, pack: Pack, folder: str | None) -> Proposal:
    fixes = list(dict.fromkeys(measure.fix for measure in plan.measures))
    title = Text(*(mark.join(_title(fix, pack, lang) for fix in fixes) for lang, mark in (("en", "; "), ("zh", "；"))))
    fix = Fix(
        id=name,
        title=title,
        how=title,
        settings=tuple(setting for measure in plan.measures for setting in measure.settings),
        fits="yes",
        safety="safe" if all(_is_safe(name, pack) for name in fixes) else "review",
    )
    proposal = fix_proposal(fix, targets, run, pack, folder)
    nameless = tuple(RefusedChange(_NO_KEY, _sets(measure)) for measure in plan.measures if not _is_written(measure, plan, pack))
    return replace(proposal, by_hand=(*proposal.by_hand, *nameless), plan=plan)


def _is_written(measure: Measure, plan: AnyPlan, pack: Pack) -> bool:
    """Return whether some key does it: one of its own, or one of another measure, as one file shards and offloads."""
    fix = pack.fix(measure.fix)
    rows = fix.settings if fix is not None else ()
    keys = {(setting.framework, setting.key) for other in plan.measures for setting in other.settings}
    return bool(measure.settings) or any((row.framework, row.key) in keys for row in rows)


def _sets(measure: Measure) -> str:
    return ", ".join(f"{name}: {value}" for name, value in measure.sets)


def _title(fix: str, pack: Pack, lang: str) -> str:
    record = pack.fix(fix)
    return fix if record is None else record.title.get(lang).rstrip(".。")


def _is_safe(fix: str, pack: Pack) -> bool:
    record = pack.fix(fix)
    return record is not None and record.safety == "safe"


_NO_KEY = Text("no key for it is known in this framework", "在这个框架里没有已知的对应配置项")
