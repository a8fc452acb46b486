"""Options: ways to change one subject of a training run or a server, each with its cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Generic, TypeVar

from msgspec import Struct

from oomdoctor.case.plan import RISKS, Measure
from oomdoctor.case.settings import Scalar
from oomdoctor.knowledge.tables.cards import parse_capability
from oomdoctor.knowledge.tables.csv_table import table

Candidate = TypeVar("Candidate")
"""What options change: the `Setup` of a run, or a `Deployment`."""


class MeasureCost(Struct, frozen=True):
    """A row of rules/tables/measures.csv."""

    fix: str
    risk: int
    """An index into `RISKS`."""
    effort: int
    capability: tuple[int, ...]
    """The minimum compute capability of GPUs that support it."""


CostedMeasure = tuple[Measure, MeasureCost]


class Option(Struct, Generic[Candidate], frozen=True, kw_only=True):
    """One way to change one subject: measures that belong together, and how they change a candidate."""

    measures: tuple[Measure, ...]
    costs: tuple[MeasureCost, ...]
    """Of each measure."""
    apply: Callable[[Candidate], Candidate | None]
    """Return the changed candidate; None if the change makes no sense."""
    marks: frozenset[Hashable]
    """What identifies it: a set of options whose marks include those of a fitting set changes more for nothing."""
    together: int = 1
    """How many GPUs then work on the same samples, instead of each having its own; accumulation compensates for it."""


def measure(name: str, **sets: Scalar) -> CostedMeasure:
    """Return a measure of rules/tables/measures.csv with the settings that it changes, and its cost."""
    cost = measure_cost(name)
    return Measure(fix=cost.fix, sets=tuple(sets.items())), cost


def option(
    *measures: CostedMeasure,
    apply: Callable[[Candidate], Candidate | None],
    subject: str | None = None,
    together: int = 1,
) -> Option[Candidate]:
    """Return an option with these measures; with a `subject`, one value of it that helps makes its other values superfluous."""
    changes = tuple(change for change, _ in measures)
    marks: frozenset[Hashable] = frozenset(changes if subject is None else (subject,))
    return Option(measures=changes, costs=tuple(cost for _, cost in measures), apply=apply, marks=marks, together=together)


def available(
    subjects: Iterable[Iterable[Option[Candidate]]], capability: tuple[int, ...], can: Callable[[str], bool]
) -> tuple[tuple[Option[Candidate], ...], ...]:
    """Return the options that GPUs of this compute capability support and the framework has; `can` says whether it has a fix.

    An unknown capability () excludes nothing.
    """

    def is_available(option: Option[Candidate]) -> bool:
        on_card = not capability or all(cost.capability <= capability for cost in option.costs)
        return on_card and all(can(measure.fix) for measure in option.measures)

    kept = (tuple(option for option in options if is_available(option)) for options in subjects)
    return tuple(options for options in kept if options)


def applied(candidate: Candidate, options: Sequence[Option[Candidate]]) -> Candidate | None:
    """Return the candidate with all options applied; None if one of them makes no sense.

    Options that group GPUs multiply the accumulation left by a smaller batch, so they come last.
    """
    changed: Candidate | None = candidate
    for option in sorted(options, key=lambda option: option.together):
        if changed is not None:
            changed = option.apply(changed)
    return changed


@cache
def measure_cost(name: str) -> MeasureCost:
    """Return the row of a measure."""
    row = next(row for row in table("measures") if row["measure"] == name)
    names: tuple[str, ...] = RISKS
    return MeasureCost(row["fix"], names.index(row["risk"]), int(row["effort"]), parse_capability(row["capability"]))


@cache
def is_general(fix: str) -> bool:
    """Return whether any training script can do a fix with its own settings or a layer below; others need a framework that has it."""
    return all(row["general"] == "yes" for row in table("measures") if row["fix"] == fix)
