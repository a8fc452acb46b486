"""Memory over time -> JSON."""

from __future__ import annotations

from oomdoctor.case.recorded.series import SeenSeries, Slope
from oomdoctor.report.diagnosis.over_time import course
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.report_v1 import PaceV1, RecordedSeriesV1

_PERCENT = 1000.0


def convert_series(series: SeenSeries) -> RecordedSeriesV1:
    """Convert a series."""
    column, shape = series.column, series.shape
    in_bytes = None if column.is_share else shape
    return RecordedSeriesV1(
        source=clean_line(column.source, 1000),
        of=column.of,
        card=None if column.card is None else clean_line(column.card, 80),
        process=column.process,
        name=None if column.name is None else clean_line(column.name, 200),
        samples=0 if shape is None else shape.samples,
        shape=None if shape is None else shape.name,
        total_bytes=None if column.is_share else column.total,
        first_bytes=None if in_bytes is None else in_bytes.first,
        last_bytes=None if in_bytes is None else in_bytes.last,
        highest_bytes=None if in_bytes is None else in_bytes.highest,
        lowest_bytes=None if in_bytes is None else in_bytes.lowest,
        last_climb_bytes=None if in_bytes is None else in_bytes.last_climb,
        rises=0 if shape is None else shape.rises,
        per_hour=None if shape is None else _pace(shape.per_hour, column.is_share),
        per_step=None if shape is None else _pace(shape.per_step, column.is_share),
        hours_to_full=None if shape is None else shape.hours_to_full,
        interval_s=None if shape is None else shape.interval,
        failed_at=series.failed_at,
        course=() if column.is_share else course(column.used),
    )


def _pace(pace: Slope | None, is_share: bool) -> PaceV1 | None:
    unit = _PERCENT if is_share else 1.0
    return None if pace is None else PaceV1(low=pace.low / unit, middle=pace.middle / unit, high=pace.high / unit)
