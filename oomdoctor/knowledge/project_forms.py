"""The form of a project, out of the pack."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, convert

from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.forms import FormRecord, Record, SheetRecord

T = TypeVar("T", bound=Record)


class ProjectForm(Struct, frozen=True):
    """A form, and the sheets that its fields name."""

    form: FormRecord
    sheets: dict[str, SheetRecord]


def project_form(pack: Pack, project: str) -> ProjectForm:
    """The form of a project. Raises KeyError where the rules have none, or lack a sheet of it."""
    form = _record(pack, "forms", project, FormRecord)
    sheets = {one.sheet: _record(pack, "sheets", one.sheet, SheetRecord) for one in form.fields if one.sheet is not None}
    return ProjectForm(form, sheets)


def _record(pack: Pack, part: str, name: str, shape: type[T]) -> T:
    whole = pack.text(part, name)
    if whole is None:
        raise KeyError(name)
    return convert({key: value for key, value in whole.items() if key != "path"}, shape)
