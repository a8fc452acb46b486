"""An evidence folder -> the diagnosis of its run: log, exceptions, what was counted and how it ended, read together."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.api.inputs import machine_source
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.api.runs.recorded_snapshot import recorded_snapshot
from oomdoctor.api.runs.series import SeriesBeside
from oomdoctor.api.runs.snapshot_beside import read_beside
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.gap import Gap
from oomdoctor.findings.conditions import Fact
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.knowledge.pack import Pack
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.record.evidence import SAMPLES
from oomdoctor.record.read_folder import RunEvidence, read_evidence
from oomdoctor.record.telling.statements import texts


def diagnose_evidence(
    path: str,
    pack: Pack,
    *,
    config: Sequence[str] = (),
    machine: MachineSource | None = None,
    jobs: int = 1,
    series: Sequence[str] = (),
    snapshots: Sequence[str] = (),
) -> Diagnosis:
    """Diagnose the run that a folder tells of. What the caller names beside it counts for more than what the folder holds."""
    evidence = read_evidence(path)
    names: list[str | MissingSource] = [] if evidence.log is None else [evidence.log]
    snapshot = read_beside(snapshots, pack) if snapshots else recorded_snapshot(evidence, pack)
    samples = os.path.join(path, SAMPLES)
    watched = SeriesBeside([*series, *([samples] if any(sample.cards for sample in evidence.samples) else [])])
    diagnosis = diagnose_logs(
        names,
        pack,
        jobs=jobs,
        beside=texts(evidence),
        config=config or evidence.configs,
        machine=machine or machine_source(evidence.environment),
        measured={**_launched(evidence), **snapshot.facts},
        stated=watched.stated,
    )
    diagnosis = watched.added_to(snapshot.added_to(diagnosis, pack), may_be_short=samples)
    gaps = tuple(Gap(gap.what, gap.why, gap.how) for gap in evidence.gaps)
    return replace(diagnosis, case=replace(diagnosis.case, gaps=(*diagnosis.case.gaps, *gaps)))


def _launched(evidence: RunEvidence) -> dict[str, Fact]:
    """Return the command of the run, as a shell takes it."""
    return {"log.launch_command": shlex.join(evidence.run.command)} if evidence.run is not None and evidence.run.command else {}
