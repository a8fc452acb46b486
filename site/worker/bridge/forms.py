"""The forms of an answer: JSON and HTML for the page, files to keep, a reply, an issue."""

from __future__ import annotations

import os

from msgspec import Raw, Struct

from bridge.answer import Answer
from bridge.request import Request
from oomdoctor import __version__
from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.case import SEVERAL_RUNS, reported_run
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.document import Document
from oomdoctor.report.issue.form_text import form_text
from oomdoctor.report.issue.issue import compose_issue
from oomdoctor.report.issue.reply import compose_reply, language_of
from oomdoctor.report.render import html, markdown
from oomdoctor.report.safety.redact import redact as hide
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording


class Shown(Struct, frozen=True, kw_only=True):
    """A result as the page gets it."""

    kind: str
    data: Raw | None = None
    html: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()
    text: str | None = None
    mime: str | None = None
    name: str | None = None


def shown(given: Answer, request: Request) -> Shown:
    """Return an answer as the page shows it."""
    wording = request.wording
    document = document_of(given, request, wording)
    return Shown(
        kind=given.kind,
        data=Raw(json_of(given, request, wording)),
        html="" if document is None else html.render_main(document),
        title="" if document is None else document.title,
        notes=given.notes,
    )


def document_of(given: Answer, request: Request, wording: Wording) -> Document | None:
    """Return an answer for people, without what is to be hidden; None where it is none for people."""
    if given.document is None:
        return None
    return hide(given.document(wording), only_keys=not (given.names_people and request.hides_names))


def json_of(given: Answer, request: Request, wording: Wording) -> bytes:
    """Return an answer for programs, without what is to be hidden."""
    if given.report is None:
        return given.data or b"null"
    hides = given.names_people and request.hides_names
    return json_text(given.report(wording), redact=hides, only_keys=not hides).encode("utf-8", "replace")


def rendered(request: Request, given: Answer | None) -> Shown:
    """Return a kept result in another form. Raise UsageError where none is kept, or it has no such form."""
    if given is None:
        raise UsageError(f"no result {request.of} is kept")
    os.chdir(given.folder)
    wording = request.wording
    if request.form == "json":
        return _file(json_of(given, request, wording).decode(), "application/json", f"{given.kind}.json")
    if request.form == "reply":
        return _file(_reply(given, request), "text/markdown", "reply.md")
    if request.form == "issue":
        return _file(_issue(given, request, wording), "text/markdown", "issue.md")
    document = document_of(given, request, wording)
    if document is None or request.form not in ("html", "markdown"):
        raise UsageError(f"a result of {given.kind} has no form {request.form}")
    if request.form == "html":
        return _file(html.render(document), "text/html", f"{given.kind}.html")
    return _file(markdown.render(document), "text/markdown", f"{given.kind}.md")


def _file(text: str, mime: str, name: str) -> Shown:
    return Shown(kind="render", text=text, mime=mime, name=name)


def _reply(given: Answer, request: Request) -> str:
    diagnosis = _diagnosed(given)
    wording = Wording(request.lang or language_of(given.pasted) or "en")
    document = compose_reply(diagnosis, wording, __version__, given.pasted)
    return markdown.render(hide(document, only_keys=not request.hides_names))


def _issue(given: Answer, request: Request, wording: Wording) -> str:
    diagnosis = _diagnosed(given)
    if diagnosis.case.verdict.reason == SEVERAL_RUNS:
        diagnosis = diagnose(list(reported_run(diagnosis.case.runs).sources))
    if request.project not in (None, "github"):
        is_asked, hides = request.lang is not None, request.hides_names
        return form_text(diagnosis, str(request.project), load_pack(), wording, __version__, is_asked=is_asked, redact=hides)
    return markdown.render(hide(compose_issue(diagnosis, wording, __version__), only_keys=not request.hides_names))


def _diagnosed(given: Answer) -> Diagnosis:
    if given.diagnosis is None:
        raise UsageError("only a diagnosis has this form")
    return given.diagnosis
