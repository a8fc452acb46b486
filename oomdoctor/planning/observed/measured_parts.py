"""What was live on a GPU, by use, compared with the memory model: part by part, with the meaning of each difference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.recorded.parts import ExpectedPart, MeasuredPart, MeasuredParts
from oomdoctor.case.text import Text
from oomdoctor.knowledge.records.evidence import HoldingRecord
from oomdoctor.snapshots.explain import AT_OOM, AT_PEAK, DeviceExplanation
from oomdoctor.snapshots.places import short_place
from oomdoctor.snapshots.sites import BEFORE, UNKNOWN, Holder

_ONCE = frozenset(("load", "save", "merge"))
"""Phases of the memory model that do not occur in every step."""
_UNTOLD = frozenset((BEFORE, UNKNOWN))
_LARGE = 0.05
"""Of all live memory: a smaller difference decides nothing."""
_FAR = 1.25
"""How far above the range of the estimate is more than formulas miss."""
_FEW = 0.5
"""Of the expected minimum: anything less is absent, and not just smaller."""


class _Held(Struct):
    bytes: int = 0
    has_frames: bool = True
    site: str | None = None
    site_bytes: int = 0

    def add(self, holder: Holder) -> None:
        self.bytes += holder.size
        self.has_frames &= holder.frame is not None
        if holder.size > self.site_bytes and holder.site is not None:
            self.site, self.site_bytes = short_place(holder.site), holder.size


def measured_parts(
    device: DeviceExplanation, holdings: Sequence[HoldingRecord], estimate: Estimate | None, *, at_failure: bool
) -> MeasuredParts | None:
    """Return the parts of GPU memory; None if the recording identifies the use of none.

    `at_failure`: the state was saved at the failed request, even if no history says so. `estimate` is None if the settings
    of the run are unknown.
    """
    held = _held(device.holders, {holding.id: holding.counted_as or holding.id for holding in holdings})
    if held.keys() <= _UNTOLD:
        return None
    parts = sorted(_parts(held, holdings, estimate), key=lambda part: -part.bytes)
    moment: Literal["failure", "peak", "end"] = (
        "failure" if at_failure or device.holders_at == AT_OOM else "peak" if device.holders_at == AT_PEAK else "end"
    )
    return MeasuredParts(device=device.index, at=moment, parts=tuple(parts))


def _held(holders: Sequence[Holder], counted_as: Mapping[str, str]) -> dict[str, _Held]:
    out: dict[str, _Held] = {}
    for holder in holders:
        out.setdefault(counted_as.get(holder.category, holder.category), _Held()).add(holder)
    return out


def _parts(held: Mapping[str, _Held], holdings: Sequence[HoldingRecord], estimate: Estimate | None) -> Iterator[MeasuredPart]:
    live = sum(part.bytes for part in held.values())
    untold = sum(part.bytes for name, part in held.items() if name in _UNTOLD)
    for holding in holdings:
        part = held.get(holding.id, _Held())
        expected = None if estimate is None or holding.id in _UNTOLD else expected_part(estimate, holding.terms)
        if part.bytes or (expected is not None and expected.bytes >= _LARGE * live):
            yield MeasuredPart(
                name=holding.id,
                says=Text(holding.says.en, holding.says.zh),
                bytes=part.bytes,
                source="measured" if part.has_frames or holding.id in _UNTOLD else "derived",
                site=part.site,
                terms=tuple(holding.terms),
                expected=expected,
                meaning=None if expected is None else _meaning(holding, part, expected, live, untold),
            )


def expected_part(estimate: Estimate, terms: Collection[str]) -> ExpectedPart:
    """Return the memory of these terms in the phase in which they use most; terms that the run does not have are expected to be absent."""
    of_terms = [[term for term in phase.terms if term.name in terms] for phase in estimate.phases if phase.name not in _ONCE]
    most = max(of_terms, key=lambda phase: sum(term.bytes for term in phase), default=[])
    return ExpectedPart(bytes=sum(term.bytes for term in most), low=sum(term.low for term in most), high=sum(term.high for term in most))


def _meaning(holding: HoldingRecord, part: _Held, expected: ExpectedPart, live: int, untold: int) -> Text | None:
    """Return the meaning of a large difference; None if it is small, or memory of unknown use may account for it."""
    more, less = part.bytes - expected.bytes, expected.bytes - part.bytes
    if not expected.bytes:
        return _unexpected(part.site) if more >= _LARGE * live else None
    record = None
    if part.bytes > _FAR * expected.high and more >= _LARGE * live:
        record = holding.more
    elif part.bytes < _FEW * expected.low and less >= _LARGE * live and untold < less:
        record = holding.less
    return None if record is None else Text(record.en, record.zh)


def _unexpected(site: str | None) -> Text:
    en, zh = "nothing in the settings explains it", "设置里没有会产生它的内容"
    return Text(en, zh) if site is None else Text(f"{en}: {site}", f"{zh}：{site}")
