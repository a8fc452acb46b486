"""Estimates as bars: the parts of the peak against the card, one phase below the other, plans and runs in one scale."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoctor.case.estimate import Estimate, Phase
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.document import Bar, Bars, Mark, Slice, Style
from oomdoctor.report.memory.part_names import part_name, phase_name
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_FREE = Text("free", "空闲")
CARD = Text("card: {size}", "显卡：{size}")
_USABLE = Text("usable: {size}", "可规划：{size}")
_PEAK = Text("Peak on one card", "单卡峰值")
BY_PHASE = Text("Memory in use during each phase", "各阶段同时占用的显存")


def estimate_bar(estimate: Estimate, whole: int, wording: Wording, *, title: str, note: str = "") -> Bar:
    """Return the parts of the peak with their range, as shares of a whole."""
    slices = phase_slices(estimate.peak, whole, wording)
    value = range_of(estimate.expected, estimate.low, estimate.high, wording)
    return Bar(title, slices, value=value, note=note, spread=(estimate.low / whole, estimate.high / whole))


def card_bar(estimate: Estimate, budget: MemoryBudget | None, wording: Wording) -> Bar:
    """Return the parts of the peak, and what of the card is free or where it ends."""
    whole = max(estimate.expected, budget.total if budget else 0)
    slices = list(phase_slices(estimate.peak, whole, wording))
    if budget is not None and budget.total > estimate.expected:
        free = budget.total - estimate.expected
        slices.append(Slice(wording.say(_FREE), format_size(free), free / whole, Style.GOOD))
    title = budget.card if budget else wording.say(_PEAK)
    return Bar(title, tuple(slices), mark=_end(estimate, budget, wording), spread=(estimate.low / whole, estimate.high / whole))


def phase_bars(estimate: Estimate, wording: Wording) -> Bars:
    """Return a bar for each phase, all in the scale of the largest."""
    whole = max(1, estimate.peak.bytes)
    bars = (
        Bar(phase_name(phase.name, wording), phase_slices(phase, whole, wording), value=format_size(phase.bytes))
        for phase in estimate.phases
    )
    return Bars(wording.say(BY_PHASE), tuple(bars), parts=tuple(part.label for part in phase_slices(estimate.peak, whole, wording)))


def phase_slices(phase: Phase, whole: int, wording: Wording) -> tuple[Slice, ...]:
    """Return the parts of a phase, the largest first, as shares of a whole."""
    parts = sorted(phase.terms, key=lambda term: -term.bytes)
    return tuple(Slice(part_name(term.name, wording), format_size(term.bytes), term.bytes / whole) for term in parts)


def estimate_bars(title: str, rows: Sequence[tuple[str, Estimate, str]], budget: MemoryBudget | None, wording: Wording) -> Bars:
    """Return a bar for each (name, estimate, note), in one scale, against what a plan may use of the card.

    Without a card they are told elsewhere.
    """
    whole = max(1, *(estimate.high for _, estimate, _ in rows), budget.usable if budget else 0)
    bars = tuple(estimate_bar(estimate, whole, wording, title=name, note=note) for name, estimate, note in rows)
    if budget is None:
        return Bars(title, bars, is_told=True)
    return Bars(title, bars, Mark(budget.usable / whole, wording.say(_USABLE, size=format_size(budget.usable))))


def _end(estimate: Estimate, budget: MemoryBudget | None, wording: Wording) -> Mark | None:
    """Return where the card ends, if the run is larger."""
    if budget is None or budget.total >= estimate.expected:
        return None
    return Mark(budget.total / estimate.expected, wording.say(CARD, size=format_size(budget.total)))
