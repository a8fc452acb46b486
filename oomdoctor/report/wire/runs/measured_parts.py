"""What a card's memory was held for -> JSON."""

from __future__ import annotations

from oomdoctor.case.recorded.parts import MeasuredPart, MeasuredParts
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.report_v1 import ExpectedPartV1, MeasuredPartV1, MeasuredV1
from oomdoctor.report.wording.wording import Wording

_LONGEST = 1000


def convert_measured(measured: MeasuredParts, wording: Wording) -> MeasuredV1:
    """Convert the parts, with their texts in one language."""
    return MeasuredV1(device=measured.device, at=measured.at, parts=tuple(_part(part, wording) for part in measured.parts))


def _part(part: MeasuredPart, wording: Wording) -> MeasuredPartV1:
    expected = part.expected
    return MeasuredPartV1(
        what=part.name.replace("-", " "),
        says=wording.say(part.says),
        bytes=part.bytes,
        source=part.source,
        site=None if part.site is None else clean_line(part.site, _LONGEST),
        expected=None if expected is None else ExpectedPartV1(bytes=expected.bytes, low_bytes=expected.low, high_bytes=expected.high),
        difference_bytes=None if expected is None else part.bytes - expected.bytes,
        meaning=None if part.meaning is None else clean_line(wording.say(part.meaning), _LONGEST),
    )
