"""Compare two sides and return a Comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.comparison import Comparison, OneSided, RunChange, Side
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.text import Text
from oomdoctor.comparing.changes import WeighedChange, changes, differences, most_suspicious_first, one_sided
from oomdoctor.comparing.estimated import estimated
from oomdoctor.comparing.facts import Facts, side_facts
from oomdoctor.comparing.series import same_moments
from oomdoctor.findings.bugs import stated_versions
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.bug import BUGS, ProgramBug
from oomdoctor.knowledge.records.change import CHANGES
from oomdoctor.knowledge.version_spans import is_affected
from oomdoctor.machine.facts import environment_facts as machine_facts
from oomdoctor.machine.findings import environment_findings

_ALL = ("card", "host", "shm")
_FIRST, _LATER = 5, 30
_BUG = 60
"""The rank of a known bug: whether it matters depends on the run."""
"""Ranks of newly introduced problems: errors come before any setting, warnings among them."""


def compare(before: Side, after: Side, pack: Pack) -> Comparison:
    """Compare two sides."""
    earlier, later = side_facts(before), side_facts(after)
    rules = list(pack.records(CHANGES))
    weighed_changes = changes(rules, earlier, later)
    bugs = list(_bugs(before, after, earlier, later, pack))
    wrong, undecided = _wrong_now(before, after, pack)
    failed = later.get("failed", earlier.get("failed"))
    ordered = most_suspicious_first([*weighed_changes, *wrong, *bugs], None if failed is None else str(failed))
    events = [side.diagnosis.case.events if side.diagnosis is not None else () for side in (before, after)]
    first, second = estimated(before), estimated(after)
    return Comparison(
        before=before,
        after=after,
        changes=tuple(weighed.change for weighed in ordered),
        series=same_moments(*events),
        estimates=None if first is None or second is None else (first, second),
        differences=differences(earlier, later, {weighed.fact for weighed in (*weighed_changes, *bugs)}),
        one_sided=(*undecided, *one_sided(rules, earlier, later)),
        compared=sum("." in name for name in earlier.keys() & later.keys()),
    )


def _bugs(before: Side, after: Side, earlier: Facts, later: Facts, pack: Pack) -> Iterator[WeighedChange]:
    """Yield known bugs that affect only one side's release, if both sides state their release."""
    bugs = list(pack.records(BUGS))
    was, now = _versions(before, earlier, bugs), _versions(after, later, bugs)
    for bug in bugs:
        first, second = (versions.get(bug.program) for versions in (was, now))
        if first is None or second is None or first == second:
            continue
        had, has = (is_affected(version, bug.bug.versions, bug.build) for version in (first, second))
        if had is not has:
            yield WeighedChange(_bug_change(bug, first, second, is_new=has), f"version.{bug.program}", (bug.bug.memory,), _BUG)


def _versions(side: Side, facts: Facts, bugs: Sequence[ProgramBug]) -> dict[str, str]:
    """Return the releases that a side states, by program."""
    events = () if side.diagnosis is None else side.diagnosis.case.events
    named = {
        bug.program: str(facts[fact])
        for bug in bugs
        for fact in (f"version.{name}" for name in (*bug.packages, bug.program.replace("-", "_")))
        if fact in facts
    }
    return {**stated_versions(bugs, events), **named}


def _bug_change(bug: ProgramBug, first: str, second: str, *, is_new: bool) -> RunChange:
    about = Text(f"A known bug in {bug.title} {second}", f"{bug.title} {second} 带有的已知缺陷")
    gone = Text(f"A known bug in {bug.title} {first}", f"{bug.title} {first} 带有的已知缺陷")
    return RunChange(
        id=bug.id,
        about=about if is_new else gone,
        effect="tighter" if is_new else "looser",
        why=bug.bug.symptom,
        before=first,
        after=second,
        source=bug.bug.source,
    )


def _wrong_now(before: Side, after: Side, pack: Pack) -> tuple[list[WeighedChange], list[OneSided]]:
    """Return the later machine's problems that the earlier one did not have, and those not known for the earlier one."""
    if before.environment is None or after.environment is None:
        return [], []
    known = KnownFacts(machine_facts(before.environment), (), always_open=True)
    conditions = {core.id: core.when for core in pack.problems}
    wrong, undecided = [], []
    for finding in _grave(environment_findings(after.environment, pack), conditions):
        was = evaluate(conditions[finding.id], known).truth
        if was is False:
            wrong.append(_weighed(finding))
        elif was is None:
            undecided.append(OneSided(finding.title, wrong_now=True))
    return wrong, undecided


def _grave(findings: tuple[Finding, ...], conditions: Mapping[str, object]) -> Iterator[Finding]:
    return (finding for finding in findings if finding.severity != "note" and finding.id in conditions)


def _weighed(finding: Finding) -> WeighedChange:
    change = RunChange(
        id=finding.id,
        about=finding.title,
        effect="tighter",
        why=finding.why,
        source="; ".join(cite.title for cite in finding.cites),
    )
    return WeighedChange(change, finding.id, _ALL, _FIRST if finding.severity == "error" else _LATER)
