"""What a run takes of a card, in words: a verdict, the parts of the peak, the phases, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Fit
from oomdoctor.case.setup import Layout, Placement, Setup
from oomdoctor.case.text import Text
from oomdoctor.memory.model.placement import card_placement
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span
from oomdoctor.report.memory.assumed import assumed, can_turn, deciding
from oomdoctor.report.memory.estimate_bars import card_bar, phase_bars
from oomdoctor.report.memory.fits import fits_line, how_judged, needs_line
from oomdoctor.report.memory.part_names import part_name, phase_name
from oomdoctor.report.memory.simulated import simulated_blocks
from oomdoctor.report.memory.start_refusals import refusal_blocks
from oomdoctor.report.memory.understood import understood
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_PARTS = 4
"""Parts of a card that are named in a line."""


def compose(run: RunEstimate, estimate: Estimate, wording: Wording, version: str) -> Document:
    """Compose the document; `estimate` is that of the run."""
    title = wording.say(Text("oomdoctor {} · estimate", "oomdoctor {} · 显存估计")).format(version)
    return Document(title=title, blocks=tuple(_blocks(run, estimate, wording)), lang=wording.lang)


def _blocks(run: RunEstimate, estimate: Estimate, wording: Wording) -> Iterator[Block]:
    """Yield what the run needs, with a card or without: one sum, and its parts add up to it."""
    need, judged = run.needed or estimate, run.fit
    yield Paragraph((Span(understood(estimate.setup, wording)),))
    yield from refusal_blocks(run.refusals, wording)
    yield Paragraph(spans=tuple(_headline(estimate, need, wording, judged, depends=can_turn(run.otherwise))))
    yield from deciding(estimate.assumptions, run.otherwise, wording)
    yield card_bar(need, judged.budget if judged else None, wording)
    if need.ranks:
        yield Heading(text=wording.say(Text("Card by card", "各张卡")))
        yield Facts(rows=tuple(_rank(rank, need.setup, wording) for rank in need.ranks))
    yield Heading(text=wording.say(Text("Phases", "各阶段")))
    yield phase_bars(need, wording)
    if host := tuple(Row(label=wording.say(text), value=format_size(size)) for text, size in _host(need) if size):
        yield Facts(rows=host)
    yield from simulated_blocks(run.simulation, wording)
    yield from assumed(estimate.assumptions, wording)
    yield Folded(title=wording.say(Text("How this is decided", "判断依据")), blocks=how_judged(wording))
    yield Folded(
        title=wording.say(Text("Range of each part, and the source of its formula", "各部分的区间与公式来源")),
        blocks=(Facts(rows=tuple(_terms(need, wording))),),
    )


def _host(estimate: Estimate) -> Iterator[tuple[Text, int]]:
    yield Text("host memory for offloaded data", "卸载所需的内存"), estimate.host
    yield Text("host memory while loading", "加载时所需的内存"), estimate.host_loading
    yield Text("host memory while saving", "保存完整检查点时所需的内存"), estimate.host_saving


def _headline(estimate: Estimate, need: Estimate, wording: Wording, judged: Fit | None, *, depends: bool) -> Iterator[Span]:
    """Say the verdict, the need, when it is, and what nvidia-smi may show, which counts what torch holds and no tensor uses."""
    phase = phase_name(need.peak.name, wording)
    yield from needs_line(need, wording) if judged is None else fits_line(judged, wording, depends=depends)
    yield Span(f"需要最多的阶段：{phase}。" if wording.is_chinese else f" It needs the most during this phase: {phase}.")
    if estimate.setup.ggml is None and (judged is None or judged.fits != "no"):
        within = judged is None or estimate.high < judged.budget.total
        yield Span(_shown(format_size(estimate.high) if within else None, wording))


def _shown(most: str | None, wording: Wording) -> str:
    """Say what nvidia-smi can show of a run that fits; None is all of the card."""
    if wording.is_chinese:
        return f"nvidia-smi 可能显示{f'多达 {most}' if most else '整张卡都被占满'}，因为 torch 会缓存已释放的显存块。"
    return f" nvidia-smi may show {f'up to {most}' if most else 'the whole card in use'}, because torch keeps freed blocks."


def _rank(estimate: Estimate, run: Setup, wording: Wording) -> Row:
    """Return one card, or several alike: its peak and the largest parts of it."""
    parts = sorted(estimate.peak.terms, key=lambda term: -term.bytes)[:_PARTS]
    largest = wording.comma.join(f"{part_name(term.name, wording)} {format_size(term.bytes)}" for term in parts if term.bytes)
    placement = card_placement(estimate.setup)
    return Row(label=_which(run.layout, placement, wording), value=format_size(estimate.expected), note=largest)


def _which(layout: Layout, placement: Placement, wording: Wording) -> str:
    """Name cards as CUDA numbers them, from 0; stages of a pipeline from 1. Of the stages in the middle the first is the fullest."""
    if layout.pipeline == 1:
        several = placement.last > placement.first
        return wording.say(Text("cards {} to {}" if several else "card {}", "第 {} 至 {} 号卡" if several else "{} 号卡")).format(
            placement.first, placement.last
        )
    first, last = placement.first + 1, placement.last + 1
    if first == last:
        return wording.say(Text("stage {} of {}", "流水线第 {} 级，共 {} 级")).format(first, layout.pipeline)
    return wording.say(Text("stages {} to {}, at most", "流水线第 {} 至 {} 级，至多")).format(first, last)


def _terms(estimate: Estimate, wording: Wording) -> Iterator[Row]:
    for term in sorted(estimate.peak.terms, key=lambda term: -term.bytes):
        between = wording.say(Text("{} to {}", "{} 至 {}")).format(format_size(term.low), format_size(term.high))
        yield Row(label=part_name(term.name, wording), value=between, note=term.basis)
