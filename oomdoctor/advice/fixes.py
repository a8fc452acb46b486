"""The fixes of one finding for one run: those that change something, with their values, most useful first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.frameworks import framework, rows_for_run
from oomdoctor.advice.request_step import FittedValue, fitted_values, rows_that_change
from oomdoctor.advice.savings import freed, missing
from oomdoctor.advice.settings import SettingChange, config_of, first_number, setting_changes, was_tried
from oomdoctor.advice.typed import typed_lines
from oomdoctor.case.diagnosis import Finding, Fix, MeasuredSaving, NotThis
from oomdoctor.case.event import Certainty
from oomdoctor.case.request import FailingRequest
from oomdoctor.case.settings import ProposedSetting, RunConfig
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.findings.template import fill_template
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.fix import FixRecord, FreesRecord, NotThisRecord, SettingRecord
from oomdoctor.knowledge.records.problem import CAUSES, ProblemRecord
from oomdoctor.knowledge.records.request import ANY, OPERATIONS, REQUESTS
from oomdoctor.versions import within

_HARM = {"none": 0.0, "slower": 1.0, "effort": 1.0, "quality": 2.0, "hardware": 4.0}
"""How many places a fix moves back in the order of its finding because of its cost: small compared with the order itself, which reflects
what is known about the cause, and large enough that the gentler of two neighbors comes first."""
_NOT_ENOUGH = 6.0
"""The same for a fix that would free less than the shortfall."""
_FAR_TOO_LITTLE = 12.0
_SEVERAL = 2
_WEIGHT_BYTES = 2
"""Per 16-bit parameter, the starting point of quantization."""
_UNKNOWN_NEED = 1.0
_NO_KEY = 3.5
"""The same if the detected framework has no setting for it, so that code must be written."""
_AT_HAND = 1.5
"""How many places a fix moves forward if its setting is in an available file: the run has the mechanism, and one value changes."""
_BEFORE_KNOBS = 2
"""How many fixes for something in the way come before those that make the request smaller."""
_OTHERS, _HELD_BY_OTHERS = "other-process-on-gpu", "derived.other_processes_bytes"
_A_PART = 0.1
"""Of the GPU: a desktop uses less."""
_AFTER_LOADING = frozenset(("activations", "logits", "gradients", "optimizer states", "evaluation", "kv cache"))
"""What does not exist yet while a model to be trained is being loaded onto the GPU: making it smaller frees nothing there."""
_OF_MODELS = _AFTER_LOADING | {"weights"}
_WITHOUT_MODELS = ("tables", "scenes", "code")


class Advice(Struct, frozen=True):
    """What to do about a finding, what is done already, and what would not help."""

    fixes: tuple[Fix, ...]
    already: tuple[ProposedSetting, ...]
    not_this: tuple[NotThis, ...]


class KnownRequest(Struct, frozen=True):
    """The request that failed, and the fixes that change it."""

    request: FailingRequest
    knobs: Sequence[str]
    is_alone: bool = False
    """Whether nothing else grows with the same settings."""
    is_of_any_program: bool = False
    """Whether the only evidence for it is PyTorch."""


class _RankedFix(Struct, frozen=True):
    fix: Fix
    behind: float


def with_advice(
    findings: Sequence[Finding],
    pack: Pack,
    known: KnownFacts,
    training: RunConfig | None = None,
    request: FailingRequest | None = None,
) -> tuple[Finding, ...]:
    """Add to each finding its fixes, what is done already, and what would not help.

    If the request that failed is known, what changes it comes first in the first finding.
    """
    record = None if request is None or request.id is None else pack.record(REQUESTS, request.id)
    useless = () if record is None else record.does_not_help
    first = None
    if request is not None and record is not None:
        first = KnownRequest(request, record.knobs, _is_alone(pack, record.operation), ANY in record.programs)
    ahead = _against_others(findings, pack) if _others_use_enough(known.facts) else ()
    return tuple(
        _advised(finding, pack, known, training, first if number == 0 else None, useless, ahead if number == 0 else ())
        for number, finding in enumerate(findings)
    )


def _others_use_enough(facts: Mapping[str, Fact]) -> bool:
    """Return whether the message shows other processes using enough memory to cover the shortfall; ranks of one job use equal amounts."""
    held, share, lacking = first_number(facts, (_HELD_BY_OTHERS,)), first_number(facts, ("derived.other_share",)), missing(facts)
    if held is None or share is None or lacking is None or facts.get("derived.equal_neighbours"):
        return False
    return share >= _A_PART and held >= lacking


def _against_others(findings: Sequence[Finding], pack: Pack) -> Sequence[str]:
    """Return the first fixes of the finding that other processes are using GPU memory."""
    problems = (pack.problem(finding.id) for finding in findings if finding.cause == _OTHERS)
    return next((problem.fixes[:_BEFORE_KNOBS] for problem in problems if problem is not None), ())


def unique_fixes(findings: Sequence[Finding]) -> list[Fix]:
    """Return the fixes of all findings, without duplicates, in order of first appearance."""
    fixes: dict[str, Fix] = {}
    for finding in findings:
        for fix in finding.fixes:
            fixes.setdefault(fix.id, fix)
    return list(fixes.values())


def _has_keys(known: KnownFacts, pack: Pack) -> bool:
    """Return whether the running framework has a config or options, rather than being a library configured in code."""
    running = framework(known, pack.frameworks)
    return running is not None and not any(record.in_code for record in pack.frameworks if record.framework == running)


def _advised(
    finding: Finding,
    pack: Pack,
    known: KnownFacts,
    training: RunConfig | None,
    request: KnownRequest | None,
    useless: Collection[str],
    ahead: Sequence[str],
) -> Finding:
    problem = pack.problem(finding.id)
    if problem is None:
        return finding
    # A likely finding knows more about the run than what all programs with such a frame have in common.
    is_told = finding.confidence is not Certainty.POSSIBLE and request is not None and request.is_of_any_program
    before = len(problem.fixes) if is_told else _BEFORE_KNOBS if _is_in_the_way(pack, problem) else 0
    names = list(dict.fromkeys([*ahead, *_in_order(problem, request, before)]))
    advised = advice(pack, problem, known, training, names, request, useless)
    return replace(finding, fixes=advised.fixes, already=advised.already, not_this=advised.not_this)


def _is_alone(pack: Pack, name: str) -> bool:
    operation = pack.record(OPERATIONS, name)
    return operation is not None and operation.alone


def _in_order(problem: ProblemRecord, request: KnownRequest | None, before: int) -> list[str]:
    """Return the fixes that change the request after the first `before` fixes of a problem."""
    knobs = () if request is None else request.knobs
    return list(dict.fromkeys([*problem.fixes[:before], *knobs, *problem.fixes]))


def _is_in_the_way(pack: Pack, problem: ProblemRecord) -> bool:
    """Return whether a problem is something else on the GPU or a configured limit, which comes before what the request grows with."""
    cause = None if problem.cause is None else pack.record(CAUSES, problem.cause)
    return cause is not None and cause.in_the_way


def advice(
    pack: Pack,
    problem: ProblemRecord,
    known: KnownFacts,
    training: RunConfig | None,
    names: Sequence[str] | None = None,
    request: KnownRequest | None = None,
    useless: Collection[str] = (),
) -> Advice:
    """Return the advice for one problem that holds; `names` are the fixes to consider, if they are not those of the problem.

    Those that are `useless` for the request that failed are not proposed.
    """
    config = config_of(training)
    ranked, already = [], []
    for place, name in enumerate(problem.fixes if names is None else names):
        fix = pack.fix(name)
        if (
            fix is None
            or _comes_later(fix, known.facts)
            or _affects_only_models(fix, known.facts)
            or (needs := _open_needs(fix, known)) is None
        ):
            continue
        rows = rows_of(pack, fix, known, training)
        values: Mapping[str, FittedValue] = {}
        if request is not None and name in request.knobs:
            rows = rows_that_change(rows, request.request)
            values = fitted_values(rows, request.request, known.facts, is_alone=request.is_alone)
        if not rows and _is_for_other_programs(pack, fix, known):
            continue
        changes = setting_changes(rows, known.facts, config, {setting: fitted.value for setting, fitted in values.items()})
        counting = [change for change in changes if change.counts]
        if counting and all(change.in_force for change in counting):
            already += [change.setting for change in counting]
        elif name not in useless and not (counting and all(was_tried(change, training) for change in counting)):
            shrunk = None if request is None or name not in request.knobs else request.request
            ranked.append(_ranked(pack, fix, changes, needs, known, place, values, shrunk))
    ranked.sort(key=lambda entry: entry.behind)
    not_this = tuple(_not_this(pack.wrong_advice(problem.id), known))
    return Advice(tuple(_without_repeats(entry.fix for entry in ranked)), tuple(dict.fromkeys(already)), not_this)


def _is_for_other_programs(pack: Pack, fix: FixRecord, known: KnownFacts) -> bool:
    """Return whether a fix consists only of keys of specific programs, and none of them can be the one that is running.

    A server has what it has keys for. If the program is unknown and there is no sign of Python, the keys of trainers do not
    apply.
    """
    records = {record.framework: record for record in pack.frameworks}
    if fix.command or not any(row.framework in records and records[row.framework].in_logs is not None for row in fix.settings):
        return False
    running = framework(known, pack.frameworks)
    if running is None:
        shrinks_the_input = fix.harm == "quality" and fix.frees is not None and fix.frees.terms == ["activations"]
        return known.facts.get("incident.in_python") is False and not shrinks_the_input and not typed_lines(pack, fix, known)
    record = records.get(running)
    marks = None if record is None else record.in_logs
    is_server = marks is not None and marks.purpose == "inference" and not records[running].in_code
    is_about_the_model = fix.frees is not None and "weights" in fix.frees.terms
    return is_server and not is_about_the_model and not typed_lines(pack, fix, known)


def _without_repeats(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """Yield the fixes of a finding without settings already written by an earlier one; a fix that consists only of these adds nothing."""
    written: set[tuple[str, str]] = set()
    for fix in fixes:
        new = tuple(setting for setting in fix.settings if (setting.framework, setting.key) not in written)
        if new or not fix.settings:
            written |= {(setting.framework, setting.key) for setting in new}
            yield fix if len(new) == len(fix.settings) else replace(fix, settings=new)


def _comes_later(fix: FixRecord, facts: Mapping[str, Fact]) -> bool:
    """Return whether a fix only frees memory that is allocated after the point of failure."""
    phase = facts.get("incident.phase")
    loading = phase == "model-load" or (phase is None and facts.get("incident.computes") == "weight-placement")
    if not loading or facts.get("incident.inference") is not None or fix.frees is None:
        return False
    return bool(fix.frees.terms) and _AFTER_LOADING.issuperset(fix.frees.terms)


def _affects_only_models(fix: FixRecord, facts: Mapping[str, Fact]) -> bool:
    """Return whether a fix only frees what models have, in a program that has none: a renderer, a table, a compiler."""
    if facts.get("incident.works_on") not in _WITHOUT_MODELS or fix.frees is None:
        return False
    return bool(fix.frees.terms) and _OF_MODELS.issuperset(fix.frees.terms)


def _leaves_weights_alone(fix: FixRecord, facts: Mapping[str, Fact]) -> bool:
    """Return whether a model needs several times the available memory, and a fix frees only what comes on top of its weights, or less."""
    times = first_number(facts, ("derived.wanted_times",))
    if times is None or times < _SEVERAL:
        return False
    if fix.harm == "hardware":
        return False
    if fix.frees is None or "weights" not in fix.frees.terms or "other processes" in fix.frees.terms:
        return True
    left = _WEIGHT_BYTES - fix.frees.per_parameter
    return 0 < left < _WEIGHT_BYTES and times > _WEIGHT_BYTES / left


def _way(fix: FixRecord, known: KnownFacts) -> tuple[Text, str | None]:
    """Return how to apply a fix on the machine of the run, and its command there."""
    other = next((other for other in fix.elsewhere if evaluate(other.when, known).truth), None)
    return (fix.how, fix.command) if other is None else (other.how, other.command)


def rows_of(
    pack: Pack, fix: FixRecord, known: KnownFacts, training: RunConfig | None, *, takes_newest: bool = False
) -> list[SettingRecord]:
    """Return the rows of a fix that this run can use, in its version; if that is unknown, those of any version.

    With `takes_newest`, an unknown version is taken to be the newest.
    """
    places = training.places if training is not None else {}
    written = {name: place.framework for name, place in places.items()}
    rows: list[SettingRecord] = []
    for row in fix.settings:
        is_known = within(_version(row.framework, known.facts, training), row.since, row.until)
        if is_known is None and takes_newest:
            is_known = row.until is None
        if is_known is None:
            rows.append(row)
        elif is_known:
            rows.append(replace(row, since=None, until=None))
    return rows_for_run(rows, known, written, pack.frameworks)


def _open_needs(fix: FixRecord, known: KnownFacts) -> tuple[Text, ...] | None:
    """Return the requirements that are unknown; None if one is not met."""
    answers = [(evaluate(need.when, known).truth, need.says) for need in fix.needs]
    if any(truth is False for truth, _ in answers):
        return None
    return tuple(says for truth, says in answers if truth is None)


def _ranked(
    pack: Pack,
    fix: FixRecord,
    changes: Sequence[SettingChange],
    needs: tuple[Text, ...],
    known: KnownFacts,
    place: int,
    values: Mapping[str, FittedValue],
    shrunk: FailingRequest | None,
) -> _RankedFix:
    facts = known.facts
    settings = tuple(change.setting for change in changes if not change.in_force)
    frees = fix.frees
    fitted = [value.frees for value in values.values() if value.frees is not None]
    size = sum(fitted) if fitted else None if frees is None else freed(frees, facts)
    lacking = missing(facts) if shrunk is None else shrunk.missing
    behind = place + _HARM[fix.harm] + _UNKNOWN_NEED * bool(needs)
    if size is not None and lacking is not None and size < lacking:
        behind += _NOT_ENOUGH
    if _leaves_weights_alone(fix, facts):
        behind += _FAR_TOO_LITTLE
    if any(not row.example for row in fix.settings) and not settings and _has_keys(known, pack):
        behind += _NO_KEY
    if any(setting.file is not None for setting in settings):
        behind -= _AT_HAND
    how, command = _way(fix, known)
    filled = Fix(
        id=fix.id,
        title=fill_template(fix.title, facts),
        how=fill_template(how, facts),
        settings=settings,
        typed=() if settings or command else typed_lines(pack, fix, known),
        command=command,
        frees=None if frees is None else fill_template(frees.says, facts),
        terms=() if frees is None else tuple(frees.terms),
        frees_bytes=size,
        frees_measured=_measured(frees, size),
        costs=None if fix.costs is None else fill_template(fix.costs, facts),
        harm=fix.harm,
        needs=needs,
        safety=fix.safety,
        cites=tuple(fix.cites),
    )
    return _RankedFix(filled, behind)


def _measured(frees: FreesRecord | None, size: int | None) -> MeasuredSaving | None:
    """Return the maximum given by a fact that a message states or implies (`derived.unallocated_bytes`)."""
    if size is None or frees is None or frees.fact is None or not frees.fact.startswith("derived."):
        return None
    return MeasuredSaving(bytes=size, of=size, by="at-most")


def _version(name: str, facts: Mapping[str, Fact], training: RunConfig | None) -> str | None:
    if training is not None and training.version and training.framework == name:
        return training.version
    value = facts.get("log.torch_version" if name in ("environment", "pytorch") else f"log.{name.replace('-', '_')}_version")
    return None if value is None else str(value)


def _not_this(entries: Sequence[NotThisRecord], known: KnownFacts) -> Iterator[NotThis]:
    for entry in entries:
        if entry.when is None or evaluate(entry.when, known).truth:
            yield NotThis(
                advice=fill_template(entry.advice, known.facts), why=fill_template(entry.why, known.facts), cites=tuple(entry.cites)
            )
