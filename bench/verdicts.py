"""Verdicts against published measurements, for docs/accuracy.md: is a run ever said to fit that took more than the card has?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from measurements import GIB, Case, Row, measured

from oomdoctor.case.plan import Fits
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import Card, card_named
from oomdoctor.planning.memory_budget import judge_fit, memory_budget

SIZES = (8, 12, 16, 24, 32, 40, 48, 80)
"""GB of the cards that people have."""
LIVE = ("max_allocated", "peak_active")
"""Counters of live tensors. Of what is reserved torch gives back what it can before a request fails, so that a run which reserved
more than a card has may fit it nevertheless."""
_NAMED = re.compile(r"(?i)\b(A100|A10G?|H100|H20|L40S|T4|3090|4090)\b(?:-(\d{2,3}GB))?")
_LARGEST = {"A100": "80GB"}
"""The size of a card that comes in several, where a table does not say it: with the larger one more runs are said to fit."""
Held = tuple[Row, Fits, bool]
"""A row, what is said of it, and whether it took more than the card has."""


def own_card(named: str) -> Card | None:
    """Return the card that a row names (`2 * A10`, `A100-40GB`); None where it names none, or several."""
    names = {(match[1].upper(), (match[2] or "").upper()) for match in _NAMED.finditer(named)}
    if len(names) != 1:
        return None
    model, size = names.pop()
    size = size or _LARGEST.get(model, "")
    return card_named(f"{model}-{size}") or card_named(size or model)


def on_own_cards(cases: Sequence[Case]) -> list[Held]:
    """Every row that names its card, held against this card."""
    return [_held(row, made, card) for row, made, _ in cases if (card := own_card(row["gpu_model"])) is not None]


def on_all_sizes(cases: Sequence[Case]) -> list[Held]:
    """Every row that measured live tensors, held against each of the usual cards."""
    sizes = [card for size in SIZES if (card := card_named(f"{size}GB")) is not None]
    return [_held(row, made, card) for row, made, _ in cases if row["measured_kind"] in LIVE for card in sizes]


def _held(row: Row, made: Setup, card: Card) -> Held:
    return row, judge_fit(made, memory_budget(card)).fits, measured(row) * GIB > card.bytes


def section(cases: Sequence[Case]) -> Iterator[str]:
    """Return the part of the document."""
    yield "| verdict | own GPU: used less | own GPU: used more | all sizes: used less | all sizes: used more |\n|---|---:|---:|---:|---:|"
    named, every = on_own_cards(cases), on_all_sizes(cases)
    numbers = [Counter((fits, more) for _, fits, more in held) for held in (named, every)]
    titles: dict[Fits, str] = {"yes": "fits", "close": "too close to call", "no": "does not fit"}
    for fits, title in titles.items():
        yield f"| {title} | " + " | ".join(str(counts[fits, more]) for counts in numbers for more in (False, True)) + " |"
    yield from _named("\nReported as fitting, but used more than the GPU has", named + every, lambda fits, more: fits == "yes" and more)
    yield from _named("\nReported as not fitting the GPU on which it ran", named, lambda fits, more: fits == "no" and not more)


def _named(title: str, held: Sequence[Held], wrong: Callable[[Fits, bool], bool]) -> Iterator[str]:
    runs = [
        f"{row['model']} ({row['method']}, {row['source_group']}, {row['measured_kind']})" for row, fits, more in held if wrong(fits, more)
    ]
    yield f"{title}: {'; '.join(dict.fromkeys(runs)) or 'none'}."
