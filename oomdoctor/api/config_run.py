"""The config files of a run with what its logs say: what is wrong in them, what a diagnosis proposes, what makes the run fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.api.configs import no_config, read_configs
from oomdoctor.api.inputs import unread_lines
from oomdoctor.api.models import card_assumption, find_card, number_of_cards
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.plan import Measure
from oomdoctor.case.serving import AnyPlans
from oomdoctor.case.settings import ConfigIssue, RunConfig, RunSettings
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.configs.edit.store import last_modified, read_file, version_at
from oomdoctor.configs.proposals.apply import AppliedProposals, apply_proposals
from oomdoctor.configs.proposals.choice import ProposalSelection
from oomdoctor.configs.proposals.from_plans import plan_proposals
from oomdoctor.configs.proposals.proposal import Proposal, fix_proposal, issue_proposal
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.errors import NothingReadError, UsageError
from oomdoctor.findings.conditions import Fact
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.plan_request import PlanRequest, plan_request
from oomdoctor.planning.plan_run import plan_run
from oomdoctor.planning.plan_writer import PlanWriter
from oomdoctor.planning.told.smallest_plan import PLAN
from oomdoctor.setups.programs.installed import as_installed, installed_facts

_STEPS = 3
"""The number of fixes that a report shows."""
_SHOWN = 5
"""The number of plans that `oomdoctor plan` shows; --plan accepts their numbers."""


class ConfigRun:
    """The config files of one run, what they were when it died, and its diagnosis.

    Raises UsageError if a file cannot be read or none is a config, and NothingReadError if no log can be read.
    """

    def __init__(
        self,
        logs: Sequence[str],
        configs: Sequence[str],
        pack: Pack,
        folder: str | None,
        gpu: str | None,
        facts: Mapping[str, Fact] | None = None,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self._pack, self._folder = pack, folder
        self._targets = EditTargets(read_configs(configs)[0], pack)
        if not any(config.framework for config in self._targets.configs):
            issues = (issue for config in self._targets.configs for issue in config.issues)
            raise UsageError(f"{no_config(configs[0], issues)}; specify the run's config with --config")
        self.files = {path: _content(path) for path in self._targets.files()}
        moment = last_modified(list(logs)) if logs else None
        versions = {path: version_at(path, moment) for path in self.files}
        self._older = {path: read_file(version) or b"" for path, version in versions.items() if version != path}
        self._diagnosis = _diagnosis(logs, configs, versions, pack) if logs else diagnosis
        self._facts: dict[str, Fact] = dict(facts or {}) if self._diagnosis is None else dict(self._diagnosis.case.facts)
        card = card_named(gpu) if gpu is not None else None
        if card is not None:
            self._facts["log.gpu_name"] = card.name

    def plans(self, gpu: str | None, gpus: int | None, model: str | None, number: int | None) -> AnyPlans | None:
        """Return what makes the run fit; None if not requested and the log does not show enough to determine it."""
        if gpu is None and number is None and not self._is_told():
            return None
        card = None if gpu is None else find_card(gpu)
        gpus = number_of_cards(card, gpus)
        request = self._request(gpus, model)
        top = max(_SHOWN, number or 0)
        writer = self.writer(request, corrected=self._diagnosis is None)
        request = replace(request, assumptions=(*card_assumption(card), *request.assumptions))
        return plan_run(request, self._pack, card=card, gpus=gpus, model=model, top=top, writer=writer)

    def writer(self, request: PlanRequest, *, corrected: bool) -> PlanWriter:
        """Return the writer of plans into copies of the run's files; `corrected`: the request was made from corrected files."""
        before = {**(self._corrected() if corrected else self.files), **self._older}
        return PlanWriter(self._corrected(), before, self._targets, request, self._settings, self._pack)

    def mended_settings(self) -> RunConfig | None:
        """Return the settings in the configs, with errors corrected."""
        return self._settings(self._corrected())

    def proposals(self, plans: AnyPlans | None, gpus: int | None) -> ProposalSelection:
        """Return the corrections that the configs need, what the diagnosis proposes, and what makes the run fit."""
        run = self._settings(self.files) if self._diagnosis is None else self._diagnosis.case.training
        settings = RunSettings() if run is None else run.settings
        settings = settings if gpus is None else replace(settings, world_size=gpus)
        findings = () if self._diagnosis is None else self._diagnosis.findings
        # The first plan is listed among the plans.
        applicable = [[fix for fix in finding.fixes if fix.settings and fix.id != PLAN] for finding in findings]
        fixes = [fix for fix in unique_fixes(findings) if fix.settings and fix.id != PLAN]
        return ProposalSelection(
            corrections=self._corrections(),
            fixes=[fix_proposal(fix, self._targets, settings, self._pack, self._folder) for fix in fixes],
            first=frozenset(fixes[0].id for fixes in applicable if fixes),
            plans=[] if plans is None else plan_proposals(plans, self._targets, settings, self._pack, self._folder),
        )

    def applied(self, proposals: Sequence[Proposal]) -> AppliedProposals:
        """Return the files as they would be after these proposals."""
        return apply_proposals(self.files, proposals, self._issues, read_file, self._older)

    def _issues(self, files: Mapping[str, bytes]) -> tuple[ConfigIssue, ...]:
        """Return the problems the proposed configs would have. Values reported by the log are ignored, since they are about to change."""
        run = self._settings(files)
        return () if run is None else run.issues

    def _request(self, gpus: int | None, model: str | None) -> PlanRequest:
        if self._diagnosis is None:
            return config_request(self.mended_settings(), self._pack, model=model, gpus=gpus)
        case = self._diagnosis.case
        return plan_request(case.training, case.facts, next(iter(case.incidents), None), model=model, gpus=gpus)

    def _settings(self, files: Mapping[str, bytes]) -> RunConfig | None:
        configs = [config for path, data in files.items() for config in read_config(path, data) or ()]
        return resolve_config(configs, (), self._facts, self._pack)

    def _is_told(self) -> bool:
        """Return whether the log describes the run and its GPU, and the memory model explains why it did not fit."""
        case = None if self._diagnosis is None else self._diagnosis.case
        if case is not None and case.served is not None and case.incidents:
            return case.served.total_is_known and case.served.served.starts != "yes"
        expected = None if case is None else case.estimate
        return expected is not None and expected.is_told and expected.budget is not None and expected.fits != "yes"

    def _corrections(self) -> list[Proposal]:
        issues = self._issues(self.files)
        return [self._correction(issue) for issue in issues if issue.replacement is not None or issue.severity != "note"]

    def _correction(self, issue: ConfigIssue) -> Proposal:
        """Return the correction for an issue: its own replacement, or otherwise the settings of its fix in this run's framework."""
        record = None if issue.mended_by is None else self._pack.fix(issue.mended_by)
        if record is None:
            return issue_proposal(issue, self._targets)
        run = self._settings(self.files)
        keys = measure_keys(self._pack, run, self._facts, None if run is None else run.framework)
        measure = keys.of_measure(Measure(fix=record.id, sets=issue.sets))
        fix = Fix(id=issue.id, title=issue.what, how=issue.why, settings=measure.settings, safety=record.safety)
        if not any(setting.key.endswith(issue.key.rpartition(".")[2].lstrip("-")) for setting in fix.settings):
            return issue_proposal(issue, self._targets)  # it is written differently there, and two ways would contradict each other
        return replace(fix_proposal(fix, self._targets, RunSettings() if run is None else run.settings, self._pack), issue=issue)

    def _corrected(self) -> dict[str, bytes]:
        """Return the files with errors corrected: a misspelled key says nothing about a run until it is spelled correctly."""
        safe = [correction for correction in self._corrections() if correction.safe]
        return {**self.files, **apply_proposals(self.files, safe, self._issues, read_file).files}


def written_fixes(diagnosis: Diagnosis, configs: Sequence[str], pack: Pack) -> tuple[str, ...]:
    """Return those fixes shown in a report that `fix --only` would write completely into these files, in order."""
    fixes = [fix for fix in unique_fixes(diagnosis.findings)[:_STEPS] if fix.settings]
    if not fixes:
        return ()
    try:
        run = ConfigRun((), configs, pack, None, None, diagnosis=diagnosis)
        plans = run.plans(None, None, None, None) if any(fix.id == PLAN for fix in fixes) else None
    except UsageError:
        return ()
    proposals = {proposal.id: proposal for proposal in run.proposals(plans, None).all()}
    steps = ((fix.id, run.applied([proposals[fix.id]]).steps) for fix in fixes if fix.id in proposals)
    return tuple(name for name, made in steps if all((step.made or step.created) and not step.left for step in made))


def config_request(
    run: RunConfig | None, pack: Pack, *, model: str | None, gpus: int | None, framework: str | None = None, is_known: bool = False
) -> PlanRequest:
    """Return the run from configs alone, with the installed versions if the files name none; `is_known`: a framework was named."""
    facts = {} if is_known else installed_facts(run, pack)
    request = plan_request(run, facts, None, model=model, gpus=gpus, framework=framework)
    is_taken = f"log.{(request.framework or '').replace('-', '_')}_version" in facts
    return replace(request, assumptions=(*request.assumptions, *(as_installed(request.framework, pack) if is_taken else ())))


def mended_settings(configs: Sequence[str], pack: Pack, gpu: str | None) -> RunConfig | None:
    """Return the settings after `fix` corrects the configs for the GPU; None if none of them is a supported config."""
    try:
        return ConfigRun((), configs, pack, None, gpu).mended_settings()
    except UsageError:
        return None


def plan_writer(configs: Sequence[str], request: PlanRequest, pack: Pack, gpu: str | None) -> PlanWriter | None:
    """Return the writer of plans into copies of a run's config files; None if none of them is a supported config.

    Errors specific to the GPU `gpu`, such as bf16 on one that lacks it, are corrected first, as `fix` does.
    """
    try:
        return ConfigRun((), configs, pack, None, gpu, request.log).writer(request, corrected=False)
    except UsageError:
        return None


def _content(path: str) -> bytes:
    data = read_file(path)
    if data is None:
        raise UsageError(f"{path} cannot be read, or is too large for a config")
    return data


def _diagnosis(logs: Sequence[str], configs: Sequence[str], versions: Mapping[str, str], pack: Pack) -> Diagnosis:
    """Diagnose the logs with the configs as they were when the run died."""
    diagnosis = diagnose_logs(list(expand_sources(logs)), pack, config=configs, version=lambda path: versions.get(path, path))
    if lines := unread_lines(diagnosis):
        raise NothingReadError(lines)
    return diagnosis
