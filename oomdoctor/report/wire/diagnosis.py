"""Convert a diagnosis to `oomdoctor/report/v1`; the form is its own, so that the inside stays free to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from msgspec import UNSET, UnsetType, to_builtins
from msgspec.structs import asdict, replace

from oomdoctor.case.case import Case, RunLine, Source, Verdict
from oomdoctor.case.diagnosis import Cite, Diagnosis, Evidence, Finding, Fix, NotThis, OpenCause, OpenPhase
from oomdoctor.case.event import Event, Value
from oomdoctor.case.expected import AtFailure, Expected, Told
from oomdoctor.case.incident import Incident, LedgerEntry
from oomdoctor.case.plan import Fit, Fits
from oomdoctor.case.settings import RunConfig, Scalar, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.headline import plain, settle_text, summary
from oomdoctor.report.diagnosis.typed_lines import typed_spans
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wire.bugs import convert_bug
from oomdoctor.report.wire.estimate import convert_estimate
from oomdoctor.report.wire.estimate_v1 import AtFailureV1, EstimateV1, ExpectedV1
from oomdoctor.report.wire.plan import convert_plans
from oomdoctor.report.wire.report_v1 import (
    FOLLOWED_LIMIT,
    RUNS_LIMIT,
    SERIES_LIMIT,
    CiteV1,
    ConfigSettingV1,
    EventV1,
    EvidenceV1,
    FailurePhaseV1,
    FieldValue,
    FindingV1,
    FixV1,
    IncidentV1,
    LedgerEntryV1,
    MeasuredSavingV1,
    NotThisV1,
    OpenCauseV1,
    OpenPhaseV1,
    ReportV1,
    RunConfigV1,
    RunV1,
    SignV1,
    SourceV1,
    ToldV1,
    VerdictV1,
)
from oomdoctor.report.wire.request_v1 import convert_request
from oomdoctor.report.wire.runs.measured_parts import convert_measured
from oomdoctor.report.wire.runs.recorded_series import convert_series
from oomdoctor.report.wire.server_ledger import LEDGERS_LIMIT, convert_ledger
from oomdoctor.report.wire.serving import convert_served
from oomdoctor.report.wire.settings_v1 import config_issue, gap, proposed_setting
from oomdoctor.report.wording.wording import Wording

_EVENTS = 1000
"""Where there are more, the first and the last half of so many: runs begin with their settings and end with their failure."""
_TEXT = 4000
_ISSUES = 50
_FITS = {"yes": True, "no": False}


def convert_diagnosis(diagnosis: Diagnosis, wording: Wording, version: str) -> ReportV1:
    """Convert a diagnosis, with its texts in one language."""
    case = diagnosis.case
    return ReportV1(
        schema="oomdoctor/report/v1",
        oomdoctor=version,
        verdict=_verdict(case.verdict, diagnosis, wording),
        incidents=tuple(_incident(incident) for incident in case.incidents),
        events=tuple(_event(event) for event in _ends(case.events)),
        events_more=max(0, len(case.events) - _EVENTS),
        unread=case.unread,
        sources=tuple(_source(source) for source in case.sources),
        environment=_environment(case, wording),
        training=_training(case, wording),
        estimate=_estimate(case, wording),
        findings=tuple(convert_finding(finding, wording) for finding in diagnosis.findings),
        open_cause=_open_cause(diagnosis.open_cause, wording),
        conclusions=tuple(_plain(text, wording) for text in diagnosis.conclusions),
        open_phase=_open_phase(diagnosis.open_phase, wording),
        gaps=tuple(gap(missing) for missing in case.gaps),
        told=None if case.told is None else _told(case.told, wording),
        series=tuple(convert_series(series) for series in case.series[:SERIES_LIMIT]),
        measured=None if case.measured is None else convert_measured(case.measured, wording),
        request=None if diagnosis.request is None else convert_request(diagnosis.request, wording),
        server_memory=tuple(convert_ledger(ledger) for ledger in case.ledgers[:LEDGERS_LIMIT]),
        bugs=tuple(convert_bug(bug, wording) for bug in diagnosis.bugs),
        runs=tuple(_run(line, wording) for line in case.runs[:RUNS_LIMIT]),
        runs_more=max(0, len(case.runs) - RUNS_LIMIT),
    )


def _told(told: Told, wording: Wording) -> ToldV1:
    plans = told.plans
    return ToldV1(
        text=clean_line(told.text, 400),
        model=None if told.model is None else clean_line(told.model, 200),
        card=None if told.card is None else clean_line(told.card, 200),
        plan=None if plans is None else convert_plans(plans, plans.now.assumptions, wording),
    )


def _run(line: RunLine, wording: Wording) -> RunV1:
    return RunV1(
        name=clean_line(line.name, 400),
        sources=tuple(clean_line(source, 1000) for source in line.sources[:FOLLOWED_LIMIT]),
        memory_failure=line.verdict.memory_failure,
        kind=line.verdict.kind,
        certainty=line.verdict.certainty,
        survived=line.verdict.survived,
        reason=clean_line(line.verdict.reason, 80),
        signature=None if line.incident is None else line.incident.root.signature,
        error=None if line.error is None else clean_line(line.error, 400),
        title=plain(line.title, wording),
        first_file=None if line.incident is None else clean_line(line.incident.root.place.source, 1000),
        first_rank=line.rank,
        group=line.group,
    )


def _ends(events: Sequence[Event]) -> Sequence[Event]:
    return events if len(events) <= _EVENTS else [*events[: _EVENTS // 2], *events[-_EVENTS // 2 :]]


def _verdict(verdict: Verdict, diagnosis: Diagnosis, wording: Wording) -> VerdictV1:
    check = settle_text(diagnosis.case, wording)
    return VerdictV1(
        memory_failure=verdict.memory_failure,
        kind=verdict.kind,
        certainty=verdict.certainty,
        survived=verdict.survived,
        reason=clean_line(verdict.reason, 80),
        settle=None if check is None else check.replace("`", ""),
        summary=summary(diagnosis, wording),
    )


def _incident(incident: Incident) -> IncidentV1:
    return IncidentV1(
        kind=incident.kind,
        certainty=incident.certainty,
        survived=incident.survived,
        phase=incident.phase,
        ranks=incident.ranks,
        gpus=incident.gpus,
        count=incident.count,
        root=_event(incident.root),
        derived=_fields(incident.derived),
        ledger=tuple(_ledger_entry(entry) for entry in incident.ledger),
        consequences=tuple(_event(event) for event in incident.consequences[:FOLLOWED_LIMIT]),
        consequences_more=max(0, len(incident.consequences) - FOLLOWED_LIMIT),
        repeats=tuple(_event(event) for event in incident.repeats[:FOLLOWED_LIMIT]),
        repeats_more=max(0, len(incident.repeats) - FOLLOWED_LIMIT),
    )


def _event(event: Event) -> EventV1:
    fields = _fields(event.fields)
    if event.rank is not None:
        fields.setdefault("rank", event.rank)
    return EventV1(
        signature=event.signature,
        kind=event.kind,
        certainty=event.certainty,
        outcome=event.outcome,
        source=clean_line(event.place.source, 1000),
        line=event.place.line,
        offset=event.place.offset,
        lines_from_end=event.place.from_end,
        rank=event.rank,
        time=None if event.time is None else clean_line(event.time, 80),
        text=clean(event.text, _TEXT),
        phase=event.phase,
        frame=None if event.frame is None else clean_line(event.frame, 400),
        fields=fields,
    )


def _ledger_entry(entry: LedgerEntry) -> LedgerEntryV1:
    return LedgerEntryV1(what=clean_line(entry.what, 200), bytes=entry.bytes, of=clean_line(entry.of, 80), source=entry.source)


def _source(source: Source) -> SourceV1:
    return SourceV1(name=clean_line(source.name, 1000), size=source.size, complete=source.complete)


def _environment(case: Case, wording: Wording) -> dict[str, object]:
    note: dict[str, object] = {} if case.environment_note is None else {"note": clean_line(wording.say(case.environment_note), 400)}
    return note if case.environment is None else {**note, **_cleaned(to_builtins(case.environment))}


def _cleaned(value: Mapping[str, object]) -> dict[str, object]:
    return {clean_line(name, 80): _clean_value(item) for name, item in value.items()}


def _clean_value(value: object) -> object:
    if isinstance(value, dict):
        return _cleaned(value)
    if isinstance(value, (list, tuple)):
        return [_clean_value(item) for item in value]
    return clean_line(value, 400) if isinstance(value, str) else value


def _estimate(case: Case, wording: Wording) -> ExpectedV1 | None:
    """Return what the run should have taken, and beside it what was seen."""
    if case.served is not None:
        return _with_seen(
            convert_served(case.served.expected, wording),
            fits=case.served.served.starts,
            settings_known=True,
            at_failure=None,
            seen_bytes=dict(case.served.seen),
            tokens=None if case.served.seen_tokens is None else (case.served.seen_tokens, case.served.expected.full_tokens),
            card_is_known=case.served.total_is_known,
        )
    return None if case.estimate is None else _expected(case.estimate, wording)


def _expected(expected: Expected, wording: Wording) -> ExpectedV1:
    needed = expected.estimate
    fit = None if expected.budget is None or expected.fits is None else Fit(budget=expected.budget, needed=needed, fits=expected.fits)
    return _with_seen(
        convert_estimate(replace(needed, assumptions=expected.assumptions), wording, fit),
        fits=expected.fits,
        settings_known=expected.is_told,
        at_failure=None if expected.at is None else _at_failure(expected.at),
    )


def _at_failure(at: AtFailure) -> AtFailureV1:
    return AtFailureV1(phase=at.phase, expected_bytes=at.expected, low_bytes=at.low, high_bytes=at.high, seen_bytes=at.seen)


def _with_seen(
    estimate: EstimateV1,
    *,
    fits: Fits | None,
    settings_known: bool,
    at_failure: AtFailureV1 | None,
    seen_bytes: dict[str, int] | UnsetType = UNSET,
    tokens: tuple[int, int] | None = None,
    card_is_known: bool | UnsetType = UNSET,
) -> ExpectedV1:
    return ExpectedV1(
        **asdict(estimate),
        fits=fits,
        settings_known=settings_known,
        at_failure=at_failure,
        seen_bytes=seen_bytes,
        seen_tokens=UNSET if tokens is None else tokens[0],
        expected_tokens=UNSET if tokens is None else tokens[1],
        card_is_known=card_is_known,
    )


def _training(case: Case, wording: Wording) -> dict[str, RunConfigV1 | FieldValue]:
    training: dict[str, RunConfigV1 | FieldValue] = {**_fields({name.removeprefix("log."): value for name, value in case.facts.items()})}
    if case.training is not None:
        training["config"] = _config(case.training, wording)
    return training


def _config(training: RunConfig, wording: Wording) -> RunConfigV1:
    return RunConfigV1(
        framework=training.framework,
        version=None if training.version is None else clean_line(training.version, 80),
        settings={name: _config_setting(value, training.places.get(name)) for name, value in training.known_settings().items()},
        complaints=tuple(config_issue(issue, wording) for issue in training.issues[:_ISSUES]),
        complaints_more=max(0, len(training.issues) - _ISSUES),
    )


def _config_setting(value: Scalar, place: WrittenSetting | None) -> ConfigSettingV1:
    """Convert a setting; one that was worked out from others stands nowhere."""
    if place is None:
        return ConfigSettingV1(value=_scalar(value), key=None, file=None, line=None)
    return ConfigSettingV1(value=_scalar(value), key=clean_line(place.key, 400), file=clean_line(place.file, 1000), line=place.line)


def convert_finding(finding: Finding, wording: Wording) -> FindingV1:
    """Convert a finding."""
    return FindingV1(
        id=finding.id,
        cause=finding.cause,
        severity=finding.severity,
        confidence=finding.confidence,
        probability=finding.probability,
        signs=tuple(SignV1(id=sign.id, says=_plain(sign.says, wording), weight=round(sign.weight, 2)) for sign in finding.signs),
        title=_plain(finding.title, wording),
        why=_plain(finding.why, wording),
        evidence=tuple(_evidence(evidence) for evidence in finding.evidence),
        unknowns=tuple(_plain(unknown, wording) for unknown in finding.unknowns),
        fixes=tuple(_fix(fix, wording) for fix in finding.fixes),
        already=tuple(proposed_setting(setting, wording) for setting in finding.already),
        not_this=tuple(_not_this(advice, wording) for advice in finding.not_this),
        cites=tuple(_cite(cite, wording) for cite in finding.cites),
    )


def _open_cause(open_cause: OpenCause | None, wording: Wording) -> OpenCauseV1 | None:
    if open_cause is None:
        return None
    return OpenCauseV1(findings=open_cause.findings, settled_by=_plain(open_cause.settled_by, wording), command=open_cause.command)


def _open_phase(open_phase: OpenPhase | None, wording: Wording) -> OpenPhaseV1 | None:
    if open_phase is None:
        return None
    phases = [
        FailurePhaseV1(id=phase.id, says=_plain(phase.says, wording), fixes=tuple(_fix(fix, wording) for fix in phase.fixes))
        for phase in open_phase.phases
    ]
    return OpenPhaseV1(phases=tuple(phases), settled_by=_plain(open_phase.settled_by, wording))


def _evidence(evidence: Evidence) -> EvidenceV1:
    place = evidence.place
    return EvidenceV1(
        source=clean_line(place.source, 1000),
        line=place.line,
        offset=place.offset,
        lines_from_end=place.from_end,
        text=clean(evidence.text, _TEXT),
    )


def _fix(fix: Fix, wording: Wording) -> FixV1:
    saving = fix.frees_measured
    return FixV1(
        id=fix.id,
        title=_plain(fix.title, wording),
        how=_plain(fix.how, wording),
        settings=tuple(proposed_setting(setting, wording) for setting in fix.settings),
        command=None if fix.command is None else clean(fix.command, _TEXT),
        frees=plain(fix.frees, wording),
        frees_terms=fix.terms,
        frees_bytes=fix.frees_bytes,
        fits=_FITS.get(fix.fits or ""),
        fits_word=fix.fits,
        costs=plain(fix.costs, wording),
        harm=fix.harm,
        needs=tuple(_plain(need, wording) for need in fix.needs),
        safety=fix.safety,
        cites=fix.cites,
        frees_measured=None if saving is None else MeasuredSavingV1(bytes=saving.bytes, of_bytes=saving.of, by=saving.by),
        typed=tuple(clean("".join(span.text for span in typed_spans((line,), wording)), _TEXT) for line in fix.typed),
    )


def _not_this(advice: NotThis, wording: Wording) -> NotThisV1:
    return NotThisV1(advice=_plain(advice.advice, wording), why=_plain(advice.why, wording), cites=advice.cites)


def _cite(cite: Cite, wording: Wording) -> CiteV1:
    return CiteV1(
        source=cite.source,
        title=clean_line(cite.title, 400),
        url=cite.url,
        says=_plain(cite.says, wording),
        verdict=cite.verdict,
        correction=plain(cite.correction, wording),
    )


def _fields(values: Mapping[str, Value | None]) -> dict[str, FieldValue]:
    return {clean_line(name, 200): _value(value) for name, value in values.items()}


def _value(value: Value | None) -> FieldValue:
    if isinstance(value, (tuple, list)):
        return [_fields(item) if isinstance(item, Mapping) else item for item in value]
    return _scalar(value)


def _scalar(value: Scalar) -> Scalar:
    """Convert a value of a message or a setting; NaN and infinity, which JSON lacks, are unknown."""
    if isinstance(value, str):
        return clean(value, _TEXT)
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(text: Text, wording: Wording) -> str:
    return clean_line(wording.say(text), 2000)
