"""The effect of a plan in the files of a run: it is written into copies, and the result is estimated.

A plan that is derived from measures alone can promise what no file can express: a key that a framework lacks, a ready-made file that sets
more, a default that comes with another setting. So what is shown is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.plan import BrokenPlan, Measure, Plan, Plans
from oomdoctor.case.settings import ConfigIssue, RunConfig, RunSettings, Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.edit.store import read_file
from oomdoctor.configs.proposals.apply import AppliedStep, apply_proposals
from oomdoctor.configs.proposals.from_plans import measures_proposal
from oomdoctor.configs.proposals.proposal import Proposal
from oomdoctor.knowledge.pack import Pack
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.options import Candidate
from oomdoctor.planning.plan_request import PlanRequest
from oomdoctor.planning.search import Outcome, SearchSpace, undominated
from oomdoctor.setups.from_log import LoggedRun, run_from_log, setup_from_log

Files = Mapping[str, bytes]

_TOO_LITTLE = Text(
    "other settings in the files cancel the saving, so that it does not fit as written",
    "文件里的其他设置抵消了方案省下的显存，写入后仍放不下",
)
_OF_ADAPTERS = frozenset({"finetuning", "lora_rank", "lora_targets", "modules_to_save"})
"""Settings that make a count of trained parameters printed in a log that of another run."""


class PlanWriter:
    """Writes plans for the run of a request into copies of its config files.

    `files` are those with errors corrected, and `before` those from which the request was made: as they were when the run died.
    `read` returns the settings that files contain.
    """

    def __init__(
        self, files: Files, before: Files, targets: EditTargets, request: PlanRequest, read: Callable[[Files], RunConfig | None], pack: Pack
    ) -> None:
        self.mended = tuple(path for path, data in files.items() if path in before and before[path] != data)
        """Files in which errors were corrected before a plan is written."""
        self._files, self._targets, self._request, self._read, self._pack = files, targets, request, read, pack
        self._keys = measure_keys(pack, request.training, request.log, request.framework)
        run = read(before)
        self._settings = RunSettings() if run is None else run.settings
        self._writable: dict[tuple[Measure, ...], bool] = {}

    def can_write(self, measures: Sequence[Measure]) -> bool:
        """Return whether the files can express these measures without manual edits."""
        known = self._writable.get(tuple(measures))
        if known is None:
            known = self._writable[tuple(measures)] = self._takes(self._proposal(self._keys.of_measures(measures)))
        return known

    def writable_plans(
        self,
        space: SearchSpace[Candidate, Outcome],
        plans: Plans[Outcome],
        top: int,
        candidate: Callable[[RunSettings], Candidate],
    ) -> Plans[Outcome]:
        """Return the plans that the files can express, each with what the files then give; at most `top`.

        `candidate` returns the search candidate for the settings in the files.
        """
        kept: list[Plan[Outcome]] = []
        broken: list[BrokenPlan[Outcome]] = []
        for plan in plans.plans:
            written = self._written(space, plan, candidate)
            if isinstance(written, BrokenPlan):
                broken.append(written)
            elif written is not None and not any(_is_redundant(space, written, other) for other in kept):
                kept.append(written)
            if len(kept) == top:
                break
        return replace(plans, plans=tuple(kept), broken=() if kept else tuple(broken))

    def _written(
        self, space: SearchSpace[Candidate, Outcome], plan: Plan[Outcome], candidate: Callable[[RunSettings], Candidate]
    ) -> Plan[Outcome] | BrokenPlan[Outcome] | None:
        """Return a plan with what its files give; if they break it, how; None if part of it has to be written by a person."""
        proposal = self._proposal(plan.measures)
        if proposal.by_hand:
            return None
        applied = apply_proposals(self._files, [proposal], self._issues, read_file)
        step = applied.steps[0]
        if step.left:
            return _refused(plan, step)
        run = self._read({**self._files, **applied.files})
        if run is None:
            return None
        outcome = space.evaluate(candidate(run.settings))
        if space.fits(outcome) == "yes":
            return replace(plan, outcome=outcome)
        return BrokenPlan(plan=plan, file=next(iter(applied.files), ""), key=None, why=_TOO_LITTLE)

    def run(self, settings: RunSettings) -> LoggedRun:
        """Return the run of the request with the differences in these settings applied."""
        changed = self._changed(settings)
        known = run_from_log(self._request.training, self._request.log)
        return replace(
            known,
            settings=replace(known.settings, **changed),
            cards=self._request.setup.layout.cards,
            framework=self._request.framework,
            trained=known.trained if _OF_ADAPTERS.isdisjoint(changed) else None,
        )

    def setup(self, settings: RunSettings) -> Setup:
        """Return the setup of that run."""
        now = self._request.setup
        made, _ = setup_from_log(self.run(settings), now.shape)
        return made if "sequence_length" in self._changed(settings) else replace(made, length=now.length)

    def _changed(self, settings: RunSettings) -> dict[str, Scalar]:
        names = (name for name in settings.__struct_fields__ if getattr(settings, name) != getattr(self._settings, name))
        return {name: getattr(settings, name) for name in names}

    def _proposal(self, measures: Sequence[Measure]) -> Proposal:
        return measures_proposal("plan", measures, self._targets, self._settings, self._pack)

    def _takes(self, proposal: Proposal) -> bool:
        files = dict.fromkeys(change.file for change in proposal.changes)
        return not proposal.by_hand and not any(
            patch(file, self._files[file], [change for change in proposal.changes if change.file == file]).refusals for file in files
        )

    def _issues(self, files: Files) -> Sequence[ConfigIssue]:
        run = self._read(files)
        return () if run is None else run.issues


def _refused(plan: Plan[Outcome], step: AppliedStep) -> BrokenPlan[Outcome]:
    """Return what prevents a plan: what would then be wrong with the files, or otherwise the first change that cannot be made."""
    if (issue := step.brings) is not None:
        return BrokenPlan(plan=plan, file=issue.file, key=issue.key, why=issue.what)
    change = next(iter(step.proposal.changes), None)
    file = step.proposal.files[0].path if change is None else change.file
    return BrokenPlan(plan=plan, file=file, key=None if change is None else change.key, why=step.refusals[0].why)


def _is_redundant(space: SearchSpace[Candidate, Outcome], plan: Plan[Outcome], shown: Plan[Outcome]) -> bool:
    """Return whether a plan is equivalent to one already shown, or extends it, or has other values, and is better in nothing."""
    if plan.outcome == shown.outcome:
        return True
    fixes, others = ({measure.fix for measure in each.measures} for each in (plan, shown))
    sets, set_there = ({pair for measure in each.measures for pair in measure.sets} for each in (plan, shown))
    return (fixes == others or sets >= set_there) and plan not in undominated(space, (shown, plan))
