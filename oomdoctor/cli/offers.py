"""What `oomdoctor fix` can do to the files of a run: what is wrong in them, what a diagnosis proposes, what makes the run fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.plan import Measure, Plans
from oomdoctor.case.serving import ServedPlans
from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.cli.diagnose import say_gaps
from oomdoctor.cli.plan import named_room, served_run
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.configs.edit.store import in_force, modified, read
from oomdoctor.configs.files import read_files
from oomdoctor.configs.proposals.apply import apply_proposals
from oomdoctor.configs.proposals.choice import ProposalSelection
from oomdoctor.configs.proposals.from_plans import plan_proposals
from oomdoctor.configs.proposals.proposal import Proposal, fix_proposal, issue_proposal
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.errors import UsageError
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.plan_request import PlanRequest, plan_request
from oomdoctor.planning.plans import plans
from oomdoctor.planning.serving_keys import in_options
from oomdoctor.planning.serving_options import Deployment
from oomdoctor.planning.serving_search import plans as serving_plans
from oomdoctor.report.diagnosis.steps import proposed

_SHOWN = 5
"""Plans that `oomdoctor plan` shows; theirs are the numbers that --plan takes."""


class Run:
    """The files, what is to be done to them, and what they were."""

    def __init__(self, logs: Sequence[str], configs: Sequence[str], pack: Pack, output: str | None, gpu: str | None = None) -> None:
        self._pack, self._output, self.there = pack, output, read
        sheets, gaps = read_files(configs)
        unread = next((gap for gap in gaps if gap.what in configs), None)
        if unread is not None:
            raise UsageError(f"{unread.what}: {unread.why}")
        self._homes = EditTargets(sheets, pack)
        if not any(sheet.framework for sheet in self._homes.sheets):
            raise UsageError(f"{configs[0]} is no config that is known; name the config of the run with --config")
        self.files = {path: _content(path) for path in self._homes.files()}
        moment = modified(list(logs)) if logs else None
        versions = {path: in_force(path, moment) for path in self.files}
        self.older = {path: read(version) or b"" for path, version in versions.items() if version != path}
        self._found = _diagnosis(logs, configs, versions, pack) if logs else None
        self._known = {} if self._found is None else dict(self._found.case.facts)
        named = card_named(gpu) if gpu is not None else None
        if named is not None:
            self._known["log.gpu_name"] = named.name

    def judge(self, files: Mapping[str, bytes]) -> tuple[ConfigIssue, ...]:
        """What is wrong with the configs as they would be. What the log says of values is not asked: they are to change."""
        found = self._training(files)
        return () if found is None else found.complaints

    def plans(self, gpu: str | None, gpus: int | None, model: str | None, number: int | None) -> Plans | ServedPlans | None:
        """What makes the run fit; None where nobody asks for it and the log does not tell enough to know by itself."""
        if gpu is None and number is None and not self._is_known():
            return None
        this = self._asked(gpus, model)
        within = named_room(gpu, this)
        own, top = measure_keys(self._pack, this.training, this.log, this.framework), max(_SHOWN, number or 0)
        served = served_run(this, within, model, gpus)
        if served is None:
            return own.written(plans(this.setup, within, own.has, top=top))
        now = Deployment(served.setup, served.server, served.total)
        return in_options(serving_plans(now, within, own.has, top=top), own)

    def offers(self, found: Plans | ServedPlans | None, gpus: int | None) -> ProposalSelection:
        """What the configs need to be right at all, what the diagnosis proposes, and what makes the run fit."""
        known = self._training(self.files) if self._found is None else self._found.case.training
        cards = {} if gpus is None else {"world_size": gpus}
        settings = {**({} if known is None else known.settings), **cards}
        findings = () if self._found is None else self._found.findings
        written = [[fix for fix in one.fixes if fix.settings] for one in findings]
        return ProposalSelection(
            corrections=self._corrections(),
            fixes=[fix_proposal(one, self._homes, settings, self._pack, self._output) for one in proposed(findings) if one.settings],
            first=frozenset(fixes[0].id for fixes in written if fixes),
            plans=[] if found is None else plan_proposals(found, self._homes, settings, self._pack, self._output),
        )

    def _asked(self, gpus: int | None, model: str | None) -> PlanRequest:
        if self._found is None:
            return plan_request(self._training(self._corrected()), {}, None, model=model, gpus=gpus)
        case = self._found.case
        return plan_request(case.training, case.facts, next(iter(case.incidents), None), model=model, gpus=gpus)

    def _training(self, files: Mapping[str, bytes]) -> RunConfig | None:
        sheets = [sheet for path, data in files.items() for sheet in read_config(path, data) or ()]
        return resolve_config(sheets, (), self._known, self._pack)

    def _is_known(self) -> bool:
        """Whether the log tells the run and its card, and the model of memory sees why it did not fit."""
        case = None if self._found is None else self._found.case
        if case is not None and case.served is not None:
            return case.served.total_is_known and case.served.served.starts != "yes"
        told = None if case is None else case.estimate
        return told is not None and told.is_told and told.room is not None and told.fits != "yes"

    def _corrections(self) -> list[Proposal]:
        found = self.judge(self.files)
        return [self._correction(one) for one in found if one.instead is not None or one.severity != "note"]

    def _correction(self, complaint: ConfigIssue) -> Proposal:
        """What mends a complaint: what it says to write, else the settings of its fix in this run's framework."""
        text = None if complaint.mended_by is None else self._pack.text("fixes", complaint.mended_by)
        if text is None:
            return issue_proposal(complaint, self._homes)
        found = self._training(self.files)
        own = measure_keys(self._pack, found, self._known, None if found is None else found.framework)
        measure = own.of_measure(Measure(fix=text["id"], sets=complaint.sets))
        fix = Fix(id=complaint.id, title=complaint.what, how=complaint.why, settings=measure.settings, safety=text["safety"])
        if not any(one.key.endswith(complaint.key.rpartition(".")[2].lstrip("-")) for one in fix.settings):
            return issue_proposal(complaint, self._homes)  # it is written in another way there, and two ways would contradict each other
        return replace(fix_proposal(fix, self._homes, {} if found is None else found.settings, self._pack), complaint=complaint)

    def _corrected(self) -> dict[str, bytes]:
        """The files without what is wrong in them: a misspelt key says nothing of a run until it is spelt right."""
        safe = [one for one in self._corrections() if one.safe]
        return {**self.files, **apply_proposals(self.files, safe, self.judge, self.there).files}


def _content(path: str) -> bytes:
    data = read(path)
    if data is None:
        raise UsageError(f"{path} cannot be read, or is too large for a config")
    return data


def _diagnosis(logs: Sequence[str], configs: Sequence[str], versions: Mapping[str, str], pack: Pack) -> Diagnosis:
    found = diagnose_logs(list(expand_sources(logs)), pack, config=configs, version=lambda path: versions.get(path, path))
    if say_gaps(found):
        sys.exit(2)
    return found
