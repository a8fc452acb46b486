"""The shape of rules/layouts.yaml: how the logs of jobs lie, and what the lines of an export say of their job."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord

Keys = Annotated[list[str], Meta(min_length=1)]
"""The way to a value in a line of JSON."""


class LayoutExample(Record, frozen=True, kw_only=True):
    """A path, and what it says."""

    path: str
    facts: dict[str, str]


class LayoutRecord(Record, frozen=True, kw_only=True):
    """A way in which files of jobs lie, told by the path."""

    id: Id
    title: TextRecord
    pattern: str
    """Looked for in the path; named groups are facts of the file."""
    together: Literal["job", "folder", "session", "run", "file"]
    """Which files are looked at together before jobs are told apart."""
    parts_run: Literal["forward", "backward"] = "forward"
    """Whether a larger `part` is a later piece of a rotated log, or an earlier one."""
    source: str
    examples: list[LayoutExample] = []
    near_misses: list[str] = []


class ExportRecord(Record, frozen=True, kw_only=True):
    """What a log store writes as one object of JSON a line."""

    id: Id
    title: TextRecord
    sign: str
    """A key that stands in its objects and in no other's."""
    message: Keys
    other_messages: list[Keys] = []
    """What holds the message of an object that lacks the first: each that it has, one below the other."""
    job: list[Keys] = []
    """What names the job of a line; the first that a line has. None: one file holds one job."""
    name: list[Keys] = []
    node: list[Keys] = []
    user: list[Keys] = []
    namespace: list[Keys] = []
    """Of the pod that wrote a line."""
    time: Keys
    source: str


class LayoutFile(Record, frozen=True, kw_only=True):
    """The file rules/layouts.yaml; the first entry that fits counts."""

    layouts: list[LayoutRecord]
    exports: list[ExportRecord]


LAYOUTS = RecordKind("layouts", LayoutRecord)
EXPORTS = RecordKind("exports", ExportRecord)
