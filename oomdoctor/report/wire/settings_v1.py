"""The structures that several JSON reports share: settings, complaints about a config, gaps."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from oomdoctor.case.gap import Gap
from oomdoctor.case.settings import ConfigIssue, ProposedSetting, Severity
from oomdoctor.report.diagnosis.headline import plain
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.wording import Wording

Count = Annotated[int, Meta(ge=0)]
LineNumber = Annotated[int, Meta(ge=1)]


class PlannedSettingV1(Struct, frozen=True, kw_only=True):
    """One key of one framework's config."""

    framework: str
    file: str | None
    line: int | None
    key: str
    before: str | None = field(name="from")
    to: str


class SettingV1(PlannedSettingV1, frozen=True, kw_only=True):
    """One key of one framework's config, with a note."""

    note: str | None
    """What the change keeps, or the versions that know the key."""
    direction: Literal["lower", "higher"] | None = None
    """Where only the direction is known, from a value in force that nobody knows; `to` is empty then."""


class ConfigIssueV1(Struct, frozen=True, kw_only=True):
    """Something in a config that does not do what it seems to do."""

    id: str
    severity: Severity
    key: str
    file: str
    line: LineNumber
    what: str
    why: str
    instead: str | None
    cites: tuple[str, ...]


class GapV1(Struct, frozen=True, kw_only=True):
    """A thing that is not known."""

    what: str
    why: str
    how: str | None


def planned_setting(setting: ProposedSetting) -> PlannedSettingV1:
    """Convert a setting of a plan."""
    return PlannedSettingV1(
        framework=setting.framework,
        file=_line(setting.file, 1000),
        line=setting.line,
        key=setting.key,
        before=_line(setting.before, 400),
        to=clean_line(setting.to, 400),
    )


def proposed_setting(setting: ProposedSetting, wording: Wording) -> SettingV1:
    """Convert a setting of a fix, with its note."""
    return SettingV1(
        framework=setting.framework,
        file=setting.file,
        line=setting.line,
        key=setting.key,
        before=_line(setting.before, 400),
        to=clean_line(setting.to, 400),
        note=plain(setting.note, wording),
        direction=setting.direction,
    )


def config_issue(issue: ConfigIssue, wording: Wording) -> ConfigIssueV1:
    """Convert a complaint about a config."""
    return ConfigIssueV1(
        id=issue.id,
        severity=issue.severity,
        key=clean_line(issue.key, 400),
        file=clean_line(issue.file, 1000),
        line=issue.line,
        what=clean_line(wording.say(issue.what), 2000),
        why=clean_line(wording.say(issue.why), 2000),
        instead=_line(issue.replacement, 400),
        cites=issue.cites,
    )


def gap(missing: Gap) -> GapV1:
    """Convert what is not known."""
    return GapV1(what=clean_line(missing.what, 400), why=clean_line(missing.why, 400), how=_line(missing.how, 400))


def _line(text: str | None, limit: int) -> str | None:
    return None if text is None else clean_line(text, limit)
