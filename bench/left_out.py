"""What was chosen with measurements in sight, chosen again without each source: how much a fit to one source flatters."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from types import ModuleType
from typing import Any

from measurements import GIB, Case, Row, error, is_counter_known, measured
from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.memory import allocator, inference
from oomdoctor.memory import estimate as ranges
from oomdoctor.memory.estimate import estimate


class Chosen(Struct, frozen=True):
    """A constant: where it stands, how it is set, its value, and others to try."""

    title: str
    module: ModuleType
    name: str
    make: Callable[[float], Any]
    used: float
    others: Sequence[float]


CONSTANTS = (
    Chosen("kept by the allocator, equal lengths", allocator, "_EVEN", lambda value: (0.0, value, 0.30), 0.10, (0.0, 0.05, 0.20, 0.30)),
    Chosen("kept by the allocator, varying lengths", allocator, "_UNEVEN", lambda value: (0.10, value, 2.80), 1.50, (0.5, 1.0, 2.0)),
    Chosen("kept by the allocator, counter unknown", allocator, "_UNSAID", lambda value: (0.0, value, 0.80), 0.10, (0.0, 0.20, 0.40)),
    Chosen("cache that grows by concatenation", allocator, "_GROWING", lambda value: (0.0, value, 1.30), 1.00, (0.0, 0.5, 1.3)),
    Chosen("CUDA context, MiB", allocator, "_CONTEXT", lambda value: int(value) << 20, 700, (300, 500, 900)),
    Chosen("training kernels, MiB", allocator, "_KERNELS", lambda value: int(value) << 20, 600, (0, 300, 900)),
    Chosen("NCCL, MiB", allocator, "_NCCL", lambda value: int(value) << 20, 1000, (0, 500, 1500)),
    Chosen("output tokens", inference, "_GENERATED", int, 2048, (512, 1024, 4096)),
)
"""What moves the expected figure."""

_LEAST_COVERED, _MOST_UNDER = 0.90, 0.04
_OF: Mapping[ranges.Seen, str] = {"torch": "torch's counters", "nvidia-smi": "nvidia-smi", "unknown": "counter unknown"}
_BELOW, _ABOVE = (0.03, 0.05, 0.07, 0.10, 0.14, 0.18), (0.14, 0.16, 0.18, 0.20, 0.22, 0.25, 0.30)
"""Margins to try: what no formula names, as shares of the whole, downwards and upwards."""


def expected(cases: Sequence[Case]) -> Iterator[str]:
    """For each constant and source: what the other sources would have chosen by their median error, and what that does to this one."""
    yield "| constant | in use | left out | chosen by the others | error, in use | error, theirs |\n|---|---|---|---|---|---|"
    for constant in CONSTANTS:
        used = constant.used
        errors = {value: _errors_with(cases, constant, value) for value in sorted({*constant.others, used})}
        touched = [source for source in errors[used] if any(errors[value][source] != errors[used][source] for value in errors)]
        for source in touched:
            rest = [other for other in touched if other != source]
            best = min(errors, key=lambda value: (_middle(errors[value], rest), abs(value - used))) if rest else None
            theirs = "no other source" if best is None else f"{best:g}"
            after = "" if best is None else f"{statistics.median(errors[best][source]):.1%}"
            yield f"| {constant.title} | {used:g} | {source} | {theirs} | {statistics.median(errors[used][source]):.1%} | {after} |"


def _errors_with(cases: Sequence[Case], constant: Chosen, value: float) -> dict[str, list[float]]:
    before = getattr(constant.module, constant.name)
    setattr(constant.module, constant.name, constant.make(value))
    try:
        out: dict[str, list[float]] = {}
        for row, made, why in cases:
            out.setdefault(row["source_group"], []).append(error(row, estimate(made, why).expected / GIB))
        return out
    finally:
        setattr(constant.module, constant.name, before)


def _middle(errors: dict[str, list[float]], sources: Sequence[str]) -> float:
    return statistics.median(error for source in sources for error in errors[source])


def margins(cases: Sequence[Case]) -> Iterator[str]:
    """For each source: the narrowest margins with which the others are covered as asked, and how they hold for this one."""
    yield "| kind | in use | left out | rows | chosen by the others | covered, in use | covered, theirs | under, in use | under, theirs |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (training, seen), used in ranges._UNNAMED.items():
        group = [_seen_by(case, seen) for case in cases if (case[0]["task"] == "train") == training and seen in _counters(case[0])]
        covered = {pair: _ranges_with(group, (training, seen), pair) for pair in {used, *product(_BELOW, _ABOVE)}}
        kind = f"{'training' if training else 'inference'}, {_OF[seen]}"
        for source in sorted({row["source_group"] for row, *_ in group}):
            inside = [number for number, case in enumerate(group) if case[0]["source_group"] == source]
            rest = [number for number in range(len(group)) if number not in inside]
            if not rest:
                continue
            theirs = min(covered, key=lambda pair: (*_fails(covered[pair], rest), sum(pair)))
            now, then = (_held(covered[pair], inside) for pair in (used, theirs))
            chosen = f"-{theirs[0]:.0%} +{theirs[1]:.0%}"
            cells = (
                kind,
                f"-{used[0]:.0%} +{used[1]:.0%}",
                source,
                len(inside),
                chosen,
                *(f"{share:.0%}" for share in (now[0], then[0], now[1], then[1])),
            )
            yield f"| {' | '.join(map(str, cells))} |"


def _counters(row: Row) -> tuple[ranges.Seen, ...]:
    """Return whose figure a row can be: one of which nobody says it counts as nvidia-smi's too, as options and configs ask for that."""
    known = row["measured_kind"] if is_counter_known(row) else "unknown"
    return ("nvidia-smi", "unknown") if known == "unknown" else ("nvidia-smi",) if known == "nvidia-smi" else ("torch",)


def _seen_by(case: Case, seen: ranges.Seen) -> Case:
    row, setup, why = case
    return case if seen == "torch" else (row, replace(setup, counter=seen), why)


def _ranges_with(cases: Sequence[Case], key: tuple[bool, ranges.Seen], pair: tuple[float, float]) -> list[tuple[bool, bool]]:
    """Covered and under, for each case."""
    before = ranges._UNNAMED
    ranges._UNNAMED = {**before, key: pair}
    try:
        estimates = [(estimate(made, why), measured(row) * GIB) for row, made, why in cases]
        return [(result.low <= size <= result.high, result.high < size) for result, size in estimates]
    finally:
        ranges._UNNAMED = before


def _held(covered: Sequence[tuple[bool, bool]], numbers: Sequence[int]) -> tuple[float, float]:
    return sum(covered[number][0] for number in numbers) / len(numbers), sum(covered[number][1] for number in numbers) / len(numbers)


def _fails(cases: Sequence[tuple[bool, bool]], numbers: Sequence[int]) -> tuple[float, float]:
    """How far the rows are from being covered as asked; zeros where they are."""
    covered, under = _held(cases, numbers)
    return max(0.0, _LEAST_COVERED - covered), max(0.0, under - _MOST_UNDER)
