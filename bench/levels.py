"""Whether the levels of weights hold on a collection of reports that had no part in choosing them: each is left out in turn.

    levels.py NAME=FOLDER[:FIRST-LAST] ... [--aliases FILE]

A collection is a folder in the form that causes.py reads, or those of its reports whose numbers lie between two. For each collection the
numbers behind the named levels (oomdoctor/knowledge/records/odds.py) are chosen by all the others, and both sets, those in use and
those that were chosen, are scored on the one that was left out. The situations of tests/situations take part in each choice.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from causes import Case, Key, _aliases, _best, _reports, _row, _situations, _weights_in_use

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.odds import EVIDENCE_LOG_ODDS, PROBLEM_LOG_ODDS

_STEPS = (0.6, 0.3, 0.15)
"""How far a level is moved to see whether the others would have it there, coarse first."""
_PULL = 0.5
"""What a level has to gain, in logarithms of odds squared, to leave its place: few reports tell little of a level."""

_TITLES = "| left out, levels | reports | first | in three | knowable, first | in three | hidden, claimed | certain right | likely right |"

Levels = Mapping[tuple[str, str], float]
"""(`problem` or `evidence`, name of the level) -> its number."""


def main() -> None:
    """Print a row for each collection and set of levels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="+")
    parser.add_argument("--aliases", type=Path)
    options = parser.parse_args()
    pack, aliases = load_pack(), _aliases(options.aliases)
    reports = {name: list(_reports([folder], aliases, pack, numbers)) for name, folder, numbers in map(_collection, options.collection)}
    situations, used = list(_situations(pack)), _weights_in_use(pack)
    in_use: Levels = {
        **{("problem", name): value for name, value in PROBLEM_LOG_ODDS.items()},
        **{("evidence", name): value for name, value in EVIDENCE_LOG_ODDS.items()},
    }
    places = {key: place for key, value in used.items() if (place := _place(key, value)) is not None}
    print(_TITLES)
    print("|---" * (_TITLES.count("|") - 1) + "|")
    for left_out, cases in reports.items():
        others = [case for name, listed in reports.items() if name != left_out for case in listed] + situations
        chosen = _chosen(others, used, places, in_use)
        print(_row(f"{left_out}, in use", cases, [used] * len(cases)))
        print(_row(f"{left_out}, chosen by the others", cases, [_with(used, places, chosen)] * len(cases)))
        moved = ", ".join(f"{name} {chosen[kind, name]:+.2f}" for kind, name in in_use if chosen[kind, name] != in_use[kind, name])
        print(f"  {left_out}: {moved or 'all as in use'}")


def _collection(written: str) -> tuple[str, Path, range]:
    name, _, place = written.partition("=")
    folder, _, numbers = place.partition(":")
    first, _, last = numbers.partition("-")
    return name, Path(folder), range(int(first), int(last) + 1) if numbers else range(1 << 20)


def _place(key: Key, value: float) -> tuple[str, str] | None:
    """Return which level a weight has."""
    table, kind = (EVIDENCE_LOG_ODDS, "evidence") if key[1] else (PROBLEM_LOG_ODDS, "problem")
    return next(((kind, name) for name, number in table.items() if number == value), None)


def _with(used: Mapping[Key, float], places: Mapping[Key, tuple[str, str]], levels: Levels) -> dict[Key, float]:
    return {key: levels[places[key]] if key in places else value for key, value in used.items()}


def _chosen(cases: Sequence[Case], used: Mapping[Key, float], places: Mapping[Key, tuple[str, str]], start: Levels) -> Levels:
    """Return the levels under which the causes of some reports are most probable, each moved for itself while that helps."""
    levels = dict(start)
    best = _score(cases, used, places, levels, start)
    for step in _STEPS:
        for moved in _moves(levels, step):
            score = _score(cases, used, places, moved, start)
            if score > best:
                best, levels = score, moved
    return levels


def _moves(levels: Levels, step: float) -> Iterator[dict[tuple[str, str], float]]:
    for name, value in levels.items():
        for by in (-step, step):
            yield {**levels, name: value + by}


def _score(cases: Sequence[Case], used: Mapping[Key, float], places: Mapping[Key, tuple[str, str]], levels: Levels, start: Levels) -> float:
    """Return the logarithm of the probability of all causes, less what moving the levels costs."""
    weights = _with(used, places, levels)
    score = -_PULL * sum((levels[name] - start[name]) ** 2 for name in start)
    for case in cases:
        best = {cause: odds for cause, (odds, _) in _best(case, weights).items()}
        score += best.get(case.cause, 0.0) - math.log(1 + sum(map(math.exp, best.values())))
    return score


if __name__ == "__main__":
    main()
