"""An evidence folder -> the diagnosis of its run: log, exceptions, what was counted and how it ended, read together."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.api.inputs import machine_source
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.api.runs.recorded_snapshot import recorded_snapshot
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.gap import Gap
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.knowledge.pack import Pack
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.record.read_folder import read_evidence
from oomdoctor.record.telling.statements import texts


def diagnose_evidence(
    path: str, pack: Pack, *, config: Sequence[str] = (), machine: MachineSource | None = None, jobs: int = 1
) -> Diagnosis:
    """Diagnose the run that a folder tells of. What the caller names beside it counts for more than what the folder holds."""
    evidence = read_evidence(path)
    names: list[str | MissingSource] = [] if evidence.log is None else [evidence.log]
    measured, unread = recorded_snapshot(evidence, pack)
    diagnosis = diagnose_logs(
        names,
        pack,
        jobs=jobs,
        beside=texts(evidence),
        config=config or evidence.configs,
        machine=machine or machine_source(evidence.environment),
        measured=measured,
    )
    gaps = (*(Gap(gap.what, gap.why, gap.how) for gap in evidence.gaps), *unread)
    return replace(diagnosis, case=replace(diagnosis.case, gaps=(*diagnosis.case.gaps, *gaps)))
