"""A diagnosis as the bug form of a project, in a language that the project takes."""

from __future__ import annotations

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.project_forms import project_form
from oomdoctor.report.issue.form_markdown import render
from oomdoctor.report.issue.forms import compose_form
from oomdoctor.report.safety.redact import redact as hide
from oomdoctor.report.wording.wording import Wording


def form_text(diagnosis: Diagnosis, project: str, pack: Pack, wording: Wording, version: str, *, is_asked: bool, redact: bool) -> str:
    """Return the form as Markdown; `is_asked` keeps a language that the project does not take. Raise UsageError where there is no form."""
    try:
        fields = project_form(pack, project)
    except KeyError as error:
        raise UsageError(f"--for {project}: these rules have no form {error}") from error
    if not is_asked and wording.lang not in fields.form.languages:
        wording = Wording(fields.form.languages[0])
    document = compose_form(diagnosis, fields, wording, version)
    return render(hide(document) if redact else document, fields.form)
