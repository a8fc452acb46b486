"""Answer the requests of the page (site/PROTOCOL.md) with the library. Runs in the page's worker, where the inputs lie in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import decode, encode

from oomdoctor import __version__
from oomdoctor.api.check import check
from oomdoctor.api.diagnose import diagnose
from oomdoctor.api.estimate import estimate
from oomdoctor.api.fix import fix
from oomdoctor.api.handbook.explain import found_pages, page_id
from oomdoctor.api.inputs import CONFIG_ENDINGS, partly_unread_lines, unread_lines
from oomdoctor.api.plan import plan
from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.api.sizing.sweep import sweep
from oomdoctor.case.case import SEVERAL_RUNS, worst_first
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Event
from oomdoctor.case.settings import Scalar
from oomdoctor.configs.proposals.apply import AppliedStep
from oomdoctor.errors import NothingReadError, OomdoctorError, UsageError
from oomdoctor.ingest import prefilter
from oomdoctor.ingest.prefilter import Hit, Prefilter
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.diagnosis.compose import compose as diagnosis_document
from oomdoctor.report.document import Document
from oomdoctor.report.edits.check import compose as check_document
from oomdoctor.report.handbook.page import contents_page, found_page, rule_page
from oomdoctor.report.issue.form_text import form_text
from oomdoctor.report.issue.issue import compose_issue
from oomdoctor.report.issue.reply import compose_reply, language_of
from oomdoctor.report.memory.estimate_answer import estimate_document
from oomdoctor.report.memory.estimate_json import convert_run_estimate
from oomdoctor.report.memory.plan_answer import convert_found_plans, plan_document
from oomdoctor.report.memory.sweep import compose as sweep_document
from oomdoctor.report.render import html, markdown
from oomdoctor.report.runs.snapshot import compose as snapshot_document
from oomdoctor.report.safety.redact import redact as hide
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.check import convert_check
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.explain import convert_pages
from oomdoctor.report.wire.runs.snapshot import convert_snapshot
from oomdoctor.report.wire.sizing.sweep import convert_sweep
from oomdoctor.report.wording.wording import Wording
from oomdoctor.setups.spec_lines import answer_lines

_EVERY_S = 0.1
_SHOWN = 80
_BEGINNING = 200_000
"""So much of a log shows the language of who reports it."""


class Input(Struct, forbid_unknown_fields=True):
    """A file of a request; it lies in the folder of the request under its path."""

    path: str
    role: str | None = None


class Question(Struct, forbid_unknown_fields=True):
    """What `estimate` and its neighbours are asked."""

    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    framework: str | None = None
    serve: bool | None = None
    settings: dict[str, Scalar] | None = None


class Request(Struct, kw_only=True):
    """A request, whatever its type; what its type has no use for counts for nothing."""

    type: str
    id: int | str
    lang: str | None = None
    redact: bool | None = None
    text: str | None = None
    inputs: tuple[Input, ...] = ()
    question: Question | None = None
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    server_version: str | None = None
    axes: str | None = None
    top: int | None = None
    plan: int | None = None
    only: tuple[str, ...] = ()
    review: bool | None = None
    query: str | None = None
    lines: tuple[str, ...] = ()
    of: int | str | None = None
    form: str | None = None
    project: str | None = None

    @property
    def hides_names(self) -> bool:
        """Whether people, machines and paths are taken out besides keys and passwords."""
        return self.redact is not False

    @property
    def asked(self) -> Question:
        """The question; without one nothing is known."""
        return self.question or Question()

    def of_role(self, role: str, *, takes_model: bool = False) -> list[str]:
        """Return what is given in a role: the path of a file alone, of a folder only its name."""
        paths = (_top(each) for each in self.inputs if _role(each, takes_model=takes_model) == role)
        return list(dict.fromkeys(paths))

    def model_path(self) -> str | None:
        """Return the config.json of a model, where one is given."""
        return next(iter(self.of_role("model", takes_model=True)), None)


def _role(given: Input, *, takes_model: bool) -> str:
    name = given.path.rpartition("/")[2].lower()
    if given.role is not None:
        return given.role
    if "/" in given.path:
        return "log"
    if takes_model and name == "config.json":
        return "model"
    if name.endswith(CONFIG_ENDINGS):
        return "config"
    if name.endswith(".csv"):
        return "series"
    return "snapshot" if name.endswith((".pickle", ".pkl")) else "log"


def _top(given: Input) -> str:
    return given.path.partition("/")[0] if given.role is None else given.path


class Listener(Protocol):
    """What hears how far a request is."""

    def progress(self, done: int) -> None:
        """Take how many bytes are read."""

    def early(self, source: str, text: str, from_end: int | None) -> None:
        """Take the first failure in the end of a large log."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a request gave, in no form yet."""

    kind: str
    folder: str
    report: Callable[[Wording], object] | None = None
    """The structure of its JSON."""
    document: Callable[[Wording], Document] | None = None
    data: bytes | None = None
    """Its JSON, where it has no structure."""
    names_people: bool = False
    """Whether it quotes a log or a file of a run, where people and machines are named."""
    notes: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    pasted: str = ""


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


class Failed(Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A request that has no result."""

    code: str
    text: str
    detail: str = ""


_kept: dict[int | str, Answer] = {}


def answer(text: str, folder: str, listener: Listener) -> str:
    """Answer one request, given as JSON, whose inputs lie in `folder`. Return the fields of `result`, or an `error`, as JSON."""
    try:
        return encode(_answered(decode(text, type=Request), folder, listener)).decode()
    except NothingReadError as error:
        return _failed("unreadable", "\n".join(error.lines))
    except OomdoctorError as error:
        return _failed("usage", str(error))
    except (DecodeError, ValidationError) as error:
        return _failed("usage", f"this is no request: {error}")
    except MemoryError:
        return _failed("out-of-memory", "the memory of this tab did not suffice")
    except Exception as error:  # noqa: BLE001 - a defect is told to the page, which lives on
        return _failed("internal", f"{type(error).__name__}: {error}", _traceback())


def forget(request: int | str) -> None:
    """Keep the result of a request no longer."""
    _kept.pop(request, None)


def _failed(code: str, text: str, detail: str = "") -> str:
    lines = "\n".join(clean_line(redact_text(line), 600) for line in text.split("\n"))
    return encode(Failed(code=code, text=lines, detail=detail)).decode()


def _traceback() -> str:
    import traceback  # noqa: PLC0415 - only for a defect

    return redact_text(traceback.format_exc())


def _answered(request: Request, folder: str, listener: Listener) -> Shown:
    os.chdir(folder)
    if request.type == "render":
        return _rendered(request)
    if request.type not in _ANSWERS:
        raise UsageError(f"no request has the type {request.type}")
    given = _ANSWERS[request.type](request, folder, listener)
    _kept[request.id] = given
    wording = _wording(request)
    document = _document(given, request, wording)
    return Shown(
        kind=given.kind,
        data=Raw(_json(given, request, wording)),
        html="" if document is None else html.render_main(document),
        title="" if document is None else document.title,
        notes=given.notes,
    )


def _wording(request: Request) -> Wording:
    return Wording("zh" if request.lang == "zh" else "en")


def _document(given: Answer, request: Request, wording: Wording) -> Document | None:
    if given.document is None:
        return None
    return hide(given.document(wording), only_keys=not (given.names_people and request.hides_names))


def _json(given: Answer, request: Request, wording: Wording) -> bytes:
    if given.report is None:
        return given.data or b"null"
    hides = given.names_people and request.hides_names
    return json_text(given.report(wording), redact=hides, only_keys=not hides).encode("utf-8", "replace")


def _diagnose(request: Request, folder: str, listener: Listener) -> Answer:
    logs = request.of_role("log")
    if request.text is None and not (logs or request.of_role("series") or request.of_role("snapshot")):
        raise UsageError("there is no log among the inputs")
    pasted = None if request.text is None else request.text.encode("utf-8", "surrogatepass")
    diagnosis = diagnose(
        logs if pasted is None else pasted,
        config=request.of_role("config"),
        series=request.of_role("series"),
        snapshot=request.of_role("snapshot"),
        environment=next(iter(request.of_role("machine")), None),
        progress=_counting(listener.progress),
        early=_first_failure(listener.early),
    )
    if lines := unread_lines(diagnosis):
        raise NothingReadError(lines)
    return Answer(
        kind="diagnose",
        folder=folder,
        report=lambda wording: convert_diagnosis(diagnosis, wording, __version__),
        document=lambda wording: diagnosis_document(diagnosis, wording, __version__),
        names_people=True,
        notes=partly_unread_lines(diagnosis),
        diagnosis=diagnosis,
        pasted=request.text[:_BEGINNING] if request.text is not None else _beginning(logs),
    )


def _beginning(logs: Sequence[str]) -> str:
    try:
        with open(logs[0], "rb") as file:
            return file.read(_BEGINNING).decode("utf-8", "replace")
    except (OSError, IndexError):
        return ""


def _counting(tell: Callable[[int], None]) -> Callable[[int], None]:
    done, last = 0, time.monotonic()

    def read(count: int) -> None:
        nonlocal done, last
        done += count
        if (now := time.monotonic()) - last >= _EVERY_S:
            last = now
            tell(done)

    return read


def _first_failure(tell: Callable[[str, str, int | None], None]) -> Callable[[Sequence[Event]], None]:
    def early(events: Sequence[Event]) -> None:
        first = next((event for event in events if event.is_failure), None)
        if first is not None:
            tell(clean_line(first.place.source, 200), clean_line(redact_text(first.text), 300), first.place.from_end)

    return early


def _estimate(request: Request, folder: str, _listener: Listener) -> Answer:
    run = estimate(request.of_role("config", takes_model=True), **_asked(request))
    return Answer(
        kind="estimate",
        folder=folder,
        report=lambda wording: convert_run_estimate(run, wording),
        document=lambda wording: estimate_document(run, wording, __version__),
    )


def _sweep(request: Request, folder: str, _listener: Listener) -> Answer:
    table = sweep(request.of_role("config", takes_model=True), axes=request.axes or "batch,length", **_asked(request))
    return Answer(
        kind="sweep",
        folder=folder,
        report=lambda wording: convert_sweep(table, wording),
        document=lambda wording: sweep_document(table, wording, __version__),
    )


def _asked(request: Request) -> Mapping[str, Any]:
    asked = request.asked
    return {
        "model": request.model_path() or asked.model,
        "gpu": asked.gpu,
        "gpus": asked.gpus,
        "framework": asked.framework,
        "settings": asked.settings,
        "serve": bool(asked.serve),
    }


def _plan(request: Request, folder: str, _listener: Listener) -> Answer:
    configs, logs = request.of_role("config", takes_model=True), request.of_role("log")
    if not (configs or logs or request.model_path() or request.asked.model):
        raise UsageError("what to plan? give a config or a log of the run, or a model")
    plans = plan(configs, log=logs, server_version=request.server_version, top=request.top or 5, **_asked(request))
    return Answer(
        kind="plan",
        folder=folder,
        report=lambda wording: convert_found_plans(plans, wording),
        document=lambda wording: plan_document(plans, load_pack(), wording, __version__),
    )


def _check(request: Request, folder: str, _listener: Listener) -> Answer:
    configs = request.of_role("config", takes_model=True)
    if not configs:
        raise UsageError("there is no config among the inputs")
    model = request.model_path() or request.model
    result = check(configs, gpu=request.gpu, gpus=request.gpus, model=model, server_version=request.server_version)
    return Answer(
        kind="check",
        folder=folder,
        report=lambda wording: convert_check(result.config, result.memory, result.gaps, wording, __version__),
        document=lambda wording: check_document(result.config, result.memory, result.gaps, wording, __version__),
        notes=() if result.unknown is None else (result.unknown,),
    )


class _FixedFile(Struct, frozen=True):
    path: str
    before: str | None
    after: str


class _FixedStep(Struct, frozen=True):
    id: str
    title: str
    done: bool
    by_hand: tuple[str, ...]
    """The lines that a person is to write for it."""


class _Fixed(Struct, frozen=True):
    files: tuple[_FixedFile, ...]
    steps: tuple[_FixedStep, ...]
    left: bool


def _fix(request: Request, folder: str, _listener: Listener) -> Answer:
    configs, logs = request.of_role("config", takes_model=True), request.of_role("log")
    if not configs:
        raise UsageError("there is no config among the inputs")
    changes = fix(
        configs,
        log=logs,
        gpu=request.gpu,
        gpus=request.gpus,
        model=request.model_path() or request.model,
        plan=request.plan,
        only=request.only,
        review=bool(request.review),
    )
    before = {path: data.decode("utf-8", "replace") for path, data in changes.before.items()}
    files = changes.applied.files.items()
    fixed = _Fixed(
        files=tuple(_FixedFile(path, before.get(path), data.decode("utf-8", "replace")) for path, data in files),
        steps=tuple(_fixed_step(step, _wording(request)) for step in changes.applied.steps),
        left=changes.is_incomplete,
    )
    return Answer(kind="fix", folder=folder, data=encode(fixed))


def _fixed_step(step: AppliedStep, wording: Wording) -> _FixedStep:
    proposal = step.proposal
    return _FixedStep(
        id=proposal.id,
        title=wording.sentence(wording.say(proposal.title)),
        done=step.already or bool(step.made or step.created),
        by_hand=tuple(clean_line(refusal.by_hand, 300) for refusal in (*step.refusals, *proposal.by_hand)),
    )


def _snapshot(request: Request, folder: str, _listener: Listener) -> Answer:
    found = snapshot([_top(given) for given in request.inputs])
    return Answer(
        kind="snapshot",
        folder=folder,
        report=lambda wording: convert_snapshot(found, wording, __version__),
        document=lambda wording: snapshot_document(found, wording, __version__, is_page=True),
        names_people=True,
    )


def _explain(request: Request, folder: str, _listener: Listener) -> Answer:
    book, text = Book(load_pack()), (request.query or "").strip()[:20_000]
    pages = found_pages(book, text) if text else []
    if pages:
        document = lambda wording: found_page(book, pages, text[:_SHOWN], wording, __version__)  # noqa: E731 - one of three
        return Answer(kind="explain", folder=folder, data=encode({"found": pages}), document=document)
    name = page_id(book, text) if text else None
    return Answer(
        kind="explain",
        folder=folder,
        report=lambda _wording: convert_pages(book, name, __version__),
        document=lambda wording: contents_page(book, wording, __version__) if name is None else rule_page(book, name, wording, __version__),
    )


def _answer_specs(request: Request, folder: str, _listener: Listener) -> Answer:
    lines = answer_lines(line.encode("utf-8", "surrogatepass") for line in request.lines)
    return Answer(kind="answer_specs", folder=folder, data=b"[" + ",".join(lines).encode() + b"]")


_ANSWERS: dict[str, Callable[[Request, str, Listener], Answer]] = {
    "diagnose": _diagnose,
    "estimate": _estimate,
    "sweep": _sweep,
    "plan": _plan,
    "check": _check,
    "fix": _fix,
    "snapshot": _snapshot,
    "explain": _explain,
    "answer_specs": _answer_specs,
}


def _rendered(request: Request) -> Shown:
    """Return a kept result in another form."""
    given = None if request.of is None else _kept.get(request.of)
    if given is None:
        raise UsageError(f"no result {request.of} is kept")
    os.chdir(given.folder)
    wording = _wording(request)
    if request.form == "json":
        return _file(_json(given, request, wording).decode(), "application/json", f"{given.kind}.json")
    if request.form == "reply":
        return _file(_reply(given, request), "text/markdown", "reply.md")
    if request.form == "issue":
        return _file(_issue(given, request, wording), "text/markdown", "issue.md")
    document = _document(given, request, wording)
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
        # An issue is about one run.
        diagnosis = diagnose(list(min(diagnosis.case.runs, key=worst_first).sources))
    if request.project not in (None, "github"):
        is_asked, hides = request.lang is not None, request.hides_names
        return form_text(diagnosis, str(request.project), load_pack(), wording, __version__, is_asked=is_asked, redact=hides)
    return markdown.render(hide(compose_issue(diagnosis, wording, __version__), only_keys=not request.hides_names))


def _diagnosed(given: Answer) -> Diagnosis:
    if given.diagnosis is None:
        raise UsageError("only a diagnosis has this form")
    return given.diagnosis


class _PageEngine:
    """The automaton of the page as a prefilter; of its literals those that the mask names are looked for."""

    def __init__(self, scan: Callable[..., Any], automaton: Any, mask: Any) -> None:
        self._scan, self._automaton, self._mask = scan, automaton, mask

    def find(self, data: Any, start: int, end: int) -> list[Hit]:
        """Return the hits in `data[start:end]`, in the order of their ends."""
        flat = self._scan(self._automaton, memoryview(data)[start:end], start, self._mask).to_py().tolist()
        return list(zip(flat[::2], flat[1::2]))

    def twin(self) -> Prefilter:
        """Itself: there is one thread."""
        return self


def use_page_engine(build: Callable[[Any], Any], scan: Callable[..., Any]) -> None:
    """Search with the automaton of the page, built once of the longest list of literals that is asked for."""
    built: dict[int, bytes] = {}
    automaton: Any = None

    def make(literals: list[bytes], numbers: list[int]) -> Prefilter:
        nonlocal built, automaton
        wanted = dict(zip(numbers, literals))
        if wanted.items() - built.items():
            built, automaton = wanted, build([wanted.get(number, b"") for number in range(max(numbers) + 1)])
        mask = bytes(number in wanted for number in range(max(built) + 1))
        return _PageEngine(scan, automaton, None if all(mask) else mask)

    prefilter.use(make)
