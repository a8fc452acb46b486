"""Whose config a person edits in this run: the framework, and the layers below it that have their own files or variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.knowledge.records.fix import SettingRecord
from oomdoctor.knowledge.records.framework import FrameworkCore

_NOTHING = ("", "none", "null", "false", "no")


def framework(known: KnownFacts, frameworks: Sequence[FrameworkCore]) -> str | None:
    """Return the running framework; a layer only if nothing above it is known."""
    root = _failed(known)
    facts = known.facts
    failed = next((record.framework for record in frameworks if root in record.messages), None)
    reported = (facts.get("training.framework"), facts.get("log.framework"), failed, facts.get("incident.inference"))
    names = [str(name) for name in reported if name]
    layers = {record.framework for record in frameworks if record.layer}
    return next((name for name in names if name not in layers), names[0] if names else None)


def _failed(known: KnownFacts) -> str:
    """Return the program whose message is the failure."""
    return known.programs.get(known.roots[0].signature, "") if known.roots else ""


def layers(facts: Mapping[str, Fact], frameworks: Sequence[FrameworkCore]) -> tuple[str, ...]:
    """Return the layers that this run has below its framework, as far as it shows them."""
    shown = [
        (record.layer.order, record.framework)
        for record in frameworks
        if record.layer and any(_says(facts.get(fact)) for fact in record.layer.facts)
    ]
    return tuple(name for _, name in sorted(shown))


def rows_for_run(
    rows: Sequence[SettingRecord], known: KnownFacts, written: Mapping[str, str | None], frameworks: Sequence[FrameworkCore]
) -> list[SettingRecord]:
    """Return the rows for this run; `written` says in whose config a setting is.

    What the framework itself sets is not shown again for a layer below it, unless it is written there. If the framework is
    unknown, only the program whose message ended the run has rows: a key that a program does not know is worse than none.
    """
    named = list(dict.fromkeys(row.framework for row in rows))
    running = framework(known, frameworks)
    always = [record.framework for record in frameworks if record.always]
    first = [_failed(known) if running is None else _with_rows(running, named, frameworks)]
    tiers = [first, *([layer] for layer in (*_below(known, frameworks, written), *always) if layer not in first)]
    tier = {name: number for number, names in enumerate(tiers) for name in names}
    near = sorted((row for row in rows if row.framework in tier and _holds(row, known)), key=lambda row: tier[row.framework])
    chosen: dict[str, int] = {}
    for row in near:
        chosen.setdefault(_about(row), tier[row.framework])
        if written.get(_about(row)) == row.framework:
            chosen[_about(row)] = tier[row.framework]
    return [row for row in near if chosen[_about(row)] == tier[row.framework]]


def _below(known: KnownFacts, frameworks: Sequence[FrameworkCore], written: Mapping[str, str | None]) -> list[str]:
    """Return the layers of a run, those with an available config first: accelerate's own file can contain everything DeepSpeed needs."""
    there = set(written.values())
    seen = layers(known.facts, frameworks)
    more = [record.framework for record in frameworks if record.layer is not None and record.framework in there]
    return sorted(dict.fromkeys((*seen, *more)), key=lambda layer: layer not in there)


def _with_rows(running: str, named: Sequence[str], frameworks: Sequence[FrameworkCore]) -> str:
    """Return the framework itself if it has rows, or otherwise the one whose settings it accepts."""
    others = next((record.falls_back_to for record in frameworks if record.framework == running), ())
    return next((name for name in (running, *others) if name in named), running)


def _holds(row: SettingRecord, known: KnownFacts) -> bool:
    return row.when is None or bool(evaluate(row.when, known).truth)


def _about(row: SettingRecord) -> str:
    return row.sets or row.key


def _says(value: Fact) -> bool:
    return value is not None and str(value).strip().lower() not in _NOTHING
