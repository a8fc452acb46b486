"""Memory series alongside the logs of a run: read once, aligned with the log's failure by time, and judged."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.observer import ObservedFile, Observer
from oomdoctor.series.read import read_series
from oomdoctor.series.series_events import Judged, judge_series
from oomdoctor.series.values import read_time

_MOST_FAILURES = 64


class SeriesBeside:
    """The series that were given for a run."""

    def __init__(self, pack: Pack, paths: Sequence[str]) -> None:
        self._see = Observer(pack)
        self._read = read_series(paths)
        self._judged = Judged((), (), ())

    def stated(self, events: Sequence[Event]) -> Sequence[ObservedFile]:
        """Return what the series show about a run whose logs show `events`."""
        stamps = [event.time for event in events if event.is_failure and event.time is not None]
        failures = [moment for stamp in stamps[:_MOST_FAILURES] if (moment := read_time(stamp)) is not None]
        self._judged = judge_series(self._see, self._read.columns, failures)
        return self._judged.files

    def added_to(self, diagnosis: Diagnosis, may_be_short: str | None = None) -> Diagnosis:
        """Return the diagnosis with the series and their gaps; for one that was not requested, gaps do not matter."""
        case = diagnosis.case
        sources = tuple(replace(source, size=self._read.sizes.get(source.name, source.size)) for source in case.sources)
        gaps = (*case.gaps, *(gap for gap in (*self._read.gaps, *self._judged.gaps) if gap.what != may_be_short))
        return replace(diagnosis, case=replace(case, sources=sources, series=self._judged.seen, gaps=gaps))
