"""The form of a project, out of the pack."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.form import FORMS, SHEETS, FormRecord, SheetRecord


class ProjectForm(Struct, frozen=True):
    """A form, and the sheets that its fields name."""

    form: FormRecord
    sheets: dict[str, SheetRecord]


def project_form(pack: Pack, project: str) -> ProjectForm:
    """Return the form of a project. Raise KeyError where the rules have none, or lack a sheet of it."""
    form = pack.record(FORMS, project)
    if form is None:
        raise KeyError(project)
    sheets: dict[str, SheetRecord] = {}
    for name in (field.sheet for field in form.fields if field.sheet is not None):
        sheet = pack.record(SHEETS, name)
        if sheet is None:
            raise KeyError(name)
        sheets[name] = sheet
    return ProjectForm(form, sheets)
