"""The known bugs of releases that a case shows: symptom and version must both match.

Symptom: a line printed by the program or written by a reporter, frames of the failure, or facts of the case; if a reporter says that
another release fits, a bug introduced by a release requires only that the kind of memory match. Version: what banners, package lists and
reports state and, for a program known to be running, a release that a reporter names without it (`OOM in 0.8.3`). A symptom of facts
alone counts only if the program itself is known to be running; a package list says what is installed, not what failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct

from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.case.event import Certainty, Event
from oomdoctor.case.incident import Incident
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.records.bug import BugSign, ProgramBug, bug_signature, name_signature
from oomdoctor.knowledge.version_spans import is_affected, spans_text

_MOST = 2
"""More bugs than this at once would be guesses."""
_REPORTED = {"reported-growth", "reported-shortage"}
"""Someone says that memory grows or is short: that concerns memory too, whatever the log ends with."""
_KINDS = {"card": {"device-oom", "masked-device-oom"}, "host": {"host-oom"}}
"""What fails when the memory affected by a bug runs out."""
_CHANGE = "reported-change"
_BARE_RELEASE = "reported_release"
"""The field for a release that a reporter gives without naming its program."""
_RUNS = "runs"
"""The event field that says which framework is running."""


class SeenCase(Struct, frozen=True):
    """What bugs are matched against."""

    known: KnownFacts
    events: Sequence[Event]
    """All events of the case, not only samples."""
    failure: Incident | None
    packages: Mapping[str, str]
    """Package -> version, if the machine of the run is known."""

    @property
    def memory_failed(self) -> bool:
        """Whether memory failed or may have failed."""
        return self.known.facts.get("verdict.memory_failure") != "no"


def known_bugs(bugs: Iterable[ProgramBug], seen: SeenCase) -> tuple[KnownBug, ...]:
    """Return the bugs that a case shows, those with a known version first; for each program, only the best match."""
    matched = sorted(_matches(bugs, seen), key=lambda match: match[0])
    best: dict[str, KnownBug] = {}
    for _, bug in matched:
        best.setdefault(bug.program, bug)
    return tuple(best.values())[:_MOST]


def describe(bug: ProgramBug, version: str | None) -> KnownBug:
    """Return a bug as shown in reports; `version` is the release in use, None if unknown."""
    record = bug.bug
    return KnownBug(
        id=record.id,
        program=bug.title,
        version=None if version is None else bug.build + version.removeprefix(bug.build).partition("+")[0],
        affected=spans_text(record.versions, bug.build),
        state=record.state,
        fixed_in=None if record.fixed_in is None else bug.build + record.fixed_in,
        memory=record.memory,
        symptom=record.symptom,
        workaround=record.workaround,
        source=record.source,
        evidence=record.evidence,
    )


def _matches(bugs: Iterable[ProgramBug], seen: SeenCase) -> Iterator[tuple[_Rank, KnownBug]]:
    """Yield each matching bug, with its rank."""
    signatures = {event.signature for event in seen.events}
    for bug in bugs:
        shown = [sign for number, sign in enumerate(bug.bug.shown) if _is_shown(bug, sign, number, signatures, seen)]
        if not shown and not _introduced_by_release(bug, signatures, seen):
            continue
        versions = _versions(bug, seen)
        affected = [version for version in versions if is_affected(version, bug.bug.versions, bug.build)]
        if not affected and (versions or not any(sign.unmistakable for sign in shown)):
            continue
        rank = _Rank(not affected, -max(map(_ways, shown), default=0), min(map(_width, bug.bug.versions)))
        yield rank, describe(bug, affected[-1] if affected else None)


class _Rank(NamedTuple):
    """The order of matching bugs: known versions first, then those shown in more ways, then the narrower version range."""

    is_conditional: bool
    ways: int
    width: int


def _ways(sign: BugSign) -> int:
    return sum((sign.message is not None, bool(sign.frames), sign.when is not None, sign.unmistakable))


def _width(span: str) -> int:
    """Return 0 for one release or series, 1 for a range with two ends, 2 for one with a single end."""
    return 0 if span.startswith("==") else 1 if "," in span else 2


def _is_shown(bug: ProgramBug, sign: BugSign, number: int, signatures: Set[str], seen: SeenCase) -> bool:
    if not (sign.unmistakable or seen.memory_failed or signatures & _REPORTED):
        return False
    if sign.message is not None and bug_signature(bug.id, number) not in signatures:
        return False
    if sign.frames and not all(piece in _traceback(seen.failure) for piece in sign.frames):
        return False
    if sign.when is not None and evaluate(sign.when, seen.known).truth is not True:
        return False
    return sign.message is not None or bool(sign.frames) or _runs(bug, seen)


def _introduced_by_release(bug: ProgramBug, signatures: Set[str], seen: SeenCase) -> bool:
    """Return whether someone says that another release fits, and the bug affects the memory that is short and came with a release."""
    if _CHANGE not in signatures or not bug.bug.came_with_release or not _was_changed(bug, seen):
        return False
    kinds = _KINDS[bug.bug.memory]
    return seen.known.facts.get("incident.kind") in kinds if seen.failure is not None else bool(signatures & _REPORTED)


def _was_changed(bug: ProgramBug, seen: SeenCase) -> bool:
    """Return whether the program is the one that ran, or is on a line that compares releases, rather than next to another program."""
    changes = {(event.place.source, event.place.offset) for event in seen.events if event.signature == _CHANGE}
    return _is_framework(bug, seen) or any(
        (event.place.source, event.place.offset) in changes
        for event in seen.events
        if event.signature == name_signature(bug.program) or any(name in event.fields for name in bug.facts)
    )


def _runs(bug: ProgramBug, seen: SeenCase) -> bool:
    """Return whether the program is what ran: named as such, in the frames of the failure, or by a version that is not a row of a list."""
    traceback = _traceback(seen.failure)
    return (
        _is_framework(bug, seen)
        or any(f"/{folder}/" in traceback for folder in bug.folders)
        or any(name in event.fields and "==" not in event.text for event in seen.events for name in bug.facts)
    )


def _is_framework(bug: ProgramBug, seen: SeenCase) -> bool:
    frameworks = {seen.known.facts.get("log.framework"), *(event.fields.get(_RUNS) for event in seen.events)}
    return any(name in frameworks for name in bug.runs)


def _is_subject(bug: ProgramBug, seen: SeenCase) -> bool:
    """Return whether the program is running, or someone names it outside a package list."""
    return _runs(bug, seen) or any(event.signature == name_signature(bug.program) for event in seen.events)


def _versions(bug: ProgramBug, seen: SeenCase) -> list[str]:
    """Return the versions of a program that a case states, without duplicates, in order."""
    stated = [event.fields[name] for event in seen.events for name in bug.facts if name in event.fields]
    listed = [seen.packages[name] for name in bug.packages if name in seen.packages]
    if not stated and not listed and _is_subject(bug, seen):
        stated = [event.fields[_BARE_RELEASE] for event in seen.events if _BARE_RELEASE in event.fields]
    return list(dict.fromkeys(map(str, stated or listed)))


def _traceback(failure: Incident | None) -> str:
    """Return the frames of a failure with `/` in paths."""
    return "" if failure is None else f"{failure.traceback}\n{failure.root.frame or ''}".replace("\\", "/")


def certainty_of(bug: KnownBug) -> Certainty:
    """Return how certain it is that a bug caused the failure: what only users report is possible."""
    return Certainty.POSSIBLE if bug.version is None or bug.evidence == "reporter" else Certainty.LIKELY


def bugs_of_packages(bugs: Iterable[ProgramBug], packages: Mapping[str, str]) -> tuple[KnownBug, ...]:
    """Return the bugs of installed releases, by their names in package lists, in the order of the rules."""
    return tuple(
        describe(bug, version)
        for bug in bugs
        for version in [next((packages[name] for name in (*bug.packages, bug.program) if name in packages), None)]
        if version is not None and is_affected(version, bug.bug.versions, bug.build)
    )


def stated_versions(bugs: Iterable[ProgramBug], events: Sequence[Event]) -> dict[str, str]:
    """Return program -> the last version of it that a log states."""
    facts = {bug.program: bug.facts for bug in bugs}
    stated = {
        program: [str(event.fields[name]) for event in events for name in names if name in event.fields] for program, names in facts.items()
    }
    return {program: versions[-1] for program, versions in stated.items() if versions}
