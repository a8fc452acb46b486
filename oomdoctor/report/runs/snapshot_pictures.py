"""What is drawn of a snapshot: memory in use over the recording, and where it lay."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from oomdoctor.report.document import Area, Areas, Block, Folded, Mark, Paragraph, Piece, Span, Strip, Strips, Style
from oomdoctor.report.runs.snapshot_holders import Names, owner_name
from oomdoctor.report.wording import snapshot as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.picture.course import OwnerCourse
from oomdoctor.snapshots.picture.memory_map import FREE, MapSegment
from oomdoctor.snapshots.places import short_place
from oomdoctor.units import format_size

_MOST_STEPS = 120


def over_time(device: DeviceExplanation, names: Names, wording: Wording, *, title: str) -> Iterator[Block]:
    """Yield memory in use over the recording, by holder."""
    drawn = device.course
    if not drawn.positions:
        return
    areas = [
        Area(
            owner_name((owner.site, owner.category), names, wording),
            owner.sizes,
            about=_about(owner, device, wording),
            stack=tuple(map(short_place, owner.frames)),
        )
        for owner in drawn.owners
    ]
    rest = tuple(live - sum(sizes) for live, *sizes in zip(drawn.live, *(owner.sizes for owner in drawn.owners)))
    if any(rest):
        areas.append(Area(wording.say(texts.OTHERS), rest, Style.DIM))
    yield Areas(title, tuple(areas), Area(wording.say(texts.RESERVED), drawn.reserved), tuple(_marks(device, wording)))


def _about(owner: OwnerCourse, device: DeviceExplanation, wording: Wording) -> str:
    """Say how many blocks a holder has, and in which steps."""
    told = wording.count(texts.AT_ITS_MOST, owner.blocks)
    held = [position for position, size in zip(device.course.positions, owner.sizes) if size]
    if device.steps.ends and held:
        first, last = (bisect_right(device.steps.ends, position) + 1 for position in (held[0], held[-1]))
        told += wording.comma + wording.say(texts.IN_STEP if first == last else texts.FROM_STEP, first=first, last=last)
    return told + wording.stop


def _marks(device: DeviceExplanation, wording: Wording) -> Iterator[Mark]:
    if len(device.steps.ends) <= _MOST_STEPS:
        yield from (Mark(end / device.entries, "") for end in device.steps.ends)
    named = next((oom for oom in reversed(device.ooms) if not oom.survived), None)
    yield from (Mark(oom.position / device.entries, wording.say(texts.OUT_OF_MEMORY) if oom is named else "") for oom in device.ooms)


def where_it_lay(device: DeviceExplanation, names: Names, wording: Wording) -> Iterator[Block]:
    """Yield the segments at the moment that matters, those that look alike in one row."""
    if not device.map.segments:
        return
    keys = (*(owner_name(owner, names, wording) for owner in device.map_owners), wording.say(texts.OTHERS))
    drawn = Counter((_label(segment, wording), tuple(_pieces(segment, len(keys) - 1))) for segment in device.map.segments)
    strips = tuple(
        Strip(label if n == 1 else wording.say(texts.ALIKE_SEGMENTS, n=n, label=label), pieces) for (label, pieces), n in drawn.items()
    )
    blocks: list[Block] = [Strips(wording.say(texts.SEGMENTS), keys, wording.say(texts.FREE), strips)]
    if device.map.left_out:
        left = wording.count(texts.LEFT_OUT, device.map.left_out, size=format_size(device.map.left_out_bytes))
        blocks.append(Paragraph((Span(left, Style.DIM),)))
    yield Folded(wording.say(texts.MAP[device.holders_at]), tuple(blocks))


def _pieces(segment: MapSegment, others: int) -> Iterator[Piece]:
    for piece in segment.pieces:
        yield Piece(piece.size, None if piece.owner == FREE else others if piece.owner < 0 else piece.owner)


def _label(segment: MapSegment, wording: Wording) -> str:
    note = wording.say(texts.SMALL) if segment.is_small else "" if segment.is_shared else wording.say(texts.OTHER_STREAM)
    return f"{format_size(segment.size)} {note}".rstrip()
