"""Who holds memory in a snapshot: categories, lines, what grows and what stands in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.text import Text
from oomdoctor.report.document import Bar, Block, Facts, Folded, Heading, Paragraph, Row, Slice, Span, Style
from oomdoctor.report.wording import snapshot as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import by_category
from oomdoctor.snapshots.places import short_place
from oomdoctor.snapshots.refusal import Refusal
from oomdoctor.snapshots.sites import UNKNOWN
from oomdoctor.units import format_share, format_size

_LINES = 6
_FOLDED = 40
_NEIGHBOURS = 4
_GROWING = 3
_PARTS = 3
_PART = 0.03
"""Of all, what a part must have to be named in the first sentence."""
_UNTOLD = ("there-before-the-recording", "unknown")
_LEAST = 0.005
"""Of all, what a category must have for a slice of its own."""

Names = Mapping[str, Text]
"""The words for categories."""


def category_name(category: str, names: Names, wording: Wording) -> str:
    """Return the words for a category."""
    return wording.say(names[category]) if category in names else category


def place(site: str | None, wording: Wording) -> str:
    """Return the part of a place that tells."""
    return wording.say(texts.NO_FRAME) if site is None else short_place(site)


def owner_name(owner: tuple[str | None, str], names: Names, wording: Wording) -> str:
    """Return a line with what it holds."""
    site, category = owner
    name = category_name(category, names, wording)
    return name if site is None else place(site, wording) + wording.aside(name)


def held_parts(device: DeviceExplanation, names: Names, wording: Wording) -> str | None:
    """Return a sentence of what most of the memory is in use for, and of the lines where that is not known; None where neither is."""
    total = sum(holder.size for holder in device.holders)
    parts = [
        wording.say(texts.HELD_PART, share=format_share(size / total), name=name)
        for name, size in _named_parts(device, names, wording).most_common(_PARTS)
        if size >= _PART * total
    ]
    held = {"size": format_size(total), "parts": wording.item_comma.join(parts)}
    return wording.say(texts.HELD_AT[device.holders_at], **held) if parts else None


def _named_parts(device: DeviceExplanation, names: Names, wording: Wording) -> Counter[str]:
    sums = Counter[str]()
    for holder in device.holders:
        if holder.category != UNKNOWN:
            sums[category_name(holder.category, names, wording)] += holder.size
        elif holder.site is not None:
            sums[short_place(holder.site)] += holder.size
    return sums


def holder_blocks(device: DeviceExplanation, names: Names, wording: Wording, *, is_page: bool) -> Iterator[Block]:
    """Yield what is held by category, and the lines that hold most.

    The drawings of a page have colours and numbers for lines; there categories are a table, so that no number means two things.
    """
    categories = by_category(device.holders)
    total = sum(categories.values())
    if not total:
        return
    slices = tuple(
        Slice(category_name(name, names, wording), format_size(size), size / total, Style.DIM if name in _UNTOLD else Style.PLAIN)
        for name, size in categories.items()
        if size >= _LEAST * total
    )
    yield Heading(wording.say(texts.HOLDERS))
    title = wording.say(texts.CATEGORIES[device.holders_at], size=format_size(total))
    if is_page:
        yield Paragraph((Span(title),))
        yield Facts(tuple(Row(part.value, part.label, format_share(part.share)) for part in slices))
    else:
        yield Bar(title, slices)
    rows = _lines(device, names, wording)
    if any(row.value != wording.say(texts.NO_FRAME) for row in rows):
        yield Heading(wording.say(texts.LINES))
        yield Facts(tuple(rows[:_LINES]))
        rest = rows[_LINES:]
        if rest:
            left = total - sum(size for size, *_ in _by_site(device)[:_LINES])
            yield Folded(wording.say(texts.MORE_LINES, n=len(rest), size=format_size(left)), (Facts(tuple(rest[:_FOLDED])),))


def _lines(device: DeviceExplanation, names: Names, wording: Wording) -> list[Row]:
    return [
        Row(format_size(size), place(site, wording), wording.count(texts.BLOCKS, blocks, category=category_name(category, names, wording)))
        for size, site, category, blocks in _by_site(device)
    ]


def _by_site(device: DeviceExplanation) -> list[tuple[int, str | None, str, int]]:
    """Return size, site, category and blocks of each line, whatever the frames inside it."""
    sums: dict[tuple[str | None, str], list[int]] = {}
    for holder in device.holders:
        entry = sums.setdefault((holder.site, holder.category), [0, 0])
        entry[0] += holder.size
        entry[1] += holder.blocks
    return sorted(((size, site, category, blocks) for (site, category), (size, blocks) in sums.items()), key=lambda line: -line[0])


def neighbour_blocks(refusal: Refusal | None, names: Names, wording: Wording) -> Iterator[Block]:
    """Yield whose blocks stand between the free pieces."""
    if refusal is not None and refusal.beside:
        yield Heading(wording.say(texts.BESIDE))
        yield Facts(
            tuple(
                Row(
                    format_size(beside.size),
                    place(beside.site, wording),
                    wording.count(texts.BLOCKS, beside.blocks, category=category_name(beside.category, names, wording)),
                )
                for beside in refusal.beside[:_NEIGHBOURS]
            )
        )


def growth_blocks(device: DeviceExplanation, wording: Wording, *, told: Sequence[str]) -> Iterator[Block]:
    """Yield what grows, but for the sites that a finding has told already."""
    growing = [growth for growth in device.growth if short_place(growth.site) not in told][:_GROWING]
    if not growing:
        return
    yield Heading(wording.say(texts.GROWS))
    for growth in growing:
        sizes = {"size": format_size(growth.bytes_per_step), "held": format_size(growth.held)}
        yield Paragraph((Span(wording.say(texts.GROWTH, site=short_place(growth.site), steps=growth.steps, **sizes)),))
    if device.steps.source == "loop":
        yield Paragraph((Span(wording.say(texts.BY_ROUNDS), Style.DIM),))
