"""Convert complaints about configs, and what a log shows, to SARIF 2.1.0 (OASIS), which code hosts show beside lines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from msgspec import UNSET, Struct, UnsetType, field

from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Certainty, Place
from oomdoctor.case.settings import ConfigIssue, Severity
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.diagnosis.places import event_text
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording

_LONG = 2000
_FINDINGS = 8
_LEVELS: Mapping[str, Severity] = {"yes": "error", "possible": "warning"}
"""By whether memory failed; what failed otherwise is a note, for this tool judges memory."""


class SarifMessage(Struct, frozen=True):
    """A text of SARIF."""

    text: str


class SarifConfiguration(Struct, frozen=True):
    """How bad a kind of complaint is."""

    level: Severity


class SarifRule(Struct, frozen=True, kw_only=True, rename="camel"):
    """A kind of complaint."""

    id: str
    short_description: SarifMessage
    full_description: SarifMessage
    default_configuration: SarifConfiguration


class SarifArtifactLocation(Struct, frozen=True):
    """The file of a complaint."""

    uri: str


class SarifRegion(Struct, frozen=True, rename="camel"):
    """The line of a complaint."""

    start_line: int


class SarifPhysicalLocation(Struct, frozen=True, rename="camel"):
    """The file and the line of a complaint."""

    artifact_location: SarifArtifactLocation
    region: SarifRegion | UnsetType = UNSET
    """Left out where no line was counted."""


class SarifLocation(Struct, frozen=True, rename="camel"):
    """Where a complaint stands."""

    physical_location: SarifPhysicalLocation


class SarifResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """One complaint."""

    rule_id: str
    rule_index: int
    level: Severity
    message: SarifMessage
    locations: tuple[SarifLocation, ...]
    partial_fingerprints: dict[str, str]


class SarifDriver(Struct, frozen=True, kw_only=True, rename="camel"):
    """The program that looked, and the kinds of complaints that it found."""

    name: str
    semantic_version: str
    rules: tuple[SarifRule, ...]


class SarifTool(Struct, frozen=True):
    """The program that looked."""

    driver: SarifDriver


class SarifRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of the program."""

    tool: SarifTool
    column_kind: Literal["unicodeCodePoints"]
    results: tuple[SarifResult, ...]


class SarifLog(Struct, frozen=True, kw_only=True):
    """A log of SARIF."""

    schema: Literal["https://json.schemastore.org/sarif-2.1.0.json"] = field(name="$schema")
    version: Literal["2.1.0"]
    runs: tuple[SarifRun, ...]


class _Complaint(Struct, frozen=True, kw_only=True):
    """What is said of one line, whether of a config or of a log."""

    id: str
    level: Severity
    what: str
    why: str
    write: str | None = None
    file: str
    line: int | None
    key: str


def convert_config_issues(issues: Sequence[ConfigIssue], wording: Wording, version: str) -> SarifLog:
    """Convert complaints to one run of one tool; each kind of complaint is a rule."""
    return _log([_of_config(issue, wording) for issue in issues], wording, version)


def convert_findings(diagnosis: Diagnosis, wording: Wording, version: str) -> SarifLog:
    """Convert a diagnosis: its verdict, what it means, and what is wrong in the config, each at its line; nothing where nothing failed."""
    case = diagnosis.case
    complaints = [_of_config(issue, wording) for issue in (case.training.issues if case.training is not None else ())]
    if not case.incidents:
        return _log(complaints, wording, version)
    first = case.incidents[0]
    level: Severity = _LEVELS.get(case.verdict.memory_failure, "note")
    settle = settle_text(case, wording)
    why = wording.say(labels.SETTLE) + settle if settle else clean_line(event_text(first.root, wording), 400)
    verdict = _at(first.root.place, id=first.kind.value, level=level, what=summary(diagnosis, wording), why=why, key=first.root.signature)
    results = [_of_finding(finding, first.root.place, wording) for finding in diagnosis.findings[:_FINDINGS]]
    return _log([verdict, *results, *complaints], wording, version)


def _of_finding(finding: Finding, root: Place, wording: Wording) -> _Complaint:
    place = finding.evidence[0].place if finding.evidence else root
    level: Severity = "error" if finding.severity == "error" and finding.confidence is not Certainty.POSSIBLE else "warning"
    fix = next((wording.say(labels.NEXT) + wording.colon + wording.say(fix.title) for fix in finding.fixes), None)
    what = bare(wording.say(finding.title)) + wording.aside(wording.say(labels.CONFIDENCE[finding.confidence.value]))
    level = "note" if finding.severity == "note" else level
    return _at(place, id=finding.id, level=level, what=what, why=wording.say(finding.why), key=finding.id, first=fix)


def _at(place: Place, *, id: str, level: Severity, what: str, why: str, key: str, first: str | None = None) -> _Complaint:  # noqa: A002
    return _Complaint(id=id, level=level, what=what, why=why, write=first, file=place.source, line=place.line, key=key)


def _of_config(issue: ConfigIssue, wording: Wording) -> _Complaint:
    return _Complaint(
        id=issue.id,
        level=issue.severity,
        what=wording.say(issue.what),
        why=wording.say(issue.why),
        write=None if issue.replacement is None else wording.say(labels.WRITE_INSTEAD) + clean_line(issue.replacement, 400),
        file=issue.file,
        line=max(1, issue.line),
        key=issue.key,
    )


def _log(issues: Sequence[_Complaint], wording: Wording, version: str) -> SarifLog:
    kinds = {issue.id: issue for issue in reversed(issues)}
    ids = list(dict.fromkeys(issue.id for issue in issues))
    driver = SarifDriver(name="oomdoctor", semantic_version=version, rules=tuple(_rule(kinds[id_], wording) for id_ in ids))
    results = tuple(_result(issue, ids.index(issue.id), wording) for issue in issues)
    return SarifLog(
        schema="https://json.schemastore.org/sarif-2.1.0.json",
        version="2.1.0",
        runs=(SarifRun(tool=SarifTool(driver), column_kind="unicodeCodePoints", results=results),),
    )


def _rule(issue: _Complaint, wording: Wording) -> SarifRule:
    return SarifRule(
        id=issue.id,
        short_description=SarifMessage(issue.id.replace("-", " ")),
        full_description=_message(wording.sentence(issue.why)),
        default_configuration=SarifConfiguration(issue.level),
    )


def _result(issue: _Complaint, rule: int, wording: Wording) -> SarifResult:
    text = wording.blank.join(wording.sentence(part) for part in (issue.what, issue.why, issue.write) if part)
    region = UNSET if issue.line is None else SarifRegion(issue.line)
    named = issue.file not in ("", "-")
    return SarifResult(
        rule_id=issue.id,
        rule_index=rule,
        level=issue.level,
        message=_message(text),
        locations=(SarifLocation(SarifPhysicalLocation(SarifArtifactLocation(_uri(issue.file)), region)),) if named else (),
        partial_fingerprints={"complaint/v1": clean_line(f"{issue.id}:{issue.key}", 400)},
    )


def _uri(path: str) -> str:
    """Return a file as a URI: relative to where the command ran, which is the checkout on a code host."""
    if os.path.isabs(path):
        inside = os.path.relpath(path)
        if inside.startswith(os.pardir):
            return Path(path).as_uri()
        path = inside
    return quote(os.path.normpath(path).replace(os.sep, "/"))


def _message(text: str) -> SarifMessage:
    return SarifMessage(clean(text.replace("`", ""), _LONG))
