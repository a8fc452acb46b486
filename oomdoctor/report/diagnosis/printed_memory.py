"""Memory over steps as the log prints it -> a chart."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.report.document import Block, Curve, Curves, Limit, Moment
from oomdoctor.report.wording import series as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.series.printed import PrintedCurve, PrintedMemory


def printed_memory_chart(printed: PrintedMemory | None, wording: Wording) -> Iterator[Block]:
    """Yield the chart; nothing where the log prints too little."""
    if printed is None:
        return
    many = len({curve.rank for curve in printed.curves}) > 1
    yield Curves(
        wording.say(texts.PRINTED),
        wording.say(texts.BY_STEP if printed.is_by_step else texts.BY_LINE),
        tuple(Curve(_name(curve, wording, many=many), curve.points) for curve in printed.curves),
        limit=None if printed.total is None else Limit(wording.say(texts.CARD_SIZE), printed.total),
        failure=None if printed.failed_at is None else Moment(printed.failed_at, wording.say(texts.FAILURE)),
    )


def _name(curve: PrintedCurve, wording: Wording, *, many: bool) -> str:
    figure = wording.say(texts.PRINTED_FIGURES[curve.figure])
    if not many:
        return figure
    return (wording.say(texts.RANK, rank=curve.rank) if curve.rank is not None else wording.say(texts.NO_RANK)) + wording.colon + figure
