"""Competing explanations of one failure: how probable each is, given the evidence for and against it.

Each problem that holds has its own weight: the natural logarithm of the odds that its cause is the right one, against everything
that no rule names. Evidence adds to the weights of causes. Problems with the same cause are forms of one explanation, of which the
strongest counts. The probability of a cause is its odds divided by the sum of all odds, where everything that no rule names has odds of 1.
The weights are data in the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

_LEAST = 0.03
"""An explanation less probable than this is not worth a line, unless there is none better."""
_BESIDE = 0.1
"""Nor is one less probable than this share of the best."""
_MOST = 5


class Explanation(Struct, frozen=True):
    """A problem that holds, as one of several explanations."""

    problem: str
    cause: str | None
    weight: float


class WeighedExplanation(Struct, frozen=True):
    """An explanation with its probability, and the evidence that changed its weight."""

    problem: str
    probability: float
    signs: tuple[tuple[str, float], ...] = ()
    """The evidence, and what each item added."""


def weigh(explanations: Sequence[Explanation], evidence: Mapping[str, Mapping[str, float]]) -> list[WeighedExplanation]:
    """Return one explanation per cause, the most probable first. `evidence`: what was seen -> cause or problem -> weight."""
    scored = [(explanation, _signs(explanation, evidence)) for explanation in explanations]
    odds: dict[str, tuple[float, Explanation, tuple[tuple[str, float], ...]]] = {}
    for explanation, signs in scored:
        score = explanation.weight + sum(weight for _, weight in signs)
        name = explanation.cause or explanation.problem
        if name not in odds or score > odds[name][0]:
            odds[name] = (score, explanation, signs)
    total = 1 + sum(math.exp(score) for score, _, _ in odds.values())
    weighed = [WeighedExplanation(best.problem, math.exp(score) / total, signs) for score, best, signs in odds.values()]
    weighed.sort(key=lambda explanation: -explanation.probability)
    least = max(_LEAST, _BESIDE * weighed[0].probability) if weighed else _LEAST
    return [explanation for at, explanation in enumerate(weighed[:_MOST]) if at == 0 or explanation.probability >= least]


def _signs(explanation: Explanation, evidence: Mapping[str, Mapping[str, float]]) -> tuple[tuple[str, float], ...]:
    names = {explanation.cause, explanation.problem}
    return tuple(
        (seen, sum(weight for name, weight in weights.items() if name in names))
        for seen, weights in evidence.items()
        if names & weights.keys()
    )
