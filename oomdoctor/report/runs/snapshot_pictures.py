"""What is drawn of a snapshot: memory in use over the recording, and where it lay."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.report.document import Area, Areas, Block, Mark, Paragraph, Piece, Span, Strip, Strips, Style
from oomdoctor.report.runs.snapshot_holders import Names, category_name, place
from oomdoctor.report.wording import snapshot as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.picture.memory_map import FREE, MapSegment
from oomdoctor.units import format_size

_MOST_STEPS = 120


def over_time(device: DeviceExplanation, names: Names, wording: Wording, *, title: str) -> Iterator[Block]:
    """Yield memory in use over the recording, by holder."""
    drawn = device.course
    if not drawn.positions:
        return
    areas = [Area(_owner(owner.site, owner.category, names, wording), owner.sizes) for owner in drawn.owners]
    rest = tuple(live - sum(sizes) for live, *sizes in zip(drawn.live, *(owner.sizes for owner in drawn.owners)))
    if any(rest):
        areas.append(Area(wording.say(texts.OTHERS), rest, Style.DIM))
    yield Areas(title, tuple(areas), Area(wording.say(texts.RESERVED), drawn.reserved), tuple(_marks(device, wording)))


def _marks(device: DeviceExplanation, wording: Wording) -> Iterator[Mark]:
    if len(device.steps.ends) <= _MOST_STEPS:
        yield from (Mark(end / device.entries, "") for end in device.steps.ends)
    named = next((oom for oom in reversed(device.ooms) if not oom.survived), None)
    yield from (Mark(oom.position / device.entries, wording.say(texts.OUT_OF_MEMORY) if oom is named else "") for oom in device.ooms)


def where_it_lay(device: DeviceExplanation, names: Names, wording: Wording) -> Iterator[Block]:
    """Yield the segments at the moment that matters."""
    if not device.map.segments:
        return
    keys = (*(_owner(*owner, names, wording) for owner in device.map_owners), wording.say(texts.OTHERS))
    strips = tuple(Strip(_label(segment, wording), tuple(_pieces(segment, len(keys) - 1))) for segment in device.map.segments)
    yield Strips(wording.say(texts.MAP[device.holders_at]), keys, wording.say(texts.FREE), strips)
    if device.map.left_out:
        left = wording.count(texts.LEFT_OUT, device.map.left_out, size=format_size(device.map.left_out_bytes))
        yield Paragraph((Span(left, Style.DIM),))


def _pieces(segment: MapSegment, others: int) -> Iterator[Piece]:
    for piece in segment.pieces:
        yield Piece(piece.size, None if piece.owner == FREE else others if piece.owner < 0 else piece.owner)


def _label(segment: MapSegment, wording: Wording) -> str:
    note = wording.say(texts.SMALL) if segment.is_small else "" if segment.is_shared else wording.say(texts.OTHER_STREAM)
    return f"{format_size(segment.size)} {note}".rstrip()


def _owner(site: str | None, category: str, names: Names, wording: Wording) -> str:
    name = category_name(category, names, wording)
    return name if site is None else place(site, wording) + wording.aside(name)
