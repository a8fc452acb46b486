"""The natural path: inputs -> windows -> events -> incidents -> case -> findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.fixes import with_advice
from oomdoctor.case.case import Case, Verdict
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Certainty, Event, Kind, Value
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.findings.derived import derived
from oomdoctor.findings.engine import findings
from oomdoctor.findings.facts import facts, log_facts
from oomdoctor.findings.failure_step import failure_step
from oomdoctor.findings.ledger import ledger
from oomdoctor.findings.tensor_match import request_reading
from oomdoctor.findings.workload import inference_facts
from oomdoctor.incidents import incidents, verdict
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.progress import went_on
from oomdoctor.parse.reading import Early, LogReader, Progress, SourceEvents
from oomdoctor.parse.recogniser import Recogniser

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.machine.match_log import MachineSource
    from oomdoctor.planning.expected_vs_observed import ExpectedVsObserved
    from oomdoctor.planning.serving_expected_vs_observed import ServerExpectedVsObserved

_PROGRESS_STEPS = 2
_SAMPLES = 24
_ON_THE_CARD = (Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM)
_SERVERS = ("vllm", "sglang")
_MODEL = ("training.model", "log.model_name_or_path", "log.all_params")
"""Facts that can tell which model it is."""


class _MachineBeside(Struct, frozen=True):
    """The machine beside the log."""

    environment: Environment | None = None
    note: Text | None = None
    stands_in: Mapping[str, Value] = {}
    """What the machine says where the log is silent."""
    facts: Mapping[str, Fact] = {}
    gaps: tuple[Gap, ...] = ()


def diagnose_logs(
    names: Sequence[str | MissingSource],
    pack: Pack,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    early: Early | None = None,
    text: bytes | None = None,
    config: Sequence[str] = (),
    machine: MachineSource | None = None,
    version: Callable[[str], str] | None = None,
) -> Diagnosis:
    """The diagnosis of one run from its logs (`names`), or from `text` at hand, which then has the name `names[0]`.

    `config` are paths of the run's config files; those beside them that they name are read too. `machine` is where the run
    may have run. `version` says from where a config file is read: itself, or a copy of what it was.
    """
    reading = LogReader(pack, jobs=jobs, progress=progress, early=early)
    missing = [Gap(what=one.name, why=one.reason) for one in names if isinstance(one, MissingSource)]
    present = [one for one in names if isinstance(one, str)]
    reads = [reading.read_one(present[0], text)] if text is not None else reading.read(present)
    return _diagnosis(reads, missing, pack, reading.recogniser, config, machine, version)


def _diagnosis(
    reads: list[SourceEvents],
    missing: list[Gap],
    pack: Pack,
    recogniser: Recogniser,
    config: Sequence[str],
    machine: MachineSource | None,
    version: Callable[[str], str] | None,
) -> Diagnosis:
    by_source = {read.source.name: read for read in reads}
    events = [event for read in reads for event in read.events]

    def progressed(event: Event) -> bool:
        read = by_source[event.place.source]
        before = read.before.get(event.place.offset)
        own = event.place.offset + len(event.text) - (read.source.size - len(read.last))
        return before is not None and went_on(before, read.last[max(0, own) :], _PROGRESS_STEPS)

    log = log_facts(events)
    around = _around(machine, events, log)
    log = {**around.stands_in, **log}
    settings, unread = _training(config, version, events, log, pack)
    values = {**log, **(settings.facts() if settings is not None else {})}
    found = tuple(_with_figures(one, events, values) for one in incidents(events, progressed))
    decided = verdict(found)
    if not any(read.source.size for read in reads):
        decided = replace(decided, reason="nothing-read")
    elif not found:
        decided, log = _by_its_end(decided, log, reads)
    server = _server(found, settings, log, values)
    expected = _circle(found, settings, log, values) if server is None else None
    named = {**around.facts, **facts(found, decided, values)}
    named.update(failure_step(_step(found, by_source), named))
    named.update(expected.facts() if expected is not None else {})
    programs = {one.id: one.program for one in recogniser.signatures.values()}
    purposes = {one.id: one.purpose for one in recogniser.signatures.values() if one.purpose is not None}
    named.update(inference_facts(found, events, programs, purposes, values))
    if found:
        named["incident.program"] = programs[found[0].root.signature]
    known = KnownFacts(named, _samples(events), programs, tuple(one.root for one in found[:1]))
    judged = with_advice(findings(pack, known), pack, known, settings)
    for circle in (expected, server):
        judged = circle.weighed(judged, pack) if circle is not None else judged
    case = Case(
        sources=tuple(read.source for read in reads),
        events=tuple(events),
        incidents=found,
        verdict=decided,
        facts=log,
        training=settings,
        environment=around.environment,
        environment_note=around.note,
        estimate=expected.expected if expected is not None else None,
        served=server.found if server is not None else None,
        unread=sum(read.unread for read in reads),
        gaps=(*missing, *unread, *around.gaps, *(gap for read in reads for gap in read.gaps)),
    )
    return Diagnosis(case=case, findings=_run_first(judged, pack) if around.facts else judged)


def _circle(
    found: Sequence[Incident], settings: RunConfig | None, log: Mapping[str, Value], named: Mapping[str, Fact]
) -> ExpectedVsObserved | None:
    """What the run should have taken, where a card's memory failed and something tells the model."""
    if not found or found[0].kind not in _ON_THE_CARD or not any(name in named for name in _MODEL):
        return None
    from oomdoctor.planning.expected_vs_observed import expected_vs_observed  # noqa: PLC0415 - most logs do not tell the model

    return expected_vs_observed(settings, log, found[0])


def _server(
    found: Sequence[Incident], settings: RunConfig | None, log: Mapping[str, Value], named: Mapping[str, Fact]
) -> ServerExpectedVsObserved | None:
    """What a server should have made of its card, where its memory failed and something tells the model."""
    serving = log.get("log.framework") in _SERVERS or (settings is not None and settings.settings.method == "serve")
    if not found or not serving or found[0].kind not in _ON_THE_CARD or not any(name in named for name in _MODEL):
        return None
    from oomdoctor.planning.serving_expected_vs_observed import server_expected_vs_observed  # noqa: PLC0415 - as above

    return server_expected_vs_observed(settings, log, found[0])


def _around(machine: MachineSource | None, events: Sequence[Event], log: Mapping[str, Value]) -> _MachineBeside:
    """The machine that was named, or this one where it agrees with the log; nothing where nobody asks for one."""
    if machine is None:
        return _MachineBeside()
    from oomdoctor.machine.match_log import lasting_facts, log_traces, match_log, missing_log_facts  # noqa: PLC0415 - only where somebody asks for one

    found = match_log(machine, log_traces(events, log))
    if found.environment is None:
        return _MachineBeside(note=found.note)
    gaps = tuple(found.environment.gaps) if machine.name else ()
    return _MachineBeside(found.environment, found.note, missing_log_facts(found.environment), dict(lasting_facts(found.environment)), gaps)


def _run_first(found: Sequence[Finding], pack: Pack) -> tuple[Finding, ...]:
    """What happened in the run goes before what is wrong with its machine; what is only worth knowing of a machine is left out."""
    machine = {one.id for one in found if one.id in pack.names("problems") and "/environment/" in pack.path("problems", one.id)}
    about = [one for one in found if one.id in machine and one.severity != "note" and not one.unknowns]
    return (*(one for one in found if one.id not in machine), *about)


def _by_its_end(decided: Verdict, log: dict[str, Value], reads: Sequence[SourceEvents]) -> tuple[Verdict, dict[str, Value]]:
    """The verdict where no message is known: a log that ends with an error is not called fine."""
    from oomdoctor.parse.ending import log_ending  # noqa: PLC0415 - only where no message was found

    found = next((one for read in reads if (one := log_ending(read.last)) is not None), None)
    if found is None:
        return decided, log
    log = {**log, "log.last_error": found.text}
    if not found.speaks_of_memory:
        return replace(decided, certainty=Certainty.LIKELY, reason="other-error"), log
    kind = Kind.DEVICE_OOM if found.on_the_device else Kind.HOST_OOM
    possible = Verdict(
        memory_failure="possible", kind=kind, certainty=Certainty.POSSIBLE, reason="unknown-memory-error", settle="unknown-error"
    )
    return possible, log


def _training(
    config: Sequence[str], version: Callable[[str], str] | None, events: Sequence[Event], log: Mapping[str, Value], pack: Pack
) -> tuple[RunConfig | None, list[Gap]]:
    """The settings of the run from its config files and its log, and which files could not be read."""
    if not config and not any(event.kind is Kind.CONTEXT for event in events):
        return None, []
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415 - many logs show no setting

    if not config:
        return resolve_config((), events, log, pack), []
    from oomdoctor.configs.files import read_files  # noqa: PLC0415 - the readers are for those who give files

    sheets, gaps = read_files(config, version)
    return resolve_config(sheets, events, log, pack), gaps


def _samples(events: Sequence[Event]) -> list[Event]:
    """The first events of each signature: what rules look at, however often a message was repeated."""
    seen: dict[str, int] = {}
    out: list[Event] = []
    for event in events:
        seen[event.signature] = seen.get(event.signature, 0) + 1
        if seen[event.signature] <= _SAMPLES:
            out.append(event)
    return out


def _with_figures(incident: Incident, events: Sequence[Event], settings: Mapping[str, Fact]) -> Incident:
    figures = {**derived(incident.root), **request_reading(incident.root, settings)}
    return replace(incident, derived=figures, ledger=ledger(incident.root, events))


def _step(found: Sequence[Incident], by_source: Mapping[str, SourceEvents]) -> int | None:
    """The last step that progress showed before the first failure, or before another of the same log."""
    if not found:
        return None
    place = found[0].root.place
    steps = by_source[place.source].steps
    return steps.get(place.offset, max(steps.values(), default=None))
