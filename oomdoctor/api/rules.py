"""Test rule files: whether everything they name exists, whether they are fast and not too broad, and whether their examples pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from oomdoctor.api.examples import (
    check_bug,
    check_change,
    check_check,
    check_computation,
    check_evidence,
    check_holding,
    check_layout,
    check_problem,
    check_request,
    check_signature,
)
from oomdoctor.knowledge.compiled.compile import packed
from oomdoctor.knowledge.lint import RuleIssue, issue_at, lint_rules
from oomdoctor.knowledge.load import add_file, load_records
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.pattern import expand
from oomdoctor.knowledge.references import Wrong
from oomdoctor.knowledge.rule_set import RuleSet
from oomdoctor.knowledge.table_lint import table_files
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.parse.recogniser import Recogniser
from oomdoctor.snapshots.sites import Holdings
from oomdoctor.triage.placing import Layouts


class RulesTrial(Struct, frozen=True):
    """The result of a test of rules."""

    tested: Mapping[str, int]
    """Kind of rule (`signatures`, `tables`) -> how many were tested."""
    issues: tuple[RuleIssue, ...]


def try_rules(root: Path, paths: Sequence[Path] = ()) -> RulesTrial:
    """Test the rules in a folder, or those below `paths`; files elsewhere are tested as if they were in the folder.

    Raises RuleError for a file that cannot be read as rules at all.
    """
    rules = load_records(root)
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*.yaml")):
            if root not in file.parents and file.suffix == ".yaml":
                rules = add_file(rules, file)

    def chosen(path: str) -> bool:
        here = Path(path).resolve()
        return not paths or any(folder == here or folder in here.parents for folder in paths)

    issues = [issue for issue in lint_rules(rules, _healthy(root), expand, chosen) if chosen(issue.path)]
    if not issues:
        issues = list(map(issue_at, _examples(rules, chosen)))
    return RulesTrial({kind: count for kind, files in _files(rules).items() if (count := sum(map(chosen, files)))}, tuple(issues))


def _files(rules: RuleSet) -> dict[str, list[str]]:
    """Return the file of each rule, by kind."""
    kinds = ("problems", "fixes", "frameworks", "servers", "checks", "changes", "forms", "sheets", "templates", "requests")
    lists = {
        "sources": rules.sources,
        "causes": rules.causes,
        "computations": rules.computations,
        "holdings": rules.holdings,
        "evidence": rules.evidence,
        "phases": rules.phases,
        "layouts": rules.layouts,
        "conditions": rules.conditions,
        "operations": rules.operations,
    }
    return {
        "signatures": [loaded.path for loaded in rules.signatures],
        "bugs": [path for path, file in rules.bugs for _ in file.bugs],
        **{kind: [path for path, _ in getattr(rules, kind)] for kind in kinds},
        **{kind: [str(Path(rules.root) / f"{kind}.yaml")] * len(records) for kind, records in lists.items()},
        "tables": [str(path) for path in table_files(Path(rules.root))],
    }


def _examples(rules: RuleSet, chosen: Callable[[str], bool]) -> Iterator[Wrong]:
    pack = Pack(packed(rules, rules.root))
    recogniser = Recogniser(pack)
    for loaded in rules.signatures:
        if chosen(loaded.path):
            yield from check_signature(loaded, recogniser)
    for path, problem in rules.problems:
        if chosen(path):
            yield from check_problem(path, problem, pack)
    evidence, computations = (str(Path(rules.root) / f"{name}.yaml") for name in ("evidence", "computations"))
    held, holdings = str(Path(rules.root) / "holdings.yaml"), Holdings(rules.holdings, pack.computations)
    finder = ComputationFinder(pack.computations)
    for record in rules.evidence if chosen(evidence) else ():
        yield from check_evidence(evidence, record, pack)
    for computation in rules.computations if chosen(computations) else ():
        yield from check_computation(computations, computation, finder)
    for holding in rules.holdings if chosen(held) else ():
        yield from check_holding(held, holding, holdings)
    lying, layouts = str(Path(rules.root) / "layouts.yaml"), Layouts(rules.layouts)
    for layout in rules.layouts if chosen(lying) else ():
        yield from check_layout(lying, layout, layouts)
    for path, check in rules.checks:
        if chosen(path):
            yield from check_check(path, check, pack)
    for path, change in rules.changes:
        if chosen(path):
            yield from check_change(path, change)
    for path, request in rules.requests:
        if chosen(path):
            yield from check_request(path, request, pack)
    for path, of_program in rules.bugs:
        for bug in of_program.bugs if chosen(path) else ():
            yield from check_bug(path, bug, pack, of_program.build)


def _healthy(root: Path) -> list[str]:
    """Return lines that programs print when all is well; they are stored next to the rules."""
    path = root / "healthy.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
