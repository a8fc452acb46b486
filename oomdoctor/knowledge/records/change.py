"""The shape of rules/changes: which differences between two runs or machines matter for memory, and how."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Plain, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition

Way = Literal["tighter", "looser", "differs"]


class ChangeExample(Record, frozen=True, kw_only=True):
    """Facts before and after, and what the change comes to."""

    name: str
    before: dict[str, Plain]
    after: dict[str, Plain]
    effect: Way | Literal["none"]


class ChangeRecord(Record, frozen=True, kw_only=True):
    """One fact that changes, and what that means. Which of `newer`, `larger` and `tightest_first` is given says how it is compared."""

    id: Id
    fact: str
    """The name of the fact, as oomdoctor/comparing/facts.py gives it."""
    about: TextRecord
    """What it is, in a few words."""
    newer: Way | None = None
    """For a version: what passing `since` upwards means; downwards it is the other way round."""
    since: str | None = None
    """The first version that is different."""
    last: str | None = None
    """The last one known to be as before, where those between it and `since` were not looked at."""
    larger: Literal["tighter", "looser"] | None = None
    """For a number: what more of it means."""
    least: Annotated[float, Meta(ge=0, lt=1)] = 0
    """The share of the larger number up to which two are the same."""
    tightest_first: Annotated[list[Plain], Meta(min_length=2)] | None = None
    """For a choice: its values, those that need the most memory first. Another value `differs`."""
    memory: Annotated[list[Literal["card", "host", "shm"]], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["card"])
    """The memories that it can fill; the card where none is named."""
    rank: int = 50
    """Among changes of equal effect the lower rank is the more suspicious."""
    when: Condition | None = None
    """The change counts unless this is false of what came after."""
    why: TextRecord
    """What it means for memory; `{before}` and `{after}` are the values."""
    source: str
    examples: list[ChangeExample] = []
    near_misses: list[ChangeExample] = []


class ChangeFile(Record, frozen=True, kw_only=True):
    """A file rules/changes/<subject>.yaml."""

    changes: list[ChangeRecord]


CHANGES = RecordKind("changes", ChangeRecord)
