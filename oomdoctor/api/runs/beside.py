"""What was recorded alongside a run's logs: memory over time, and memory snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.api.runs.series import SeriesBeside
from oomdoctor.api.runs.snapshot_beside import SnapshotBeside, read_beside
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import Pack


class RecordedBeside:
    """The files that were given. Raise UsageError if a snapshot does not exist."""

    def __init__(self, series: Sequence[str], snapshots: Sequence[str], pack: Pack) -> None:
        self._pack = pack
        self._series = SeriesBeside(pack, series)
        self._snapshot = read_beside(snapshots, pack) if snapshots else SnapshotBeside()
        self.facts = self._snapshot.facts
        """Facts about the snapshots that rules can query."""
        self.stated = self._series.stated
        """Returns what the series show, once the log is read."""

    def added_to(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with what they show."""
        return self._series.added_to(self._snapshot.added_to(diagnosis, self._pack))
