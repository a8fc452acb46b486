"""The shape of the bug forms of other projects (rules/forms), and of the lists of versions that they ask for (rules/forms/sheets)."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord

PartName = Literal["summary", "message", "traceback", "figures", "findings", "fixes", "model", "settings", "missing"]


class OptionRecord(Record, frozen=True, kw_only=True, rename={"value": "is"}):
    """One box or choice. Without a fact it is for the person: it is never ticked."""

    label: str
    fact: str | None = None
    value: str | None = None
    """`is` in the file: the value of the fact for which it is ticked."""


class SheetRecord(Record, frozen=True, kw_only=True):
    """rules/forms/sheets/<sheet>.yaml: lines as a tool prints them, each with the fact that stands in it."""

    id: Id
    source: str
    command: str | None = None
    """The tool that prints it; None where a form lists the lines itself."""
    lines: Annotated[list[tuple[str, str]], Meta(min_length=1)]


class FieldRecord(Record, frozen=True, kw_only=True):
    """One field of a form, in the form's own words, and what fills it."""

    id: Id
    heading: str
    required: bool = False
    sheet: str | None = None
    fact: str | None = None
    parts: list[PartName] = []
    """Parts of the diagnosis, in this order."""
    ask: TextRecord | None = None
    """What only a person can say: left in the text, marked."""
    options: list[OptionRecord] = []
    choice: bool = False
    """Whether the options are a list to choose from, of which only what holds is written."""
    fence: str = "text"
    """The language of the fence around a sheet; empty for lines without one."""
    details: str | None = None
    """The title under which a sheet is folded."""


class FormRecord(Record, frozen=True, kw_only=True):
    """rules/forms/<project>.yaml: the form for a bug of one project."""

    id: Id
    project: str
    repository: str
    source: str
    """The file in that repository and the commit at which it was read."""
    title: str = ""
    """What the title of an issue begins with."""
    languages: Annotated[list[Literal["en", "zh"]], Meta(min_length=1)]
    """The languages in which it may be filled in, the project's own first."""
    style: Literal["form", "bold", "questions"] = "form"
    """How a heading is written: `### heading`, `**heading**`, or a numbered question."""
    fields: Annotated[list[FieldRecord], Meta(min_length=1)]


FORMS = RecordKind("forms", FormRecord)
SHEETS = RecordKind("sheets", SheetRecord)
