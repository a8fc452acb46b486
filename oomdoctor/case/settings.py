"""The settings of a run: what its config files, its command line and its log say, and what of it does not take effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Union

from msgspec import Struct, field

from oomdoctor.case.text import Text

Scalar = Union[str, int, float, bool, None]
Severity = Literal["error", "warning", "note"]


class WrittenSetting(Struct, frozen=True, kw_only=True):
    """One setting, as somebody wrote it."""

    key: str
    """The key as written; the keys of the blocks that it stands in come before it, with dots."""
    value: Scalar | tuple[Scalar, ...]
    """None for `null`, for a block of further keys, and for what the file does not say (a shell variable)."""
    file: str
    line: int
    """1-based."""
    framework: str | None = None
    """Whose key it is; None where that is not known."""
    block: bool = False
    """Whether the key holds a block of further keys."""

    @property
    def name(self) -> str:
        """The key as programs compare it: no leading dashes, and underscores for dashes."""
        return self.key.lstrip("-").replace("-", "_")


class ConfigIssue(Struct, frozen=True, kw_only=True):
    """Something in a config that does not do what it seems to do."""

    id: str
    severity: Severity
    """`error`: the run stops or the setting is void; `warning`: memory is lost; `note`: worth knowing."""
    key: str
    file: str
    line: int
    what: Text
    why: Text
    instead: str | None = None
    """What to write, in the words of the file."""
    mended_by: str | None = None
    """The fix that has the keys for it, where each framework has its own."""
    sets: tuple[tuple[str, Scalar], ...] = ()
    """What that fix is to set, by the names that all frameworks share."""
    cites: tuple[str, ...] = ()


class RunConfig(Struct, frozen=True, kw_only=True):
    """The settings of one run. A name that is missing in `settings` is unknown."""

    framework: str | None = None
    """The framework whose file a person edits."""
    reason: str | None = None
    """The key or program that shows the framework."""
    version: str | None = None
    given: tuple[WrittenSetting, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    """By the names that all frameworks share (`micro_batch`, `zero_stage`)."""
    places: Mapping[str, WrittenSetting] = field(default_factory=dict)
    """Where each of them stands; one that was worked out from others has no place."""
    complaints: tuple[ConfigIssue, ...] = ()
    """The worst first."""

    def facts(self) -> dict[str, Scalar]:
        """The settings as rules ask for them, `training.micro_batch`. What is missing is unknown."""
        named: dict[str, Scalar] = {f"training.{name}": value for name, value in self.settings.items() if value is not None}
        return named if self.framework is None else {**named, "training.framework": self.framework}


class ProposedSetting(Struct, frozen=True, kw_only=True):
    """One key of one framework's config, with the value before and after."""

    framework: str
    key: str
    to: str
    file: str | None = None
    line: int | None = None
    before: str | None = None
    """The value in force, as it is written; None where it is unknown."""
    note: Text | None = None
    """What the change keeps or when it applies."""
    example: bool = False
    """Whether `to` only shows what kind of value is meant."""
    sets: str | None = None
    """The setting behind the key, by the name that all frameworks share."""
    dated: bool = False
    """Whether only some versions know it, and which one runs is not known."""
