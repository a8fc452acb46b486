"""Each kind of request: the use case of the library that answers it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.json import encode

from bridge.answer import Answer, Listener
from bridge.request import Request
from oomdoctor import __version__
from oomdoctor.api.check import check
from oomdoctor.api.configs import read_settings
from oomdoctor.api.diagnose import diagnose
from oomdoctor.api.estimate import estimate
from oomdoctor.api.inputs import partly_unread_lines, unread_lines
from oomdoctor.api.plan import plan
from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.api.sizing.alternatives import compare_cards, compare_formats
from oomdoctor.api.sizing.sweep import sweep
from oomdoctor.case.event import Event
from oomdoctor.errors import NothingReadError, UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.planning.sizing.alternatives import Alternatives
from oomdoctor.report.diagnosis.compose import compose as diagnosis_document
from oomdoctor.report.edits.check import compose as check_document
from oomdoctor.report.memory.alternatives import compose as alternatives_document
from oomdoctor.report.memory.estimate_answer import estimate_document
from oomdoctor.report.memory.estimate_json import convert_run_estimate
from oomdoctor.report.memory.plan_answer import convert_found_plans, plan_document
from oomdoctor.report.memory.sweep import compose as sweep_document
from oomdoctor.report.runs.snapshot import compose as snapshot_document
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.check import convert_check
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.runs.snapshot import convert_snapshot
from oomdoctor.report.wire.sizing.alternatives import convert_alternatives
from oomdoctor.report.wire.sizing.sweep import convert_sweep
from oomdoctor.setups.spec_lines import answer_lines

_EVERY_S = 0.1
_BEGINNING = 200_000
"""So much of a log shows the language of who reports it."""


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


def _cards(request: Request, folder: str, _listener: Listener) -> Answer:
    asked = {name: value for name, value in _asked(request).items() if name not in ("gpu", "gpus")}
    return _alternatives(compare_cards(request.of_role("config", takes_model=True), **asked), folder)


def _formats(request: Request, folder: str, _listener: Listener) -> Answer:
    return _alternatives(compare_formats(request.of_role("config", takes_model=True), **_asked(request)), folder)


def _alternatives(compared: Alternatives, folder: str) -> Answer:
    return Answer(
        kind=compared.compared,
        folder=folder,
        report=lambda wording: convert_alternatives(compared, wording),
        document=lambda wording: alternatives_document(compared, wording, __version__),
    )


def _settings(request: Request, folder: str, _listener: Listener) -> Answer:
    """Return what the files of a run say, and where each of it stands, for a form."""
    configs = request.of_role("config", takes_model=True)
    run = read_settings(configs, load_pack(), all_needed=False)[0] if configs else None
    known = {} if run is None else run.known_settings()
    places = {} if run is None else {name: f"{place.file}:{place.line}" for name, place in run.places.items()}
    data = {
        "framework": None if run is None else run.framework,
        "model_file": request.model_path(),
        "settings": {name: {"value": value, "place": places.get(name)} for name, value in known.items()},
    }
    return Answer(kind="settings", folder=folder, data=encode(data))


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


def _snapshot(request: Request, folder: str, _listener: Listener) -> Answer:
    found = snapshot([given.top for given in request.inputs])
    return Answer(
        kind="snapshot",
        folder=folder,
        report=lambda wording: convert_snapshot(found, wording, __version__),
        document=lambda wording: snapshot_document(found, wording, __version__, is_page=True),
        names_people=True,
    )


def _answer_specs(request: Request, folder: str, _listener: Listener) -> Answer:
    lines = answer_lines(line.encode("utf-8", "surrogatepass") for line in request.lines)
    return Answer(kind="answer_specs", folder=folder, data=b"[" + ",".join(lines).encode() + b"]")


KINDS: dict[str, Callable[[Request, str, Listener], Answer]] = {
    "diagnose": _diagnose,
    "estimate": _estimate,
    "sweep": _sweep,
    "cards": _cards,
    "formats": _formats,
    "settings": _settings,
    "plan": _plan,
    "check": _check,
    "snapshot": _snapshot,
    "answer_specs": _answer_specs,
}
