"""The forms as a page of the documents: each field of each project, and what fills it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.knowledge.project_forms import ProjectForm
from oomdoctor.knowledge.records.form import FieldRecord

_HEAD = """# Bug forms that `oomdoctor report --for PROJECT` fills in

Each field of each form, in the form's order. "The person" is asked in the text, by a mark; a box that vouches for something
(that one has searched, that one has read the rules) is never ticked. The forms are data: `rules/forms`, one file a project.
"""
_PARTS = {
    "summary": "what happened",
    "message": "the exact message",
    "traceback": "the traceback",
    "model": "the model",
    "figures": "where the memory went",
    "findings": "suspected cause",
    "fixes": "possible fixes",
    "settings": "the settings in effect",
    "missing": "what is missing, and how to get it",
}


def forms_page(forms: Sequence[ProjectForm]) -> str:
    """Return the page, in Markdown."""
    return "\n".join([_HEAD, *(part for project in forms for part in _project(project))])


def _project(project: ProjectForm) -> Iterator[str]:
    form = project.form
    yield f"## {form.project} (`--for {form.id}`)\n\n{form.source} of {form.repository}. Languages: {', '.join(form.languages)}.\n"
    yield "| field | required | filled with | left to the person |\n|---|---|---|---|"
    for field in form.fields:
        required = "yes" if field.required else ""
        yield f"| {_cell(field.heading) or '(below the questions)'} | {required} | {_filled(field, project)} | {_left(field)} |"
    yield ""


def _filled(field: FieldRecord, project: ProjectForm) -> str:
    parts = [_PARTS[name] for name in field.parts]
    if field.sheet is not None:
        sheet = project.sheets[field.sheet]
        printed = f"`{sheet.command}`" if sheet.command else "the versions"
        parts.append(f"{printed}: {len(sheet.lines)} lines")
    if field.fact is not None:
        parts.append(f"`{field.fact}`")
    known = [option.label for option in field.options if option.fact is not None]
    if known:
        parts.append(f"which is true of {', '.join(known)}")
    return "; ".join(parts)


def _left(field: FieldRecord) -> str:
    boxes = [option.label for option in field.options if option.fact is None]
    parts = [field.ask.en] if field.ask is not None else []
    return _cell("; ".join(parts + ([f"{len(boxes)} of {len(field.options)} boxes"] if boxes else [])))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
