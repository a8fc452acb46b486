"""Snapshots of several ranks beside each other: which holds more, and by which lines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low

from oomdoctor.api.runs.snapshot import SnapshotFile
from oomdoctor.report.document import Bar, Bars, Block, Cell, Heading, Paragraph, Slice, Span, Style, Table
from oomdoctor.report.runs.snapshot_holders import Names, category_name, owner_name, place
from oomdoctor.report.wording import snapshot as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import last_refusal
from oomdoctor.snapshots.picture.course import Owner
from oomdoctor.units import MIB, format_size

_LEAST = 64 * MIB
_LEAST_SHARE = 0.03
_PARTS = 3
_SHOWN = 16

Named = tuple[str, DeviceExplanation]
"""A device, and the name of the file and card."""
Held = Mapping[Owner, int]


def named_devices(files: Sequence[SnapshotFile], wording: Wording) -> list[Named]:
    """Return all devices with a name that tells them apart."""
    out: list[Named] = []
    for file in files:
        for device in file.devices:
            base = os.path.basename(file.name)
            is_one = len(file.devices) == 1
            index = wording.say(texts.DEVICE, index=device.index)
            name = index if len(files) == 1 else base if is_one else wording.say(texts.IN_FILE, file=base, index=device.index)
            out.append((name, device))
    return out


def rank_blocks(devices: Sequence[Named], drawn: DeviceExplanation | None, names: Names, wording: Wording) -> Iterator[Block]:
    """Yield the devices beside each other, and what the fullest holds that the others do not; holders look as in the chart of `drawn`."""
    if len(devices) < 2:
        return
    yield Heading(wording.say(texts.RANKS))
    text = _fullest(devices, names, wording)
    yield Paragraph((Span(text or wording.say(texts.ALIKE), Style.STRONG if text else Style.PLAIN),))
    yield _bars(devices[:_SHOWN], () if drawn is None else drawn.map_owners, names, wording)
    columns = tuple(Cell(wording.say(column)) for column in texts.RANK_COLUMNS)
    yield Table(wording.say(texts.RANKS_AT_PEAK), columns, tuple(_row(name, device) for name, device in devices[:_SHOWN]))


def _bars(devices: Sequence[Named], owners: Sequence[Owner], names: Names, wording: Wording) -> Bars:
    """Return what each device holds, in one scale."""
    rest = wording.say(texts.OTHERS)
    held = [(name, Counter[str](), sum(holder.size for holder in device.holders)) for name, device in devices]
    for (_, sums, _), (_, device) in zip(held, devices):
        for owner, size in _held(device).items():
            sums[owner_name(owner, names, wording) if owner in owners else rest] += size
    whole = max(1, *(total for *_, total in held))
    bars = (
        Bar(
            name,
            tuple(
                Slice(label, format_size(size), size / whole, Style.DIM if label == rest else Style.PLAIN) for label, size in sums.items()
            ),
            value=format_size(total),
        )
        for name, sums, total in held
    )
    parts = (*(owner_name(owner, names, wording) for owner in owners), rest)
    return Bars(wording.say(texts.RANKS_HOLD), tuple(bars), parts=parts, is_told=True)


def _row(name: str, device: DeviceExplanation) -> tuple[Cell, ...]:
    refusal = last_refusal(device)
    failed = Cell("-") if refusal is None else Cell(format_size(refusal.requested), Style.PLAIN if refusal.survived else Style.BAD)
    return Cell(name), Cell(format_size(device.peak.requested)), Cell(format_size(device.peak.reserved)), failed


def _fullest(devices: Sequence[Named], names: Names, wording: Wording) -> str | None:
    """Say which device holds more than the others, and by which lines; None where they hold much the same."""
    held = [_held(device) for _, device in devices]
    totals = [sum(sizes.values()) for sizes in held]
    at = totals.index(max(totals))
    others = [sizes for number, sizes in enumerate(held) if number != at]
    more = totals[at] - median_low(sum(sizes.values()) for sizes in others)
    if more < max(_LEAST, _LEAST_SHARE * totals[at]):
        return None
    # What stands in no list of another is held there, too, as nothing.
    by_line = {line: size - median_low(sizes.get(line, 0) for sizes in others) for line, size in held[at].items()}
    largest = sorted(((size, line) for line, size in by_line.items() if size > _LEAST_SHARE * more), key=lambda part: -part[0])
    parts = [
        wording.say(texts.MORE_PART, size=format_size(size), site=place(site, wording), category=category_name(category, names, wording))
        for size, (site, category) in largest[:_PARTS]
    ]
    text = wording.say(texts.MORE, name=devices[at][0], size=format_size(more))
    return text + (wording.say(texts.MORE_FROM, parts=wording.semicolon.join(parts)) if parts else wording.stop)


def _held(device: DeviceExplanation) -> Held:
    out: dict[tuple[str | None, str], int] = {}
    for holder in device.holders:
        line = (holder.site, holder.category)
        out[line] = out.get(line, 0) + holder.size
    return out
