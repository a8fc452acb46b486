"""Convert complaints about configs to SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from msgspec import Struct, field

from oomdoctor.case.settings import ConfigIssue, Severity
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording

_LONG = 2000


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
    region: SarifRegion


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


def convert_config_issues(issues: Sequence[ConfigIssue], wording: Wording, version: str) -> SarifLog:
    """Convert complaints to one run of one tool; each kind of complaint is a rule."""
    kinds = {issue.id: issue for issue in reversed(issues)}
    ids = list(dict.fromkeys(issue.id for issue in issues))
    driver = SarifDriver(name="oomdoctor", semantic_version=version, rules=tuple(_rule(kinds[id_], wording) for id_ in ids))
    results = tuple(_result(issue, ids.index(issue.id), wording) for issue in issues)
    return SarifLog(
        schema="https://json.schemastore.org/sarif-2.1.0.json",
        version="2.1.0",
        runs=(SarifRun(tool=SarifTool(driver), column_kind="unicodeCodePoints", results=results),),
    )


def _rule(issue: ConfigIssue, wording: Wording) -> SarifRule:
    return SarifRule(
        id=issue.id,
        short_description=SarifMessage(issue.id.replace("-", " ")),
        full_description=_message(wording.sentence(wording.say(issue.why))),
        default_configuration=SarifConfiguration(issue.severity),
    )


def _result(issue: ConfigIssue, rule: int, wording: Wording) -> SarifResult:
    text = wording.sentence(wording.say(issue.what)) + wording.blank + wording.sentence(wording.say(issue.why))
    if issue.replacement is not None:
        text += f"{wording.blank}{wording.say(labels.WRITE_INSTEAD)}{clean_line(issue.replacement, 400)}{wording.stop}"
    return SarifResult(
        rule_id=issue.id,
        rule_index=rule,
        level=issue.severity,
        message=_message(text),
        locations=(SarifLocation(SarifPhysicalLocation(SarifArtifactLocation(_uri(issue.file)), SarifRegion(max(1, issue.line)))),),
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
