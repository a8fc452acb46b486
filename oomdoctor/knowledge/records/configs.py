"""The shape of what rules/ knows of configs: frameworks and keys (rules/tables), checks (rules/checks), new files (rules/templates).

Only loading and lint import this module (msgspec); reading a compiled pack does not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.rules import Id, TextRecord

Plain = str | int | float | bool | None


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of these records: immutable, and no key that nobody reads."""


class FromKey(Record, frozen=True, kw_only=True):
    """A key whose values mean something else in the common words: `bf16: true` is precision bf16.

    `map` goes from the value, in lower case, to what it means; `*` stands for any other value, and means the value itself
    where it maps to `*`. A value that is not listed says nothing.
    """

    key: str
    map: dict[str, Plain]


class FrameworkRecord(Record, frozen=True, kw_only=True):
    """rules/tables/settings/<framework>.yaml: how to know a framework's config, and what its keys mean."""

    framework: str
    title: str
    order: int
    """Frameworks are tried in this order: those with keys of their own first."""
    shares: list[str] = []
    """Frameworks whose keys are keys of this one too."""
    roots: list[str] = []
    """Blocks under which the shared keys stand."""
    programs: list[str] = []
    """What a command begins with."""
    takes_options: bool = True
    """Whether its programs take settings as options: a script of the same name that is given some is another's."""
    signs: list[list[str]]
    """Keys that together show the framework."""
    in_commands: bool = True
    """Whether its signs show it in a command too: what stands in files of its own can be one option among those of a trainer."""
    extra: list[str] = []
    """Keys that its packages do not list."""
    blocks: dict[str, list[str]] = {}
    """A block -> keys that count only inside it."""
    inner: list[str] = []
    """Blocks whose keys are in the table of keys too."""
    open: bool = False
    """Whether it takes any key."""
    settings: dict[str, list[str | FromKey]]
    """The common name -> the keys that give it, the first one that is there counts."""
    renamed: dict[str, str] = {}
    source: str


class KeySpan(Record, frozen=True, kw_only=True):
    """Keys that came and went together; versions are the first and the last examined one that has them."""

    names: str
    since: str | None = None
    until: str | None = None


class KeysRecord(Record, frozen=True, kw_only=True):
    """rules/tables/config_keys/<framework>.yaml, made by tools/config_keys.py."""

    framework: str
    source: str
    versions: Annotated[list[str], Meta(min_length=1)]
    keys: list[KeySpan]


class CheckExample(Record, frozen=True, kw_only=True):
    """Config files, by name, of which one check must speak, or none."""

    name: str
    files: dict[str, str]
    known: dict[str, Plain] = {}
    """Facts of the log, `log.transformers_version`."""


class CheckRecord(Record, frozen=True, kw_only=True):
    """A combination of settings that does not do what it seems to do."""

    id: Id
    severity: Literal["error", "warning", "note"]
    at: Annotated[list[str], Meta(min_length=1)]
    """The facts that name its place: `training.NAME` or `given.FRAMEWORK.KEY`; the first one that is there counts."""
    when: dict[str, Any]
    what: TextRecord
    why: TextRecord
    instead: str | None = None
    mended_by: Id | None = None
    """The fix that has the keys for it, where each framework has its own."""
    sets: dict[str, Plain] = {}
    """What that fix is to set, by the names that all frameworks share."""
    source: str
    """Where it stands that it is so."""
    cites: list[str] = []
    examples: Annotated[list[CheckExample], Meta(min_length=1)]
    near_misses: Annotated[list[CheckExample], Meta(min_length=1)]


class CheckFile(Record, frozen=True, kw_only=True):
    """rules/checks/<subject>.yaml"""

    checks: list[CheckRecord]


class ServedRecord(Record, frozen=True, kw_only=True):
    """A value of a fix that names a file, which the template can be."""

    framework: str
    key: str
    to: str


class TemplateRecord(Record, frozen=True, kw_only=True):
    """rules/templates/<template>.yaml: a config file to create where a fix needs one."""

    id: Id
    title: TextRecord
    file: str
    """The name that the new file gets."""
    role: str
    """What it decides about a run; a run takes one file of each role."""
    serves: Annotated[list[ServedRecord], Meta(min_length=1)]
    launch: dict[str, str] = {}
    """By framework the command that uses it; `{file}` is the new file, `{config}` the config that is trained."""
    text: str
    """What it holds; `{cards}` and `{precision}` are filled in from the run."""
    source: str
