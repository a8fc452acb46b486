"""Which request failed: the row of rules/requests that matches the failure, what it grows with, and the settings in force."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.event import Event
from oomdoctor.case.incident import Incident
from oomdoctor.case.request import FailingRequest, QuantityGrowth, SettingInForce
from oomdoctor.case.settings import RunConfig, RunSettings
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.findings.derived import other_processes
from oomdoctor.findings.request_product import is_product
from oomdoctor.findings.surroundings import FailureText
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FrameworkCore
from oomdoctor.knowledge.records.request import ANY, OPERATIONS, QUANTITIES, REQUESTS, RequestCore, RequestRecord, SignCore, SignPattern

_TORCH = "torch"
_NAMING = ("training.framework", "log.framework", "incident.inference", "incident.program")
_STRONG, _WEAK = 2, 1
"""What was computed, stated or plain evidence identifies a request; nearby text or a condition shows only that it may be one."""

_FRAMES_TELL = Text(
    "the frames above the message: they name the line that requested the memory",
    "报错上方的调用栈：它会指出是哪一行申请的内存",
)
_RECORDED = "oomdoctor run --level 1 -- COMMAND"
"""What identifies that line if the log does not contain the frames."""


class _Shown(Struct, frozen=True, order=True):
    """How well a failure matches a row; of several matches, the greatest counts."""

    strength: int
    is_special: bool = True
    """Whether the operation is a specific one: every pass through a model has intermediate results."""
    nearness: int = 0
    """How close the programs of the row are to the running one."""
    depth: int = 0
    """The line of the traceback that shows it: later lines are farther inside."""
    parts: int = 0
    has_phase: bool = False


def failing_request(pack: Pack, known: KnownFacts, incident: Incident, text: FailureText, run: RunConfig | None) -> FailingRequest:
    """Return the request that failed; without an operation if nothing shows which it was."""
    root = incident.root
    programs = _programs(known.facts, text, pack.frameworks)
    record = _row(pack, known, incident, text, programs)
    plain = FailingRequest(
        program=next(iter(programs), None),
        size=root.size("requested_bytes"),
        free=root.size("free_bytes"),
        total=root.size("total_bytes"),
        limit=root.size("limit_bytes"),
        held_by_others=other_processes(root),
        missing=_missing(root),
    )
    if record is None:
        return replace(plain, settled_by=_FRAMES_TELL, command=_RECORDED) if ANY in programs and not incident.traceback else plain
    return _told(plain, record, programs, pack, known.facts, run)


def _row(pack: Pack, known: KnownFacts, incident: Incident, text: FailureText, programs: Mapping[str, int]) -> RequestRecord | None:
    """Return the row that best matches the failure; of equal ones, the first."""
    best: tuple[_Shown, RequestCore] | None = None
    answers = known.facts.get("incident.inference") is not None
    for core in pack.requests:
        nearness = max((programs.get(name, 0) for name in core.programs), default=0)
        phase = incident.phase
        if (
            not nearness
            or (core.trains and answers)
            or core.memory not in (None, incident.root.resource)
            or (core.phases and phase is not None and phase not in core.phases)
        ):
            continue
        for sign in core.signs:
            shown = _shown(sign, known, incident, text)
            if shown is None:
                continue
            shown = replace(shown, is_special=not core.general, nearness=nearness, has_phase=phase in core.phases)
            if best is None or shown > best[0]:
                best = shown, core
    return None if best is None else pack.record(REQUESTS, best[1].id)


def _shown(sign: SignCore, known: KnownFacts, incident: Incident, text: FailureText) -> _Shown | None:
    """Return how well a failure matches a sign; None if part of it does not hold."""
    depth = 0
    if sign.computes is not None and sign.computes != incident.computes:
        return None
    if sign.message is not None and not _stands_in(sign.message, text.message):
        return None
    if sign.frame is not None and (depth := _line_with(sign.frame, text.frames)) == 0:
        return None
    if sign.near is not None and not _line_with(sign.near, text.near):
        return None
    if sign.shape and not is_product(sign.shape, incident.root.size("requested_bytes"), known.facts):
        return None
    if sign.when is not None and not evaluate(sign.when, known).truth:
        return None
    strong = (sign.message, sign.frame, sign.computes, sign.shape or None)
    parts = sum(part is not None for part in (*strong, sign.near, sign.when))
    return _Shown(_STRONG if any(part is not None for part in strong) else _WEAK, depth=depth, parts=parts)


def _stands_in(sign: SignPattern, text: str) -> bool:
    return (not sign.needs or any(need in text for need in sign.needs)) and re.search(sign.pattern, text, re.MULTILINE) is not None


def _line_with(sign: SignPattern, lines: Sequence[str]) -> int:
    """Return the 1-based number of the last line matching a pattern; 0 if there is none."""
    return next((number for number in range(len(lines), 0, -1) if _stands_in(sign, lines[number - 1])), 0)


def _programs(facts: Mapping[str, Fact], text: FailureText, frameworks: Sequence[FrameworkCore]) -> dict[str, int]:
    """Return the programs of a run, with how close each is to the failure: greater is closer."""
    named = [str(facts[name]) for name in _NAMING if facts.get(name)]
    records = {record.framework: record for record in frameworks}
    running = [name for name in named if name in records]
    below = [other for name in running for other in records[name].falls_back_to]
    layers = [name for name, record in records.items() if record.layer and any(_is_set(facts.get(fact)) for fact in record.layer.facts)]
    lines = [line.replace("\\", "/") for line in text.frames if ".py" in line]
    framed = [name for name, record in records.items() if _has_frames(record, lines)]
    # A server inside a trainer is configured by the trainer's keys.
    training = [name for name in (*running, *framed) if (marks := records[name].in_logs) is not None and marks.purpose == "training"]
    out: dict[str, int] = {}
    for nearness, names in ((5, training), (4, running), (3, [*framed, *named]), (2, [*layers, *below])):
        for name in names:
            out.setdefault(name, nearness)
    if _TORCH in str(facts.get("incident.program")) or any(_TORCH in line.lower() for line in (text.message, *text.frames)):
        out.setdefault(ANY, 1)
    return out


def _has_frames(record: FrameworkCore, lines: Sequence[str]) -> bool:
    """Return whether a traceback runs through the code of a framework, whose package usually has its name."""
    listed = [f"/{folder}/" for folder in record.in_logs.frames] if record.in_logs is not None else []
    signs = (*listed, f"packages/{record.framework.replace('-', '_')}/")
    return any(sign in line for line in lines for sign in signs)


def _is_set(value: Fact) -> bool:
    return value is not None and str(value).lower() not in ("", "none", "false", "no")


def _missing(root: Event) -> int | None:
    requested, free, limit = root.size("requested_bytes"), root.size("free_bytes"), root.size("limit_bytes")
    available = free if free is not None else limit
    return None if requested is None or available is None or requested <= available else requested - available


def _told(
    plain: FailingRequest, record: RequestRecord, programs: Mapping[str, int], pack: Pack, facts: Mapping[str, Fact], run: RunConfig | None
) -> FailingRequest:
    operation = pack.record(OPERATIONS, record.operation)
    growth = [
        QuantityGrowth(quantity=name, title=known.title, power=power)
        for name, power in record.grows_with.items()
        if (known := pack.record(QUANTITIES, name)) is not None
    ]
    return FailingRequest(
        id=record.id,
        operation=record.operation,
        title=None if operation is None else operation.title,
        program=max(
            (name for name in record.programs if name in programs and name != ANY), key=programs.__getitem__, default=plain.program
        ),
        size=plain.size,
        free=plain.free,
        total=plain.total,
        limit=plain.limit,
        held_by_others=plain.held_by_others,
        missing=plain.missing,
        grows_with=tuple(growth),
        in_force=tuple(_in_force(record.grows_with, facts, run)),
        settled_by=None if record.settled_by is None else record.settled_by.says,
        command=None if record.settled_by is None else record.settled_by.command,
    )


def _in_force(names: Mapping[str, float], facts: Mapping[str, Fact], run: RunConfig | None) -> Iterator[SettingInForce]:
    """Yield the values of the settings that a request grows with, as far as config and log state them."""
    known = {} if run is None else run.settings.known()
    for name in names:
        if name in known and run is not None:
            place = run.places.get(name)
            if place is None:
                yield SettingInForce(setting=name, value=known[name])
            else:
                yield SettingInForce(setting=name, value=known[name], key=place.key, file=place.file, line=place.line)
        elif name in RunSettings.__struct_fields__ and isinstance(value := facts.get(f"log.{name}"), (int, float, str)):
            yield SettingInForce(setting=name, value=value)
