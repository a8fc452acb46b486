"""The path from logs to a diagnosis: inputs -> windows -> events -> incidents -> case -> findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.fixes import with_advice
from oomdoctor.advice.known_bugs import bugs_first
from oomdoctor.advice.open_phase import open_phase
from oomdoctor.case.case import Case, LogStart, Verdict
from oomdoctor.case.diagnosis import Diagnosis, Finding
from oomdoctor.case.event import Event, Kind, Place, Value
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.stated import StatedRun
from oomdoctor.case.text import Text
from oomdoctor.comparing.run_lines import diagnose_each, story_of
from oomdoctor.comparing.several_runs import split_by_run
from oomdoctor.findings.bugs import SeenCase, known_bugs
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.findings.derived import derived
from oomdoctor.findings.engine import conclusions, evidence_seen, findings
from oomdoctor.findings.facts import facts, log_facts
from oomdoctor.findings.failing_request import failing_request
from oomdoctor.findings.failure_step import failure_step
from oomdoctor.findings.fitting import fitting
from oomdoctor.findings.host_memory import host_memory
from oomdoctor.findings.ledger import ledger
from oomdoctor.findings.measured import with_measured
from oomdoctor.findings.open_cause import open_cause
from oomdoctor.findings.platform import card, is_in_python, is_native, platform
from oomdoctor.findings.server_ledger import first_card, ledger_of, server_ledgers
from oomdoctor.findings.serving_share import default_share, is_share_of_free, serving_share
from oomdoctor.findings.surroundings import FailureText, failure_text, surroundings
from oomdoctor.findings.tensor_match import request_reading
from oomdoctor.findings.weight_matrix import weight_matrix
from oomdoctor.findings.workload import PICTURES, inference_facts, is_running, makes_pictures, quantised, works_on
from oomdoctor.ingest.clean import clean_lines
from oomdoctor.ingest.sources import MissingSource
from oomdoctor.judging.verdict import decide, verdict_of_a_part, verdict_of_told
from oomdoctor.knowledge.pack import Pack
from oomdoctor.machine.match_log import MachineSource, find_log_traces, lasting_facts, match_log, missing_log_facts
from oomdoctor.parse.observer import ObservedFile, Observer, read_observed
from oomdoctor.parse.options import options_in
from oomdoctor.parse.reading import Early, LogReader, Progress, SourceEvents, around
from oomdoctor.parse.recogniser import Recogniser
from oomdoctor.reading.testimony import find_testimony
from oomdoctor.setups.words.passages import read_passages

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.case.expected import Told
    from oomdoctor.planning.observed.run_expected_vs_observed import RunExpectedVsObserved
    from oomdoctor.planning.observed.server_expected_vs_observed import ServerExpectedVsObserved

_SAMPLES = 24
_WITH_OPTIONS = 4
"""Logs that are searched for options; those of other ranks have the same."""
_OWN_BARS = ("model-load", "data-loading", "evaluation", "generation")
"""Phases whose bars count no training steps, often without a name."""
_ON_THE_CARD = (Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM)
_NO_SETTING = {"runs", "sharded", "vision", "gradients", "answers", "computes", "launch_command"}
"""Fields of context messages that are not settings: what runs, and what it computes."""
_MODEL = ("training.model", "log.model_name_or_path", "log.all_params")
"""Facts that can identify the model."""


class _RunMachine(Struct, frozen=True):
    """The machine of the run, if the user names one or one matches the log."""

    environment: Environment | None = None
    note: Text | None = None
    log_facts: Mapping[str, Value] = {}
    """What the machine provides where the log says nothing, by the log's names."""
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
    beside: Sequence[ObservedFile] = (),
    config: Sequence[str] = (),
    machine: MachineSource | None = None,
    version: Callable[[str], str] | None = None,
    measured: Mapping[str, Fact] | None = None,
    stated: Callable[[Sequence[Event]], Sequence[ObservedFile]] | None = None,
    is_one: bool = False,
) -> Diagnosis:
    """Diagnose one run from its logs (`names`), or from a given `text`, which is then named `names[0]`.

    `beside` are observations of the same run; if there are any, the logs are those of one run. `config` are paths of the run's config
    files; neighboring files that they name are read too. `machine` is where the run may have run. `measured` are facts not stated in any
    text; then, too, the logs are those of one run. `version` returns the path from which a config file is read: its own, or that of a copy
    of its earlier version. `stated` returns further observations, once what the logs show is known. `is_one`: the logs are known to be
    those of one run.
    """
    reading = LogReader(pack, jobs=jobs, progress=progress, early=early)
    missing = [name for name in names if isinstance(name, MissingSource)]
    present = [name for name in names if isinstance(name, str)]
    is_alone = len(present) == 1 and not (beside or stated or measured)
    if text is not None:
        reads = [reading.read_one(present[0], text)]
    else:
        reads = [reading.read_alone(present[0])] if is_alone else reading.read(present)
    reads += [read_observed(part, reading) for part in beside]
    if stated is not None:
        seen = stated([event for read in reads for event in read.events])
        reads += [read_observed(part, reading) for part in seen]
    is_one = is_one or bool(config or beside or stated or measured) or len(reads) < 2
    runs = [reads] if is_one else split_by_run(reads, story_of)
    if len(runs) > 1:
        return diagnose_each(
            runs, missing, lambda run: _diagnosis(run, [], pack, reading.recogniser, config, machine, version), pack.lexicon
        )
    return _diagnosis(reads, missing, pack, reading.recogniser, config, machine, version, measured or {})


def _diagnosis(
    reads: list[SourceEvents],
    missing: list[MissingSource],
    pack: Pack,
    recogniser: Recogniser,
    config: Sequence[str],
    machine: MachineSource | None,
    version: Callable[[str], str] | None,
    measured: Mapping[str, Fact] = MappingProxyType({}),
) -> Diagnosis:
    by_source = {read.source.name: read for read in reads}
    judged = decide([event for read in reads for event in read.events], reads, pack.lexicon)
    events, decided = judged.events, judged.verdict
    log = log_facts(events, pack.frameworks, [read.last for read in reads])
    beside = _run_machine(machine, events, log)
    log = {**beside.log_facts, **log}
    starts = [LogStart(read.source.name, read.first) for read in reads]
    stated = _stated(starts, judged.incidents)
    running = _running(log, judged.incidents, stated, recogniser, pack)
    settings, unread = _settings(config, version, events, log, pack, starts, running)
    settings, log = _with_stated(settings, log, stated, judged.incidents, pack)
    values = {**log, **(settings.facts() if settings is not None else {})}
    log = {**log, **judged.facts}
    ledgers = server_ledgers(events, pack.topics, _programs(recogniser, pack))
    failures = tuple(_with_surroundings(_with_figures(incident, ledgers, values), by_source) for incident in judged.incidents)
    told = _user_description(decided, reads, settings, log, pack) if not failures or decided.reason == "unknown-memory-error" else None
    if told is not None:
        root = _told_event(told, reads[0], pack)
        decided = verdict_of_told(root)
        # If the arithmetic gives an answer, no rule need guess.
        failures = () if told.plans is not None else (Incident(root=root, kind=root.kind, certainty=told.certainty, phase=root.phase),)
        events = [*events, root]
        if told.framework is not None:
            log = {"log.framework": told.framework, **log}
            values = {"log.framework": told.framework, **values}
    absent = tuple(Gap(what=name.name, why=name.reason) for name in missing)
    if any(name.is_log for name in missing) or not all(read.source.complete for read in reads):
        decided = verdict_of_a_part(decided)
    server = _expected_server(failures, ledgers, decided, settings, log, values, pack)
    expected = _expected_run(failures, settings, log, values) if server is None else None
    read_facts = {**beside.facts, **facts(failures, decided, values), **measured}
    last_step = _last_step(failures, by_source)
    all_facts = _all_facts(read_facts, failures, events, ledgers, values, last_step, expected, server, recogniser, pack)
    text = _failure_text(failures, by_source)
    if text is not None:
        all_facts["incident.platform"] = platform(text.near)
        lines = (text.message, *text.frames, *text.near)
        all_facts["incident.card"] = card(lines)
        all_facts["incident.in_python"] = is_in_python(lines)
        all_facts["incident.native"] = is_native(lines)
        if not is_running(all_facts) and makes_pictures(lines, values):
            all_facts.update({"incident.inference": PICTURES, "incident.works_on": "pictures"})
    known = KnownFacts(
        all_facts, _samples(events), _programs(recogniser, pack), tuple(failure.root for failure in failures[:1]), pack.topics
    )
    seen = evidence_seen(pack, known) if failures else {}
    around_request = text if failures and failures[0].kind.is_memory else None
    request = None if around_request is None else failing_request(pack, known, failures[0], around_request, settings)
    explained = findings(pack, known, seen)
    advised = with_advice(explained, pack, known, settings, request)
    for comparison in (expected, server):
        advised = comparison.weigh(advised, pack) if comparison is not None else advised
    if expected is not None:
        advised = _plan_first(advised, expected, settings, log, failures[0], pack)
    case = Case(
        sources=tuple(read.source for read in reads),
        events=tuple(events),
        incidents=failures,
        verdict=decided,
        facts=log,
        options=_printed_options(reads) if failures else {},
        training=settings,
        stated=stated,
        environment=beside.environment,
        environment_note=beside.note,
        estimate=expected.expected if expected is not None else None,
        served=server.served_run if server is not None else None,
        ledgers=ledgers,
        told=told,
        unread=sum(read.unread for read in reads),
        gaps=(*absent, *unread, *beside.gaps, *(gap for read in reads for gap in read.gaps)),
        not_read=(*(name.name for name in missing if name.is_log), *(read.source.name for read in reads if not read.source.complete)),
    )
    packages = {} if beside.environment is None else {name: package.version for name, package in beside.environment.packages.items()}
    bugs = known_bugs(pack.shown_bugs, SeenCase(known, events, failures[0] if failures else None, packages))
    return Diagnosis(
        case=case,
        findings=bugs_first(_run_first(advised, pack) if beside.facts else advised, bugs),
        evidence=tuple(seen),
        conclusions=conclusions(pack, seen, known, is_request_known=request is not None and request.title is not None),
        open_cause=open_cause(explained, pack, known),
        open_phase=None if bugs else open_phase(advised, pack, known, settings),
        request=request,
        bugs=bugs,
    )


def _printed_options(reads: Sequence[SourceEvents]) -> dict[str, str]:
    """Return the options shown at the beginning and end of the first logs."""
    texts = (part for read in reads[:_WITH_OPTIONS] for part in (read.first, read.last if read.source.size > len(read.first) else b""))
    return options_in("\n".join(text.decode("utf-8", "replace") for text in texts))


def _all_facts(
    read: Mapping[str, Fact],
    failures: Sequence[Incident],
    events: Sequence[Event],
    ledgers: Sequence[ServerLedger],
    values: Mapping[str, Fact],
    last_step: int | None,
    expected: RunExpectedVsObserved | None,
    server: ServerExpectedVsObserved | None,
    recogniser: Recogniser,
    pack: Pack,
) -> dict[str, Fact]:
    """Return the facts of a case that rules can query: what was `read`, and what follows from it. Later facts build on earlier ones."""
    known = dict(read)
    kind = failures[0].kind if failures else None
    if kind is Kind.HOST_OOM:
        known.update(host_memory(events, known))
    known.update(failure_step(last_step, known))
    known.update(expected.facts() if expected is not None else {})
    purposes = {signature.id: signature.purpose for signature in recogniser.signatures.values() if signature.purpose is not None}
    known.update(inference_facts(failures, events, _programs(recogniser, pack), purposes, values, pack.frameworks))
    known.update(works_on(known, pack.frameworks))
    known.update(quantised(known, (event.text for event in events if event.kind is Kind.CONTEXT)))
    if kind is Kind.DEVICE_OOM:
        own = server.served_run.expected.server.memory_fraction if server is not None else default_share(known, pack)
        known.update(serving_share(known, own, of_free=is_share_of_free(known, pack)))
        known.update(fitting(failures[0].root, ledgers, known))
    if failures:
        known.update(weight_matrix(failures[0].root, known))
        known["incident.program"] = _programs(recogniser, pack)[failures[0].root.signature]
    return known


def _programs(recogniser: Recogniser, pack: Pack) -> dict[str, str]:
    """Return signature -> the program that prints it, or observes it."""
    printed = {signature.id: signature.program for signature in recogniser.signatures.values()}
    return printed | {name: core.program for name, core in pack.observations.items()}


def _user_description(
    decided: Verdict, reads: Sequence[SourceEvents], settings: RunConfig | None, log: Mapping[str, Value], pack: Pack
) -> Told | None:
    """Return a user's description of a run if the text is short and contains no log failure."""
    read = reads[0] if len(reads) == 1 else None
    if read is None or decided.reason not in ("none", "unknown-memory-error") or not 0 < read.source.size <= len(read.last):
        return None
    text = read.last.decode("utf-8", "replace")
    if find_testimony(text, pack.lexicon, describes_a_run=True) is None:
        return None
    from oomdoctor.planning.told.told_plans import judge_told  # noqa: PLC0415 - most inputs are logs

    return judge_told(text, settings, log, pack)


def _told_event(told: Told, read: SourceEvents, pack: Pack) -> Event:
    """Return what someone says as an event at its line."""
    before = read.last.decode("utf-8", "replace")[: told.start]
    place = Place(read.source.name, len(before.encode("utf-8")), before.count("\n") + 1)
    return replace(Observer(pack).event(told.signature), place=place, text=told.text, says=None, certainty=told.certainty, phase=told.phase)


def _expected_run(
    failures: Sequence[Incident], settings: RunConfig | None, log: Mapping[str, Value], values: Mapping[str, Fact]
) -> RunExpectedVsObserved | None:
    """Return the memory a run should have used, if a GPU's memory failed and the model is identified."""
    if not failures or failures[0].kind not in _ON_THE_CARD or not any(name in values for name in _MODEL):
        return None
    from oomdoctor.planning.observed.run_expected_vs_observed import run_expected_vs_observed  # noqa: PLC0415 - most logs do not tell the model

    return run_expected_vs_observed(settings, log, failures[0])


def _plan_first(
    judged: Sequence[Finding],
    run: RunExpectedVsObserved,
    settings: RunConfig | None,
    log: Mapping[str, Value],
    failure: Incident,
    pack: Pack,
) -> tuple[Finding, ...]:
    """Return the findings with the smallest fitting plan as the first step, if the memory model explains the first finding."""
    if not judged or not run.explains(judged[0]):
        return tuple(judged)
    from oomdoctor.planning.told.smallest_plan import with_smallest_plan  # noqa: PLC0415 - few failures are so well explained

    return with_smallest_plan(judged, run.expected, settings, log, failure, pack)


def _expected_server(
    failures: Sequence[Incident],
    ledgers: Sequence[ServerLedger],
    decided: Verdict,
    settings: RunConfig | None,
    log: Mapping[str, Value],
    values: Mapping[str, Fact],
    pack: Pack,
) -> ServerExpectedVsObserved | None:
    """Return how a server should have used its GPU, if its memory failed or the server printed it, and the model is identified."""
    serving = log.get("log.framework") in pack.names("servers") or (settings is not None and settings.settings.method == "serve")
    failed = bool(failures) and failures[0].kind in _ON_THE_CARD
    started = not failures and bool(ledgers) and decided.memory_failure == "no"
    if not serving or not (failed or started) or not any(name in values for name in _MODEL):
        return None
    printed = ledger_of(failures[0].root, ledgers) if failed else first_card(ledgers)
    from oomdoctor.planning.observed.server_expected_vs_observed import server_expected_vs_observed  # noqa: PLC0415 - as above

    return server_expected_vs_observed(settings, log, failures[0] if failed else None, printed, pack)


def _run_machine(machine: MachineSource | None, events: Sequence[Event], log: Mapping[str, Value]) -> _RunMachine:
    """Return the named machine, or this one if it matches the log; empty if none was requested."""
    if machine is None:
        return _RunMachine()
    match = match_log(machine, find_log_traces(events, log))
    if match.environment is None:
        return _RunMachine(note=match.note)
    gaps = match.environment.gaps if machine.name else ()
    return _RunMachine(match.environment, match.note, missing_log_facts(match.environment), lasting_facts(match.environment), gaps)


def _run_first(judged: Sequence[Finding], pack: Pack) -> tuple[Finding, ...]:
    """Put what happened in the run before problems with its machine, and leave out what is only worth knowing about a machine."""
    problems = pack.names("problems")
    machine = {finding.id for finding in judged if finding.id in problems and "/environment/" in pack.path("problems", finding.id)}
    about = [finding for finding in judged if finding.id in machine and finding.severity != "note" and not finding.unknowns]
    return (*(finding for finding in judged if finding.id not in machine), *about)


def _settings(
    config: Sequence[str],
    version: Callable[[str], str] | None,
    events: Sequence[Event],
    log: Mapping[str, Value],
    pack: Pack,
    starts: Sequence[LogStart],
    running: Sequence[str],
) -> tuple[RunConfig | None, list[Gap]]:
    """Return the settings of the run from its config files and its log, and which files could not be read."""
    printed = any(event.kind is Kind.CONTEXT and event.fields.keys() - _NO_SETTING for event in events)
    if not config and not printed and not (running and any(b"-" in start.data for start in starts)):
        return None, []
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415 - many logs show no setting

    if not config:
        return resolve_config((), events, log, pack, starts, running), []
    from oomdoctor.configs.files import read_files  # noqa: PLC0415 - the readers are for those who give files

    configs, gaps = read_files(config, version)
    return resolve_config(configs, events, log, pack, starts, running), gaps


def _stated(starts: Sequence[LogStart], failures: Sequence[Incident]) -> StatedRun:
    """Return what the text around a failure says about its run; most logs contain nothing written by a person."""
    passages = [(start.name, *read_passages(start.data)) for start in starts[:_WITH_OPTIONS]] if failures else []
    if not any(marked or spoken for _, marked, spoken in passages):
        return StatedRun()
    from oomdoctor.setups.words.stated import read_stated  # noqa: PLC0415 - names of models and cards are for those who say some

    return read_stated(passages)


def _with_stated(
    settings: RunConfig | None, log: dict[str, Value], stated: StatedRun, failures: Sequence[Incident], pack: Pack
) -> tuple[RunConfig | None, dict[str, Value]]:
    """Return settings and log facts, filled in with what is stated where they say nothing."""
    if not (stated.facts or stated.tried):
        return settings, log
    from oomdoctor.setups.words.applied import stated_log_facts, with_stated  # noqa: PLC0415 - as above

    log = {**log, **stated_log_facts(stated, log, failures[0].root.size("total_bytes") if failures else None)}
    program = stated.first("framework")
    if program is not None and "log.framework" not in log and (settings is None or settings.framework is None):
        log["log.framework"] = str(program.value)
    return with_stated(settings, stated, log, pack.names("servers")), log


def _running(
    log: Mapping[str, Value], failures: Sequence[Incident], stated: StatedRun, recogniser: Recogniser, pack: Pack
) -> tuple[str, ...]:
    """Return the programs whose commands show the settings in force: those the log shows or names, and the one that printed the message."""
    known = {record.framework for record in pack.frameworks}
    failed = [_programs(recogniser, pack)[failure.root.signature] for failure in failures[:1]]
    program = stated.first("framework")
    named = [str(log.get("log.framework", program.value if program is not None else None))]
    return tuple(dict.fromkeys(name for name in (*named, *failed) if name in known))


def _samples(events: Sequence[Event]) -> list[Event]:
    """Return the first events of each signature: what rules examine, however often a message was repeated."""
    counts: dict[str, int] = {}
    samples: list[Event] = []
    for event in events:
        counts[event.signature] = counts.get(event.signature, 0) + 1
        if counts[event.signature] <= _SAMPLES:
            samples.append(event)
    return samples


def _with_figures(incident: Incident, ledgers: Sequence[ServerLedger], settings: Mapping[str, Fact]) -> Incident:
    incident = replace(incident, root=with_measured(incident))
    figures = {**derived(incident.root), **request_reading(incident.root, settings)}
    return replace(incident, derived=figures, ledger=ledger(incident.root, ledgers))


def _with_surroundings(incident: Incident, by_source: Mapping[str, SourceEvents]) -> Incident:
    """Return an incident with what precedes it in its log: the frames of its writer, and how many steps had completed."""
    place = incident.root.place
    read = by_source[place.source]
    lines = clean_lines(read.tracebacks.get(place.offset, b""), 0)
    traceback = "\n".join(line.text for line in lines if line.rank in (None, incident.root.rank)).rstrip()
    passed = None if (incident.phase or incident.root.phase) in _OWN_BARS else read.passed.get(place.offset)
    return replace(incident, steps_passed=passed, traceback=traceback)


def _failure_text(failures: Sequence[Incident], by_source: Mapping[str, SourceEvents]) -> FailureText | None:
    """Return the text around the first failure."""
    if not failures:
        return None
    root = failures[0].root
    before, after = (b"", b"") if root.place.is_whole else around(by_source[root.place.source], root.place.offset)
    return failure_text(failures[0], surroundings(before, after, root.rank))


def _last_step(failures: Sequence[Incident], by_source: Mapping[str, SourceEvents]) -> int | None:
    """Return the last step that progress showed before the first failure, or before another in the same log."""
    if not failures:
        return None
    root = failures[0].root
    if (counted := root.size("failed_step")) is not None:
        return counted
    place = root.place
    steps = by_source[place.source].steps
    return steps.get(place.offset, max(steps.values(), default=None))
