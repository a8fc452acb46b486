"""How well the weights of explanations hold on reports that had no part in choosing them: k-fold, by thread.

    causes.py CORPUS [CORPUS ...] [--aliases FILE] [--folds 10]

A corpus is a folder of NAME.log with NAME.json: `root_cause`, `confirmed`, `memory_failure`, `source` (the thread), and in
`context` `knowable_from_log`; what is only `inferred` (`label_basis`) is left out. `--aliases` maps
other names of causes to ours, as {"causes": {ours: [others]}}.
The situations of tests/situations take part in the fits, and are not scored.

Two sets of weights are scored. `in use`: the levels that rules/ names (oomdoctor/knowledge/records/odds.py). `left out`: for each fold the
weights start from the levels and are fitted to all other folds, by gradient steps towards the observed causes with a pull back to the
levels, so that no report has a part in the fit that judges it. Where that is no better, finer numbers are not worth having.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from oomdoctor.api import pipeline
from oomdoctor.case.event import Certainty
from oomdoctor.findings import engine
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.findings.explanations import Explanation, weigh
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack, load_pack

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

_STEPS, _RATE, _PULL = 60, 0.3, 3.0

Key = tuple[str, str]
"""(problem, "") for the weight of a problem, (evidence, cause or problem) for one of evidence."""


class Case(Struct, frozen=True):
    """A report: what explains it by the rules, what evidence holds, and what its cause is."""

    thread: str
    cause: str
    knowable: bool | None
    scored: bool
    explanations: tuple[Explanation, ...]
    seen: tuple[str, ...]


def main() -> None:
    """Print how the weights in use and those of left-out fits name the confirmed causes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--aliases", type=Path)
    parser.add_argument("--folds", type=int, default=10)
    options = parser.parse_args()
    pack = load_pack()
    aliases = _aliases(options.aliases)
    cases = [*_reports(options.corpus, aliases, pack), *_situations(pack)]
    used = _weights_in_use(pack)
    folds = {case.thread: int(hashlib.sha256(case.thread.encode()).hexdigest(), 16) % options.folds for case in cases}
    fitted = {fold: _fit([case for case in cases if folds[case.thread] != fold], used) for fold in range(options.folds)}
    scored = [case for case in cases if case.scored]
    print(
        "| weights | reports | first | in three | knowable, first | knowable, in three | hidden, claimed | certain right | likely right |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    print(_row("in use", scored, [used] * len(scored)))
    print(_row("left out", scored, [fitted[folds[case.thread]] for case in scored]))


def _aliases(path: Path | None) -> dict[str, str]:
    table = json.loads(path.read_text(encoding="utf-8"))["causes"] if path else {}
    return {alias: name for name, listed in table.items() for alias in (name, *listed)}


def _reports(folders: Sequence[Path], aliases: Mapping[str, str], pack: Pack, numbers: range = range(1 << 20)) -> Iterator[Case]:
    """Yield the reports of some folders whose cause is confirmed; `numbers`: with which their names may begin, if with any."""
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            number = path.stem.partition("-")[0]
            if number.isdigit() and int(number) not in numbers:
                continue
            label = json.loads(path.read_text(encoding="utf-8"))
            log = path.with_suffix(".log")
            cause = label.get("root_cause")
            if not log.exists() or not cause or not label.get("confirmed") or label.get("label_basis") == "inferred":
                continue
            if not label.get("memory_failure"):
                continue
            known = _known([str(log)], pack)
            if known is not None:
                knowable = label.get("context", {}).get("knowable_from_log")
                yield _case(str(label.get("source", path.stem)), _ours(cause, aliases, pack), knowable, known, pack, scored=True)


def _ours(cause: str, aliases: Mapping[str, str], pack: Pack) -> str:
    """Return the name that the rules have for a cause, whatever name the label has for it."""
    name = aliases.get(cause, cause)
    ours = {core.cause for core in pack.problems if core.cause is not None}
    return name if name in ours else next((own for own in sorted(ours) if aliases.get(own, own) == name), name)


def _situations(pack: Pack) -> Iterator[Case]:
    from situation_table import rows  # noqa: PLC0415 - it stands with the tests

    for _, row in rows():
        if row.get("hidden") or row.get("config"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (row.get("files") or {"train.log": row["log"]}).items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text, encoding="utf-8")
            known = _known(list(expand_sources([folder])), pack)
        if known is None:
            continue
        right = {core.cause or core.id for core in pack.problems if core.weight is not None and {core.id, core.cause} & set(row["first"])}
        for cause in sorted(right)[:1]:
            yield _case(row["says"], cause, None, known, pack, scored=False)


def _known(names: Sequence[Any], pack: Pack) -> KnownFacts | None:
    """Return what the rules are asked about for a log; None where no rule is asked."""
    asked: list[KnownFacts] = []

    def note(pack: Pack, known: KnownFacts, seen: Any) -> Any:
        asked.append(known)
        return engine.findings(pack, known, seen)

    before = pipeline.findings
    pipeline.findings = note
    try:
        pipeline.diagnose_logs(names, pack)
    finally:
        pipeline.findings = before
    return asked[0] if asked else None


def _case(thread: str, cause: str, knowable: bool | None, known: KnownFacts, pack: Pack, *, scored: bool) -> Case:
    results = [(core, evaluate(core.when, known)) for core in pack.problems]
    silenced = {name for core, result in results if result.truth for name in core.silences}
    explanations = tuple(
        Explanation(core.id, core.cause, core.weight)
        for core, result in results
        if result.truth and core.weight is not None and core.id not in silenced
    )
    seen = tuple(core.id for core in pack.evidence if evaluate(core.when, known).truth)
    return Case(thread, cause, knowable, scored, explanations, seen)


def _weights_in_use(pack: Pack) -> dict[Key, float]:
    weights: dict[Key, float] = {(core.id, ""): core.weight for core in pack.problems if core.weight is not None}
    weights.update({(core.id, name): weight for core in pack.evidence for name, weight in core.weights.items()})
    return weights


def _fit(cases: Sequence[Case], start: Mapping[Key, float]) -> dict[Key, float]:
    """Return weights nearer to the causes of these cases, by gradient steps on the logarithm of the probability of the right one."""
    weights = dict(start)
    for _ in range(_STEPS):
        slope: dict[Key, float] = {}
        for case in cases:
            best = _best(case, weights)
            total = 1 + sum(math.exp(score) for score, _ in best.values())
            for cause, (score, problem) in best.items():
                error = (cause == case.cause) - math.exp(score) / total
                for key in _keys(case, problem, cause):
                    if key in weights:
                        slope[key] = slope.get(key, 0.0) + error
        for key, weight in weights.items():
            weights[key] = weight + _RATE * (slope.get(key, 0.0) / 4 - _PULL * (weight - start[key]))
    return weights


def _best(case: Case, weights: Mapping[Key, float]) -> dict[str, tuple[float, str]]:
    """Return cause -> score and problem of its strongest form."""
    best: dict[str, tuple[float, str]] = {}
    for explanation in case.explanations:
        cause = explanation.cause or explanation.problem
        score = sum(weights.get(key, 0.0) for key in _keys(case, explanation.problem, cause))
        if cause not in best or score > best[cause][0]:
            best[cause] = (min(score, 30.0), explanation.problem)
    return best


def _keys(case: Case, problem: str, cause: str) -> list[Key]:
    return [(problem, ""), *((seen, name) for seen in case.seen for name in {problem, cause})]


def _row(title: str, cases: Sequence[Case], weights: Sequence[Mapping[Key, float]]) -> str:
    first = three = hidden = claimed = 0
    knowable = [0, 0, 0]
    claims: dict[Certainty, list[bool]] = {certainty: [] for certainty in Certainty}
    for case, own in zip(cases, weights):
        causes = {explanation.problem: explanation.cause for explanation in case.explanations}
        reweighed = [Explanation(explanation.problem, explanation.cause, own[explanation.problem, ""]) for explanation in case.explanations]
        evidence: dict[str, dict[str, float]] = {}
        for (seen, name), weight in own.items():
            if name and seen in case.seen:
                evidence.setdefault(seen, {})[name] = weight
        said = [(causes[one.problem], Certainty.of(one.probability)) for one in weigh(reweighed, evidence)][:3]
        named = [cause for cause, _ in said]
        first += named[:1] == [case.cause]
        three += case.cause in named
        if case.knowable:
            knowable[0] += 1
            knowable[1] += named[:1] == [case.cause]
            knowable[2] += case.cause in named
        for cause, certainty in said:
            if cause is not None:
                claims[certainty].append(cause == case.cause)
        if case.knowable is False:
            hidden += 1
            claimed += any(certainty is not Certainty.POSSIBLE and cause not in (None, case.cause) for cause, certainty in said)
    cells = [title, str(len(cases)), _share(first, len(cases)), _share(three, len(cases))]
    cells += [_share(knowable[1], knowable[0]), _share(knowable[2], knowable[0]), f"{claimed} of {hidden}"]
    cells += [_share(sum(claims[certainty]), len(claims[certainty])) for certainty in (Certainty.CERTAIN, Certainty.LIKELY)]
    return "| " + " | ".join(cells) + " |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f} ({whole})" if whole else "none"


if __name__ == "__main__":
    main()
