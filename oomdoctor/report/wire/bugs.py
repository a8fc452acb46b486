"""Convert known bugs of releases to `oomdoctor/bugs/v1`, and those that other reports name: additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.api.bugs import KnownBugs
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/bugs/v1"]


class BugV1(Struct, frozen=True, kw_only=True):
    """A memory bug or changed default of a release."""

    id: str
    program: str
    version: str | None
    """The release at hand; null where nobody knows it."""
    affected: str
    """The releases that have it, in words."""
    state: Literal["open", "fixed", "intended"]
    """`open`: no release is known to mend it; `intended`: a changed default."""
    fixed_in: str | None
    """The first release without it."""
    memory: Literal["card", "host"]
    symptom: str
    workaround: str | None
    source: str
    """The thread or commit in which it was read."""
    evidence: Literal["release", "commit", "maintainer", "reporter", "documented"]
    """How it is known; `reporter`: users alone."""


class BugsV1(Struct, frozen=True, kw_only=True):
    """The known bugs that were asked for."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    named: tuple[str, ...]
    """What was asked for; empty where all were."""
    bugs: tuple[BugV1, ...]


def convert_bugs(listing: KnownBugs, wording: Wording, version: str) -> BugsV1:
    """Convert the bugs that were asked for."""
    return BugsV1(
        schema="oomdoctor/bugs/v1", oomdoctor=version, named=listing.named, bugs=tuple(convert_bug(bug, wording) for bug in listing.bugs)
    )


def convert_bug(bug: KnownBug, wording: Wording) -> BugV1:
    """Convert one bug."""
    return BugV1(
        id=bug.id,
        program=bug.program,
        version=bug.version,
        affected=wording.say(bug.affected),
        state=bug.state,
        fixed_in=bug.fixed_in,
        memory=bug.memory,
        symptom=wording.say(bug.symptom),
        workaround=None if bug.workaround is None else wording.say(bug.workaround),
        source=bug.source,
        evidence=bug.evidence,
    )
