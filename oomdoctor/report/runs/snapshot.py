"""What memory snapshots tell -> Document: why it failed, who held the memory, what grew, what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.api.runs.snapshot import SnapshotReport
from oomdoctor.case.diagnosis import Finding
from oomdoctor.report.diagnosis.steps import first_of_each
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.runs.snapshot_holders import category_name, growth_blocks, held_parts, holder_blocks, neighbour_blocks
from oomdoctor.report.runs.snapshot_pictures import over_time, where_it_lay
from oomdoctor.report.runs.snapshot_ranks import named_devices, rank_blocks
from oomdoctor.report.wording import labels
from oomdoctor.report.wording import snapshot as texts
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import by_category, decisive, last_refusal
from oomdoctor.snapshots.places import short_place
from oomdoctor.snapshots.refusal import FRAGMENTATION, LIMIT, OTHER_POOL, OTHERS, Refusal
from oomdoctor.snapshots.sites import UNKNOWN
from oomdoctor.units import format_size

_ENTRIES = 1_000_000
_LATE = 0.3
"""Of all, what may have been there before the recording without a word about it."""
_BEFORE = "there-before-the-recording"
_IN_FINDINGS = (FRAGMENTATION, OTHER_POOL, LIMIT, OTHERS)
"""Reasons that a finding tells whole."""
_OLD_CALL = f"torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries={_ENTRIES}, trace_alloc_record_context=True)"
"""Of torch 2.0, whose snapshots have blocks with a history; 2.1 changed the arguments (torch/cuda/memory.py)."""
_OLD_TORCH = ("1.13", "2.0")
_CALL = f'torch.cuda.memory._record_memory_history(stacks="python", max_entries={_ENTRIES})'


def compose(report: SnapshotReport, wording: Wording, version: str, *, is_page: bool = False) -> Document:
    """Compose the answer, the failure first. A page has drawings, too."""
    named = named_devices(report.files, wording)
    device = decisive([device for _, device in named])
    blocks: list[Block] = []
    if report.files and device is None:
        is_cut = any(file.is_cut for file in report.files)
        blocks.append(Paragraph((Span(wording.say(texts.CUT if is_cut else texts.NOTHING), Style.STRONG),)))
    if device is not None:
        name = next(name for name, other in named if other is device)
        blocks = list(_device(name, device, report, wording, is_page=is_page))
    blocks += rank_blocks(named, device, report.categories, wording)
    blocks += _unknown(report, device, wording)
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def _device(name: str, device: DeviceExplanation, report: SnapshotReport, wording: Wording, *, is_page: bool) -> Iterator[Block]:
    refusal, names = last_refusal(device), report.categories
    held = held_parts(device, names, wording)
    if refusal is None and any(file.is_cut for file in report.files):
        yield Paragraph((Span(wording.say(texts.CUT), Style.BAD),))
    else:
        yield from _verdict(name, refusal, report, held, wording)
    totals, title = Facts(tuple(_totals(name, device, wording))), wording.say(texts.OVER_TIME_BY if is_page else texts.OVER_TIME)
    chart = over_time(device, names, wording, title=title)
    yield from (*chart, totals) if is_page else (totals, *chart)
    yield from _findings(report.findings, wording)
    yield from holder_blocks(device, names, wording, is_page=is_page)
    yield from neighbour_blocks(refusal, names, wording)
    yield from growth_blocks(device, wording, told=_told(device, report.findings))
    if is_page:
        yield from where_it_lay(device, names, wording)


def _verdict(name: str, refusal: Refusal | None, report: SnapshotReport, held: str | None, wording: Wording) -> Iterator[Block]:
    """Yield whether a request failed, and what the memory was in use for: that first where none failed."""
    if refusal is None:
        parts = (wording.say(texts.NO_FAILURE),) if held is None else (held, wording.say(texts.NO_FAILURE))
        yield from (Paragraph((Span(text, Style.PLAIN if at else Style.STRONG),)) for at, text in enumerate(parts))
        return
    yield from _failure(name, refusal, report, wording)
    if held is not None:
        yield Paragraph((Span(held),))


def _failure(name: str, refusal: Refusal, report: SnapshotReport, wording: Wording) -> Iterator[Block]:
    size = format_size(refusal.requested)
    if refusal.survived:
        yield Paragraph((Span(wording.say(texts.SURVIVED, device=name, size=size), Style.STRONG),))
        return
    headline = wording.say(texts.FAILED, device=name, size=size)
    if refusal.site is not None:
        category = "" if refusal.category == UNKNOWN else wording.aside(category_name(refusal.category, report.categories, wording))
        headline += wording.say(texts.FAILED_AT, site=short_place(refusal.site)) + category
    is_explained = refusal.why in _IN_FINDINGS and any(finding.probability is not None for finding in report.findings)
    why = () if is_explained else (Span(wording.blank), Span(_why(refusal, wording)))
    yield Paragraph((Span(headline + wording.stop, Style.BAD), *why))


def _why(refusal: Refusal, wording: Wording) -> str:
    sizes = {
        "free": refusal.free_in_pool,
        "largest": refusal.largest_free_block,
        "live": refusal.live_requested,
        "driver": refusal.device_free,
        "elsewhere": refusal.free_elsewhere,
    }
    return wording.say(texts.WHY[refusal.why], **{name: format_size(size) for name, size in sizes.items() if size is not None})


def _totals(name: str, device: DeviceExplanation, wording: Wording) -> Iterator[Row]:
    end = device.end
    peak = {"peak": format_size(device.peak.requested), "reserved": format_size(device.peak.reserved)}
    yield Row(name, wording.say(texts.PEAK, **peak))
    largest = wording.say(texts.NOT_KNOWN) if end.largest_free_block is None else format_size(end.largest_free_block)
    sizes = {"requested": format_size(end.requested), "allocated": format_size(end.allocated)}
    yield Row("", wording.say(texts.AT_END, largest=largest, **sizes))


def _findings(findings: Sequence[Finding], wording: Wording) -> Iterator[Block]:
    if not findings:
        return
    yield Heading(wording.say(texts.CAUSES))
    for finding in findings:
        certainty = wording.aside(wording.say(labels.CONFIDENCE[finding.confidence.value]))
        title = Span(bare(wording.say(finding.title)) + certainty, Style.STRONG)
        yield Paragraph((title, Span(wording.colon), *spans(wording.say(finding.why))))
    yield from first_of_each(findings, wording)


def _told(device: DeviceExplanation, findings: Sequence[Finding]) -> list[str]:
    """Return the sites that grow and that a finding names."""
    sites = (short_place(growth.site) for growth in device.growth)
    return [site for site in sites if any(site in finding.why.en for finding in findings)]


def _unknown(report: SnapshotReport, device: DeviceExplanation | None, wording: Wording) -> Iterator[Block]:
    open_points = [*_missing(report, device, wording)]
    open_points += [wording.count(texts.UNREADABLE, file.unreadable) for file in report.files if file.unreadable]
    open_points += [wording.say(texts.OPEN, what=gap.what, why=bare(gap.why)) for gap in report.gaps]
    if open_points:
        yield Heading(wording.say(texts.UNKNOWN))
        yield from (Paragraph(spans(text)) for text in open_points)


def _missing(report: SnapshotReport, device: DeviceExplanation | None, wording: Wording) -> Iterator[str]:
    """Yield what a better recording of the device would tell, and how to make it with this torch."""
    if device is None:
        return
    file = next((file for file in report.files if device in file.devices), None)
    if file is not None and file.is_cut:
        return
    torch = None if file is None else file.torch_at_least
    call = _OLD_CALL if torch in _OLD_TORCH else _CALL
    categories = by_category(device.holders)
    before = categories.get(_BEFORE, 0)
    if not device.has_history:
        yield wording.say(texts.NO_TRACE if device.has_frames else texts.NO_HISTORY, call=call)
    elif not device.has_frames:
        yield wording.say(texts.NO_FRAMES, call=call)
    elif before > _LATE * sum(categories.values()):
        yield wording.say(texts.LATE, size=format_size(before), call=call)
