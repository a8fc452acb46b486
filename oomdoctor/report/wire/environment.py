"""Convert an environment and the findings in it to `oomdoctor/environment/v1`; `oomdoctor env --from` and `--env` read it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.diagnosis import Cite, Finding, Fix, KnownBug
from oomdoctor.case.environment import Environment
from oomdoctor.case.event import Certainty
from oomdoctor.report.wire.bugs import BugV1, convert_bug
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/environment/v1"]


class MachineFixV1(Struct, frozen=True, kw_only=True):
    """One thing to do about a machine."""

    id: str
    title: str
    how: str
    command: str | None


class MachineCiteV1(Struct, frozen=True, kw_only=True):
    """A source and what it says."""

    source: str
    title: str
    url: str | None
    says: str


class MachineFindingV1(Struct, frozen=True, kw_only=True):
    """A rule's judgement of a machine."""

    id: str
    severity: str
    confidence: Certainty
    title: str
    why: str
    fixes: tuple[MachineFixV1, ...]
    cites: tuple[MachineCiteV1, ...]


class EnvironmentV1(Struct, frozen=True, kw_only=True):
    """A machine, and what in it makes runs fail."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    environment: Environment
    """The facts; unknown ones are left out."""
    findings: tuple[MachineFindingV1, ...]
    bugs: tuple[BugV1, ...] = ()
    """The known memory bugs of the releases that are installed."""


def convert_environment(
    environment: Environment, findings: Sequence[Finding], wording: Wording, version: str, *, redact: bool, bugs: Sequence[KnownBug] = ()
) -> EnvironmentV1:
    """Convert a machine; with `redact` without the names of the users of its processes."""
    return EnvironmentV1(
        schema="oomdoctor/environment/v1",
        oomdoctor=version,
        environment=_without_users(environment) if redact else environment,
        findings=tuple(_finding(finding, wording) for finding in findings),
        bugs=tuple(convert_bug(bug, wording) for bug in bugs),
    )


def _without_users(environment: Environment) -> Environment:
    """Whose a process is stays (`own`), by which name does not."""
    gpus = (replace(gpu, processes=tuple(replace(process, user=None) for process in gpu.processes)) for gpu in environment.gpus)
    return replace(environment, gpus=tuple(gpus))


def _finding(finding: Finding, wording: Wording) -> MachineFindingV1:
    return MachineFindingV1(
        id=finding.id,
        severity=finding.severity,
        confidence=finding.confidence,
        title=wording.say(finding.title),
        why=wording.say(finding.why),
        fixes=tuple(_fix(fix, wording) for fix in finding.fixes),
        cites=tuple(_cite(cite, wording) for cite in finding.cites),
    )


def _fix(fix: Fix, wording: Wording) -> MachineFixV1:
    return MachineFixV1(id=fix.id, title=wording.say(fix.title), how=wording.say(fix.how), command=fix.command)


def _cite(cite: Cite, wording: Wording) -> MachineCiteV1:
    return MachineCiteV1(source=cite.source, title=cite.title, url=cite.url, says=wording.say(cite.says))
