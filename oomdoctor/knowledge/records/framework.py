"""The shape of what rules/tables knows of frameworks: how to know a config, what its keys mean, which keys there are."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from oomdoctor.knowledge.records.base import Plain, Record, RecordKind


class FromKey(Record, frozen=True, kw_only=True):
    """A key whose values mean something else in the common words: `bf16: true` is precision bf16.

    `map` goes from the value, in lower case, to what it means; `*` stands for any other value, and means the value itself
    where it maps to `*`. A value that is not listed says nothing.
    """

    key: str
    map: dict[str, Plain | None]


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


FRAMEWORKS = RecordKind("frameworks", FrameworkRecord)
KEYS = RecordKind("config_keys", KeysRecord)
