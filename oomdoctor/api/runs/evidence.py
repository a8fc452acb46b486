"""An evidence folder -> the diagnosis of its run: log, exceptions, counters and how it ended, read together."""

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
from oomdoctor.case.environment import Environment
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident
from oomdoctor.findings.conditions import Fact
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.knowledge.pack import Pack
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.record.evidence import SAMPLES
from oomdoctor.record.observations.sources import observed
from oomdoctor.record.read_folder import RunEvidence, read_evidence


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
    """Diagnose the run recorded in a folder. Inputs named by the caller take precedence over the contents of the folder."""
    evidence = read_evidence(path)
    names: list[str | MissingSource] = [] if evidence.log is None else [evidence.log]
    snapshot = read_beside(snapshots, pack) if snapshots else recorded_snapshot(evidence, pack)
    samples = os.path.join(path, SAMPLES)
    watched = SeriesBeside(pack, [*series, *([samples] if any(sample.cards for sample in evidence.samples) else [])])
    diagnosis = diagnose_logs(
        names,
        pack,
        jobs=jobs,
        beside=observed(evidence, pack),
        config=config or evidence.configs,
        machine=machine or _machine_of_the_run(evidence.environment),
        measured={**_launched(evidence), **snapshot.facts},
        stated=watched.stated,
    )
    diagnosis = watched.added_to(snapshot.added_to(diagnosis, pack), may_be_short=samples)
    gaps = tuple(Gap(gap.what, gap.why, gap.how) for gap in evidence.gaps)
    case = replace(diagnosis.case, gaps=(*diagnosis.case.gaps, *gaps), incidents=_with_launcher_rank(diagnosis.case.incidents, evidence))
    return replace(diagnosis, case=case)


def _with_launcher_rank(incidents: Sequence[Incident], evidence: RunEvidence) -> tuple[Incident, ...]:
    """Return the incidents with the rank assigned by the launcher, if their messages name none."""
    rank = evidence.run.rank if evidence.run is not None else None
    if rank is None:
        return tuple(incidents)
    return tuple(
        incident if incident.root.rank is not None else replace(incident, root=replace(incident.root, rank=rank), ranks=(rank,))
        for incident in incidents
    )


def _machine_of_the_run(path: str | None) -> MachineSource | None:
    """Return the machine that the folder describes. Earlier counts of its cgroup include runs before this one."""
    source = machine_source(path)
    return None if source is None else replace(source, take=lambda: _without_kills(source.take()))


def _without_kills(machine: Environment) -> Environment:
    group = machine.host.cgroup
    return machine if group is None else replace(machine, host=replace(machine.host, cgroup=replace(group, kills=None)))


def _launched(evidence: RunEvidence) -> dict[str, Fact]:
    """Return the command of the run, in shell syntax."""
    return {"log.launch_command": shlex.join(evidence.run.command)} if evidence.run is not None and evidence.run.command else {}
