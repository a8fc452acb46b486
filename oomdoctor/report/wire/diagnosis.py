"""The report as JSON, `oomdoctor/report/v1`: a form of its own, so that the inside stays free to change.

Additions are allowed, renames are not; `schema/report-v1.json` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.case import Case, Source
from oomdoctor.case.diagnosis import Cite, Diagnosis, Evidence, Finding, Fix, NotThis
from oomdoctor.case.event import Event, Place
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident, LedgerEntry
from oomdoctor.case.settings import ConfigIssue, ProposedSetting, RunConfig, WrittenSetting
from oomdoctor.report.diagnosis.headline import plain, settle_text, summary
from oomdoctor.report.safety.redact import redact_values
from oomdoctor.report.safety.sanitize import clean, clean_line

SCHEMA = "oomdoctor/report/v1"
_EVENTS = 1000
"""Where there are more, the first and the last half of so many: runs begin with their settings and end with their failure."""
_FOLLOWED = 50
_REPEATS = 50
_TEXT = 4000
_COMPLAINTS = 50


def to_json(diagnosis: Diagnosis, *, version: str, redact: bool, lang: str = "en") -> dict[str, object]:
    """The diagnosis as plain dicts and lists, ready for a JSON encoder."""
    case = diagnosis.case
    report: dict[str, object] = {
        "schema": SCHEMA,
        "oomdoctor": version,
        "verdict": _verdict(diagnosis, lang),
        "incidents": [_incident(one) for one in case.incidents],
        "events": [_event(one) for one in _ends(case.events)],
        "events_more": max(0, len(case.events) - _EVENTS),
        "unread": case.unread,
        "sources": [_source(one) for one in case.sources],
        "environment": _environment(case, lang),
        "training": _training(case, lang),
        "estimate": _expected(case, lang),
        "findings": [_finding(one, lang) for one in diagnosis.findings],
        "gaps": [_gap(one) for one in case.gaps],
    }
    return redact_values(report) if redact else report


def _ends(events: Sequence[Event]) -> Sequence[Event]:
    return events if len(events) <= _EVENTS else [*events[: _EVENTS // 2], *events[-_EVENTS // 2 :]]


def _verdict(diagnosis: Diagnosis, lang: str) -> dict[str, object]:
    verdict = diagnosis.case.verdict
    settle = settle_text(diagnosis.case, lang)
    return {
        "memory_failure": verdict.memory_failure,
        "kind": verdict.kind.value,
        "certainty": verdict.certainty.value,
        "survived": verdict.survived,
        "reason": clean_line(verdict.reason, 80),
        "settle": None if settle is None else settle.replace("`", ""),
        "summary": summary(diagnosis, lang),
    }


def _incident(incident: Incident) -> dict[str, object]:
    return {
        "kind": incident.kind.value,
        "certainty": incident.certainty.value,
        "survived": incident.survived,
        "phase": incident.phase,
        "ranks": list(incident.ranks),
        "gpus": list(incident.gpus),
        "count": incident.count,
        "root": _event(incident.root),
        "derived": _mapping(incident.derived),
        "ledger": [_part(one) for one in incident.ledger],
        "consequences": [_event(one) for one in incident.consequences[:_FOLLOWED]],
        "consequences_more": max(0, len(incident.consequences) - _FOLLOWED),
        "repeats": [_event(one) for one in incident.repeats[:_REPEATS]],
        "repeats_more": max(0, len(incident.repeats) - _REPEATS),
    }


def _event(event: Event) -> dict[str, object]:
    fields = _mapping(event.fields)
    if event.rank is not None:
        fields.setdefault("rank", event.rank)
    return {
        "signature": event.signature,
        "kind": event.kind.value,
        "certainty": event.certainty.value if event.certainty else None,
        "outcome": event.outcome.value,
        **_place(event.place),
        "rank": event.rank,
        "time": None if event.time is None else clean_line(event.time, 80),
        "text": clean(event.text, _TEXT),
        "phase": event.phase,
        "frame": None if event.frame is None else clean_line(event.frame, 400),
        "fields": fields,
    }


def _place(place: Place) -> dict[str, object]:
    return {"source": clean_line(place.source, 1000), "line": place.line, "offset": place.offset, "lines_from_end": place.from_end}


def _part(part: LedgerEntry) -> dict[str, object]:
    return {"what": clean_line(part.what, 200), "bytes": part.bytes, "of": clean_line(part.of, 80), "source": part.source}


def _source(source: Source) -> dict[str, object]:
    return {"name": clean_line(source.name, 1000), "size": source.size, "complete": source.complete}


def _environment(case: Case, lang: str) -> dict[str, object]:
    """The machine, as `oomdoctor env --format json` writes it, and under `note` whether and why it is used."""
    note = {} if case.environment_note is None else {"note": clean_line(case.environment_note.get(lang), 400)}
    if case.environment is None:
        return dict(note)
    from msgspec import to_builtins  # noqa: PLC0415 - most reports know no machine

    return {**note, **_cleaned(to_builtins(case.environment))}


def _cleaned(value: dict[str, object]) -> dict[str, object]:
    return {clean_line(name, 80): _clean_value(one) for name, one in value.items()}


def _clean_value(value: object) -> object:
    if isinstance(value, dict):
        return _cleaned(value)
    if isinstance(value, (list, tuple)):
        return [_clean_value(one) for one in value]
    return clean_line(value, 400) if isinstance(value, str) else value


def _expected(case: Case, lang: str) -> dict[str, object] | None:
    """What the run should have taken, as `oomdoctor estimate --format json` writes it, and beside it what was seen."""
    own = case.estimate
    if case.served is not None:
        from oomdoctor.report.wire.serving import beside_printed  # noqa: PLC0415 - only for servers

        return beside_printed(case.served, lang)
    if own is None:
        return None
    from oomdoctor.case.plan import Fit  # noqa: PLC0415 - only where the model is known
    from oomdoctor.report.wire.estimate import to_json as estimate_json  # noqa: PLC0415 - as above

    budget, at = own.budget, own.at
    judged = None if budget is None or own.fits is None else Fit(budget=budget, needed=own.estimate, fits=own.fits)
    return {
        **estimate_json(replace(own.estimate, assumptions=own.assumptions), lang, judged),
        "fits": own.fits,
        "settings_known": own.is_told,
        "at_failure": None
        if at is None
        else {"phase": at.phase, "expected_bytes": at.expected, "low_bytes": at.low, "high_bytes": at.high, "seen_bytes": at.seen},
    }


def _training(case: Case, lang: str) -> dict[str, object]:
    shown = _mapping({name.removeprefix("log."): value for name, value in case.facts.items()})
    return shown if case.training is None else {**shown, "config": _config(case.training, lang)}


def _config(training: RunConfig, lang: str) -> dict[str, object]:
    """The settings in the words that all frameworks share, each with its place, and what of them does not take effect."""
    return {
        "framework": training.framework,
        "version": None if training.version is None else clean_line(training.version, 80),
        "settings": {
            name: {"value": _value(value), **_given(training.places.get(name))} for name, value in training.known_settings().items()
        },
        "complaints": [config_issue(one, lang) for one in training.complaints[:_COMPLAINTS]],
        "complaints_more": max(0, len(training.complaints) - _COMPLAINTS),
    }


def _given(given: WrittenSetting | None) -> dict[str, object]:
    """Where a setting stands; one that was worked out from others stands nowhere."""
    if given is None:
        return {"key": None, "file": None, "line": None}
    return {"key": clean_line(given.key, 400), "file": clean_line(given.file, 1000), "line": given.line}


def config_issue(one: ConfigIssue, lang: str) -> dict[str, object]:
    """A complaint about a config."""
    return {
        "id": one.id,
        "severity": one.severity,
        "key": clean_line(one.key, 400),
        "file": clean_line(one.file, 1000),
        "line": one.line,
        "what": plain(one.what, lang),
        "why": plain(one.why, lang),
        "instead": None if one.instead is None else clean_line(one.instead, 400),
        "cites": list(one.cites),
    }


def _finding(finding: Finding, lang: str) -> dict[str, object]:
    return {
        "id": finding.id,
        "cause": finding.cause,
        "severity": finding.severity,
        "confidence": finding.confidence.value,
        "title": plain(finding.title, lang),
        "why": plain(finding.why, lang),
        "evidence": [_evidence(one) for one in finding.evidence],
        "unknowns": [plain(one, lang) for one in finding.unknowns],
        "fixes": [_fix(one, lang) for one in finding.fixes],
        "already": [_setting(one, lang) for one in finding.already],
        "not_this": [_not_this(one, lang) for one in finding.not_this],
        "cites": [_cite(one, lang) for one in finding.cites],
    }


def _evidence(evidence: Evidence) -> dict[str, object]:
    return {**_place(evidence.place), "text": clean(evidence.text, _TEXT)}


def _fix(fix: Fix, lang: str) -> dict[str, object]:
    return {
        "id": fix.id,
        "title": plain(fix.title, lang),
        "how": plain(fix.how, lang),
        "settings": [_setting(one, lang) for one in fix.settings],
        "command": None if fix.command is None else clean(fix.command, _TEXT),
        "frees": plain(fix.frees, lang),
        "frees_terms": list(fix.terms),
        "frees_bytes": fix.frees_bytes,
        "fits": {"yes": True, "no": False}.get(fix.fits or ""),
        "fits_word": fix.fits,
        "costs": plain(fix.costs, lang),
        "harm": fix.harm,
        "needs": [plain(one, lang) for one in fix.needs],
        "safety": fix.safety,
        "cites": list(fix.cites),
    }


def _setting(setting: ProposedSetting, lang: str) -> dict[str, object]:
    return {
        "framework": setting.framework,
        "file": setting.file,
        "line": setting.line,
        "key": setting.key,
        "from": None if setting.before is None else clean_line(setting.before, 400),
        "to": clean_line(setting.to, 400),
        "note": plain(setting.note, lang),
    }


def _not_this(one: NotThis, lang: str) -> dict[str, object]:
    return {"advice": plain(one.advice, lang), "why": plain(one.why, lang), "cites": list(one.cites)}


def _cite(cite: Cite, lang: str) -> dict[str, object]:
    return {
        "source": cite.source,
        "title": clean_line(cite.title, 400),
        "url": cite.url,
        "says": plain(cite.says, lang),
        "verdict": cite.verdict,
        "correction": plain(cite.correction, lang),
    }


def _gap(gap: Gap) -> dict[str, object]:
    how = None if gap.how is None else clean_line(gap.how, 400)
    return {"what": clean_line(gap.what, 400), "why": clean_line(gap.why, 400), "how": how}


def _mapping(values: Mapping[str, object]) -> dict[str, object]:
    return {clean_line(str(name), 200): _value(value) for name, value in values.items()}


def _value(value: object) -> object:
    """A field of a message as JSON has it; NaN and infinity, which JSON lacks, are unknown."""
    if isinstance(value, str):
        return clean(value, _TEXT)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, Sequence):
        return [_value(item) for item in value]
    return value
