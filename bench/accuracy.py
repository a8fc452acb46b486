#!/usr/bin/env python3
"""Compare estimates with published measurements.

    python bench/accuracy.py                # fixtures/measured/published.csv, into docs/accuracy.md
    python bench/accuracy.py TABLE.csv      # another table, printed; with it the constants are chosen again without each of its sources

A table has one measurement a row; bench/measurements.py says which columns.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import asked
import left_out
import verdicts
from measurements import GIB, Case, Row, error, measured, read

from oomdoctor.case.estimate import Estimate
from oomdoctor.memory.estimate import estimate

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "fixtures" / "measured" / "published.csv"
REPORT = ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- bench/accuracy.py writes from here -->", "<!-- to here -->"
WORST = 24


def main(table: str | None) -> None:
    """Write the section of the repository's table into the document, or print that of another table."""
    if table is not None:
        print("\n".join(section(read(table), constants=True)))
        return
    known = REPORT.read_text(encoding="utf-8")
    before, after = known.split(BEGIN)[0], known.split(END)[1]
    REPORT.write_text(before + BEGIN + "\n" + "\n".join(section(read(str(PUBLISHED)))) + "\n" + END + after, encoding="utf-8")


def section(cases: Sequence[Case], *, constants: bool = False) -> Iterator[str]:
    """Yield what a table says of the estimates; with `constants` how those fare that were chosen with measurements in sight."""
    yield f"### {len(cases)} measurements of {len({row['source_group'] for row, *_ in cases})} sources, by group\n"
    yield from _table(cases, _group, "group")
    yield "\n### By source\n"
    yield from _table(cases, lambda row: f"{row['source_group']}, {row['task']}", "source")
    yield f"\n### The {WORST} worst rows\n"
    yield "| source | model | method | GPUs | batch | length | estimated GiB | measured GiB |\n|---|---|---|---|---|---|---|---|"
    yield from _worst(cases)
    yield "\n### By input method\n"
    yield from _doors(cases)
    yield "\n### Whether a run fits\n"
    yield from verdicts.section(cases)
    if constants:
        yield "\n### Leave one source out: the expected figure\n"
        yield from left_out.expected(cases)
        yield "\n### Leave one source out: the range\n"
        yield from left_out.margins(cases)


def _worst(cases: Sequence[Case]) -> Iterator[str]:
    estimates = ((row, estimate(setup, why).expected / GIB) for row, setup, why in cases)
    for row, size in sorted(estimates, key=lambda pair: -error(*pair))[:WORST]:
        known = [row[name] for name in ("source_group", "model", "method", "gpus", "micro_batch", "seq_len")]
        yield f"| {' | '.join(known)} | {size:.1f} | {measured(row):g} |"


def _group(row: Row) -> str:
    return "inference" if row["task"] == "infer" else "training, one GPU" if row["gpus"] == "1" else "training, several GPUs"


def _table(cases: Sequence[Case], key: Callable[[Row], str], title: str) -> Iterator[str]:
    yield f"| {title} | rows | median error | 90 % below | covered | under | width |\n|---|---|---|---|---|---|---|"
    named = sorted(((key(case[0]), case) for case in cases), key=itemgetter(0))
    for name, group in groupby(named, key=itemgetter(0)):
        yield _line(name, [case for _, case in group])
    yield _line("all", cases)


def _doors(cases: Sequence[Case]) -> Iterator[str]:
    """Yield how the same training rows fare by options and configs, with the least that people say and with all that can be said there.

    Lines of JSON say all that the table says.
    """
    yield "| input | GPUs | rows | median error | 90 % below | covered | under | width |\n|---|---|---|---|---|---|---|---|"
    ways = (
        ("options, minimal", asked.by_options),
        ("options, complete", partial(asked.by_options, all_of_it=True)),
        ("a config, minimal", asked.by_config),
        ("a config, complete", partial(asked.by_config, all_of_it=True)),
    )
    for title, ask in ways:
        found = [(row, answer, setup, why) for row, setup, why in cases if (answer := ask(row)) is not None]
        for cards, of in (
            ("one", [each for each in found if each[0]["gpus"] == "1"]),
            ("several", [each for each in found if each[0]["gpus"] != "1"]),
        ):
            if of:
                yield f"| {title} | {cards} |" + _shares([(answer, measured(row)) for row, answer, *_ in of])
                said = [(_gib(estimate(setup, why)), measured(row)) for row, _, setup, why in of]
                yield f"| the same rows as JSON | {cards} |" + _shares(said)


def _gib(made: Estimate) -> asked.Range:
    return made.expected / GIB, made.low / GIB, made.high / GIB


def _shares(pairs: Sequence[tuple[asked.Range, float]]) -> str:
    errors = sorted(abs(expected - size) / size for (expected, *_), size in pairs)
    covered = sum(low <= size <= high for (_, low, high), size in pairs) / len(pairs)
    under = sum(high < size for (*_, high), size in pairs) / len(pairs)
    width = statistics.median((high - low) / expected for (expected, low, high), _ in pairs)
    shares = [statistics.median(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))], covered, under, width]
    return f" {len(pairs)} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def _line(name: str, cases: Sequence[Case]) -> str:
    pairs = [(estimate(setup, why), measured(row) * GIB) for row, setup, why in cases]
    errors = sorted(abs(made.expected - size) / size for made, size in pairs)
    covered = sum(made.low <= size <= made.high for made, size in pairs) / len(pairs)
    under = sum(made.high < size for made, size in pairs) / len(pairs)
    width = statistics.median((made.high - made.low) / made.expected for made, _ in pairs)
    shares = [statistics.median(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))], covered, under, width]
    return f"| {name} | {len(pairs)} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
