"""Columns while they are read: bounded, whatever the file holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field

from oomdoctor.case.recorded.series import Clock, Of, SeriesColumn

_MOST_COLUMNS = 512
_MOST_SAMPLES = 1 << 18
_MOST_BYTES = 1 << 50
"""More than any machine has: such a figure is none."""
_Key = tuple[Of, "str | None", "int | None", "str | None"]


class _Samples(Struct):
    """The samples of one column."""

    used: list[int | None] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    clocks: Counter[Clock] = field(default_factory=Counter)
    totals: Counter[int] = field(default_factory=Counter)
    is_share: bool = False


class SeriesBuilder:
    """Takes samples in the order of a file and gives columns."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._columns: dict[_Key, _Samples] = {}
        self.left_out = 0
        """Samples that were one too many."""

    def add(
        self,
        used: int | None,
        time: tuple[float, Clock] | None = None,
        *,
        of: Of = "card",
        card: str | None = None,
        process: int | None = None,
        name: str | None = None,
        total: int | None = None,
        step: int | None = None,
        is_share: bool = False,
    ) -> None:
        """Add a sample."""
        key: _Key = (of, card, process, name)
        samples = self._columns.get(key)
        if samples is None:
            if len(self._columns) >= _MOST_COLUMNS:
                self.left_out += 1
                return
            samples = self._columns[key] = _Samples(is_share=is_share)
        if len(samples.used) >= _MOST_SAMPLES:
            self.left_out += 1
            return
        samples.used.append(used if used is not None and 0 <= used <= _MOST_BYTES else None)
        samples.times.append(None if time is None else time[0])
        samples.steps.append(step)
        if time is not None:
            samples.clocks[time[1]] += 1
        if total:
            samples.totals[total] += 1

    def columns(self) -> tuple[SeriesColumn, ...]:
        """Return the columns of which anything is known."""
        return tuple(self._finished())

    def _finished(self) -> Iterator[SeriesColumn]:
        for (of, card, process, name), samples in self._columns.items():
            if all(used is None for used in samples.used):
                continue
            times, clock = _times(samples)
            yield SeriesColumn(
                source=self._source,
                of=of,
                card=card,
                process=process,
                name=name,
                used=tuple(samples.used),
                times=times,
                clock=clock,
                steps=tuple(step or 0 for step in samples.steps) if all(step is not None for step in samples.steps) else (),
                total=samples.totals.most_common(1)[0][0] if samples.totals else None,
                is_share=samples.is_share,
            )


def _times(samples: _Samples) -> tuple[tuple[float, ...], Clock]:
    """Return the times where every sample has one and they do not run backwards; a clock without a date passes midnight."""
    if not samples.clocks or any(time is None for time in samples.times):
        return (), "none"
    clock = samples.clocks.most_common(1)[0][0]
    out: list[float] = []
    days = 0.0
    for time in samples.times:
        moment = (time or 0.0) + days
        if clock == "none" and out and moment < out[-1] - 43_200:
            days += 86_400
            moment += 86_400
        if out and moment < out[-1]:
            return (), "none"
        out.append(moment)
    return tuple(out), clock
