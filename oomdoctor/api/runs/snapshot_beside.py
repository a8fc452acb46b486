"""A memory snapshot alongside the log of a run: facts for the rules, parts next to the estimate, and what fixes free of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.api.runs.snapshot import read_isolated
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.gap import Gap
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.evidence import HOLDINGS
from oomdoctor.planning.observed.measured_parts import measured_parts
from oomdoctor.planning.observed.measured_savings import with_measured_savings
from oomdoctor.planning.observed.run_expected_vs_observed import run_expected_vs_observed
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import decisive, snapshot_facts


class SnapshotBeside(Struct, frozen=True):
    """What the snapshots of a run show; empty if there is none, or none can be read."""

    facts: Mapping[str, Fact] = {}
    gaps: tuple[Gap, ...] = ()
    device: DeviceExplanation | None = None
    """The one that the answer is about."""
    at_failure: bool = False
    """Whether its state was saved at the failed request."""

    def added_to(self, diagnosis: Diagnosis, pack: Pack) -> Diagnosis:
        """Return the diagnosis with the parts of GPU memory, and how much of them each fix frees."""
        case = diagnosis.case
        gaps = (*case.gaps, *self.gaps)
        expected = case.estimate.estimate if case.estimate is not None and case.estimate.is_told else None
        parts = None
        if self.device is not None and case.incidents:
            parts = measured_parts(self.device, list(pack.records(HOLDINGS)), expected, at_failure=self.at_failure)
        if parts is None:
            return replace(diagnosis, case=replace(case, gaps=gaps))
        run = None if case.estimate is None else run_expected_vs_observed(case.training, case.facts, case.incidents[0])
        findings = with_measured_savings(diagnosis.findings, parts, run, pack)
        return replace(diagnosis, case=replace(case, gaps=gaps, measured=parts), findings=findings)


def read_beside(paths: Sequence[str], pack: Pack) -> SnapshotBeside:
    """Read the snapshots given for a run, each in a separate process. Raise UsageError if a file does not exist."""
    read = [read_isolated(path, pack, {}) for path in paths]
    devices = [device for answer in read for file in answer.files for device in file.devices]
    return SnapshotBeside(snapshot_facts(devices), tuple(gap for answer in read for gap in answer.gaps), decisive(devices))
