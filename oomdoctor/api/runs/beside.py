"""What was recorded beside the logs of a run: memory over time, and snapshots of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from oomdoctor.api.runs.series import SeriesBeside
from oomdoctor.api.runs.snapshot_beside import SnapshotBeside, read_beside
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Event
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack


class RecordedBeside:
    """The files that were given. Raise UsageError where a snapshot does not exist."""

    def __init__(self, series: Sequence[str], snapshots: Sequence[str], pack: Pack) -> None:
        self._pack = pack
        self._series = SeriesBeside(series) if series else None
        self._snapshot = read_beside(snapshots, pack) if snapshots else SnapshotBeside()

    @property
    def facts(self) -> Mapping[str, Fact]:
        """What rules may ask of the snapshots."""
        return self._snapshot.facts

    @property
    def stated(self) -> Callable[[Sequence[Event]], Sequence[tuple[str, bytes]]] | None:
        """What returns the lines that the series state, once the log is read."""
        return None if self._series is None else self._series.stated

    def added_to(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with what they show."""
        added = self._snapshot.added_to(diagnosis, self._pack)
        return added if self._series is None else self._series.added_to(added)
