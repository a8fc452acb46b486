"""The shape of rules/templates: config files to create."""

from typing import Annotated

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord


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


TEMPLATES = RecordKind("templates", TemplateRecord)
