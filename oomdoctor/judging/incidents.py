"""Events -> incidents and a verdict: the first failure is the root, and what follows from it is folded below it.

A message is weighed by what is around it. A SIGKILL alone has several possible senders; after a CUDA error it is the launcher
cleaning up, and while a model is loading it is the kernel running out of memory. A cuDNN initialization failure after a failed
device-side assert is its echo. A refusal that the program handled, with progress after it, is pressure and not a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from oomdoctor.case.case import Verdict
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, card_share
from oomdoctor.case.incident import Incident

_DEVICE = frozenset({Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM})
_ECHOES = frozenset({Kind.MASKED_DEVICE_OOM, Kind.SHM_OOM})
"""What may also be the echo of another failure if the message does not name memory itself."""
_FULL = 0.97
_END = ("signal", "exit_code")
_SIGKILL = "SIGKILL"
_STRONG = frozenset({Certainty.CERTAIN, Certainty.LIKELY})
_ORDER = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2, None: 3}
_NO_MEMORY_HAS = 1 << 50
_BEYOND_NUMBERS = "torch-cuda-oom-1eb"
"""Torch prints no figure for a request of an exbibyte or more (c10/cuda/CUDACachingAllocator.cpp, `one_exa_bytes`)."""
_NAMED = frozenset({"device-memory-named-at-the-end", "host-memory-named-at-the-end"})
"""Words for memory that end a log and that no program marks as an error."""
_OPEN_ENDS = {
    "nccl-unhandled-system-error": ("consequence", "nccl-debug"),
    "watched-unseen-end": ("output-unseen", "unseen-output"),
    "watched-node-died": ("end-unseen", "unseen-end"),
    "watched-wrapper-died": ("end-unseen", "unseen-end"),
}
"""Messages that report only that something ended: why the verdict is open, and what settles it."""
_FIGURES = ("requested_bytes", "total_bytes", "free_bytes", "allocated_bytes", "anon_rss_bytes", "total_vm_bytes")


class LaterEvidence(Protocol):
    """Shows whether a run survived an event."""

    def went_on(self, event: Event) -> bool:
        """Return whether the program handled it and kept working."""

    def ended_well(self, event: Event) -> bool:
        """Return whether nothing failed after it, and the log says at its end that all went well."""


def find_incidents(events: Sequence[Event], progress: LaterEvidence) -> tuple[Incident, ...]:
    """Return the failures of one run, the first and most certain one in front.

    `progress` shows, for an event, whether its source shows the run continuing after it.
    """
    return _with_other_error(_memory_incidents(events, progress), events, progress)


def _with_other_error(incidents: tuple[Incident, ...], events: Sequence[Event], progress: LaterEvidence) -> tuple[Incident, ...]:
    """Return the incidents, or the other error that came first if what seemed to be incidents only follows from one."""
    if incidents and not _may_follow(incidents[0]):
        return incidents
    ordered = order_events(events)
    errors = [event for event in ordered if event.kind is Kind.OTHER_ERROR and not progress.went_on(event)]
    raised = [event for event in errors if event.certainty is Certainty.CERTAIN]
    if incidents:
        first = incidents[0].root
        waits = incidents[0].kind is Kind.CONSEQUENCE
        raised = [event for event in raised or errors if waits or ordered.index(event) < _number(ordered, first)]
    else:
        raised = raised[:1] if raised else errors[-1:]
    if not raised:
        return incidents
    root = raised[0]
    after = [event for event in ordered if event is not root and event.kind is not Kind.CONTEXT and event.outcome is Outcome.FAILURE]
    return (
        _make_incident(
            root,
            [event for event in after if event.kind is Kind.OTHER_ERROR],
            [event for event in after if event.kind is not Kind.OTHER_ERROR],
        ),
    )


def _number(ordered: Sequence[Event], event: Event) -> int:
    """Return the position of an event, which may have been reweighed since."""
    return next((number for number, other in enumerate(ordered) if _is_same(other, event)), len(ordered))


def _may_follow(incident: Incident) -> bool:
    """Return whether a failure may be just the way another error ended: a killed process, or a message from the other ranks."""
    if incident.survived or incident.kind is Kind.CONSEQUENCE:
        return True
    root = incident.root
    if incident.kind is Kind.HOST_OOM:
        return incident.certainty is not Certainty.CERTAIN and root.fields.get("ended_by") == _SIGKILL
    return incident.kind is Kind.LOOK_ALIKE and incident.certainty is not Certainty.CERTAIN and _is_ambiguous(root)


def _memory_incidents(events: Sequence[Event], progress: LaterEvidence) -> tuple[Incident, ...]:
    """Return the failures that messages state, the first and most certain one in front; generic program errors are ignored here."""
    ordered = order_events(events)
    ordered = [_reinterpreted(event, ordered[:number]) for number, event in enumerate(ordered)]
    failures = [event for event in ordered if event.is_failure]
    last = max((_position(event) for event in failures if not event.caught), default=("", -1))
    ends = [event for event in ordered if not event.kind.is_memory and event.outcome is Outcome.FAILURE]
    survived = {id(event) for event in _survived(failures, last, progress) if not _ended_something(event, ends)}
    living = [event for event in failures if id(event) not in survived]
    look_alikes = [
        event
        for event in ordered
        if event.kind in (Kind.LOOK_ALIKE, Kind.KERNEL_RESOURCE)
        and not (_is_other_worker(event, living) or (event.caught and progress.went_on(event)))
    ]
    echoes = [event for event in ordered if event.kind is Kind.CONSEQUENCE]
    if echoes and progress.ended_well(echoes[-1]):
        echoes = []
    stops = [event for event in look_alikes if "stopped" in event.fields]
    if stops and _stands_before([event for event in echoes if _concerns_failed_rank(event)], stops, ordered):
        # A launcher that is told to stop after a rank failed, here or on another node, is only cleaning up.
        echoes += stops
        look_alikes = [event for event in look_alikes if event not in stops]
    handled = [event for event in ordered if event.kind.is_memory and (id(event) in survived or not event.is_failure)]

    strong = [event for event in living if event.certainty in _STRONG]
    # A warning after which the program continues is not a failure: it does not explain what failed later.
    warned = [event for event in look_alikes if event.outcome is Outcome.PRESSURE]
    look_alikes = [event for event in look_alikes if event.outcome is not Outcome.PRESSURE]
    firm = [event for event in look_alikes if not _is_ambiguous(event)]
    echoed = [event for event in strong if event.kind in _ECHOES and event.certainty is not Certainty.CERTAIN]
    if firm and len(echoed) == len(strong) and strong and ordered.index(firm[0]) < ordered.index(strong[0]):
        # A library that fails after another failure of the device is its echo.
        return (_make_incident(_find_root(firm), look_alikes, [*living, *echoes]),)
    if strong:
        return _group_memory_incidents(living, strong, look_alikes, echoes, handled)
    rivals = [event for event in look_alikes if not living or event.place.source in {other.place.source for other in living}]
    if firm or (rivals and not _stands_before(living, rivals, ordered)):
        return (_make_incident(_find_root(firm or look_alikes), look_alikes, [*living, *echoes]),)
    if living:
        weighed = [_weigh(event, ordered) for event in living]
        return (_make_incident(_find_root(weighed), weighed, sorted([*echoes, *look_alikes], key=_position)),)
    if warned:
        return (_make_incident(_find_root(warned), warned, echoes),)
    if handled:
        return (replace(_make_incident(handled[0], handled, []), survived=True),)
    if echoes:
        return (_make_incident(echoes[0], echoes, []),)
    return ()


def decide_verdict(ordered: Sequence[Incident]) -> Verdict:
    """Return what the incidents say about memory, in one word."""
    if not ordered:
        return Verdict(memory_failure="no", kind=Kind.NONE, certainty=Certainty.CERTAIN, reason="none")
    first = ordered[0]
    if first.survived:
        reason = "survived" if first.root.is_failure else "pressure"
        return Verdict(memory_failure="no", kind=Kind.NONE, certainty=Certainty.LIKELY, survived=True, reason=reason)
    if first.kind is Kind.CONSEQUENCE:
        reason, check = _OPEN_ENDS.get(first.root.signature, ("consequence", "first-rank-log"))
        return Verdict(memory_failure="possible", kind=first.kind, certainty=Certainty.POSSIBLE, reason=reason, settle=check)
    if first.kind is Kind.OTHER_ERROR:
        return Verdict(memory_failure="no", kind=Kind.NONE, certainty=first.certainty, reason="other-error")
    if not first.kind.is_memory:
        return Verdict(memory_failure="no", kind=first.kind, certainty=first.certainty, reason=first.kind.value)
    if first.certainty is Certainty.POSSIBLE:
        return Verdict(
            memory_failure="possible",
            kind=first.kind,
            certainty=first.certainty,
            reason="unknown-memory-error" if first.root.signature in _NAMED else first.kind.value,
            settle="unknown-error" if first.root.signature in _NAMED else _settling_check(first.root),
        )
    kill_check = (
        "sigkill" if first.kind is Kind.HOST_OOM and first.certainty is Certainty.LIKELY and not _count_figures(first.root) else None
    )
    return Verdict(memory_failure="yes", kind=first.kind, certainty=first.certainty, reason=first.kind.value, settle=kill_check)


def order_events(events: Iterable[Event]) -> list[Event]:
    """Return the events of all sources in the order in which they happened.

    They are sorted by time if every failure has a full timestamp in the same format, otherwise by source and line.
    """
    listed = list(events)
    stamps = [event.time for event in listed if event.is_failure]
    sources = {event.place.source for event in listed}
    if len(sources) > 1 and stamps and all(stamp is not None and stamp[:2] == "20" and len(stamp) >= 19 for stamp in stamps):
        place = {id(event): number for number, event in enumerate(listed)}
        last = ""
        keys: dict[int, tuple[str, int]] = {}
        for event in listed:
            last = event.time.replace("T", " ") if event.time and event.time[:2] == "20" else last
            keys[id(event)] = (last, place[id(event)])
        listed.sort(key=lambda event: keys[id(event)])
    return listed


def _group_memory_incidents(
    living: list[Event], strong: list[Event], look_alikes: list[Event], echoes: list[Event], handled: list[Event]
) -> tuple[Incident, ...]:
    groups: dict[str, list[Event]] = {}
    root_group = _group(strong[0])
    explicit = {_group(event) for event in strong if event.certainty is Certainty.CERTAIN}
    consequences = list(echoes)
    for event in living:
        group = _group(event)
        if event.certainty is not Certainty.CERTAIN and group not in explicit and group != root_group and event not in strong[:1]:
            # A kill or an unclear library error alongside an explicit failure of another memory followed from that failure.
            consequences.append(event)
            continue
        groups.setdefault(group, []).append(event)
    firsts = sorted(groups.values(), key=lambda members: (_best_certainty(members), living.index(members[0])))
    out = []
    for number, members in enumerate(firsts):
        following = consequences + look_alikes if number == 0 else []
        also = [event for event in handled if event.is_failure and _group(event) == _group(members[0])]
        out.append(_make_incident(_find_root(members), [*members, *also], sorted(following, key=_position)))
    return tuple(out)


def _reinterpreted(event: Event, before: Sequence[Event]) -> Event:
    """Return an event as interpreted from its own text and what precedes it.

    A request beyond any existing amount of memory is a size read from garbage or a wrong shape, not a shortage. A worker that its
    supervisor terminated for exceeding its own timeout did not run out of memory, whatever the supervisor guesses. An allocator that cannot
    work on this machine serves nothing, however small the request.
    """
    if not event.is_failure:
        return event
    beyond = "requested_bytes" not in event.fields and event.signature == _BEYOND_NUMBERS
    garbage = beyond or (event.size("requested_bytes") or 0) >= _NO_MEMORY_HAS
    overdue = "pid" in event.fields and any(other.fields.get("overdue_pid") == event.fields["pid"] for other in before)
    unusable = event.kind is Kind.HOST_OOM and any("allocator_unusable" in other.fields for other in before)
    return replace(event, kind=Kind.LOOK_ALIKE) if garbage or overdue or unusable else event


def as_counted(events: Sequence[Event]) -> list[Event]:
    """Return the events as they read if the kernel is known to have killed nothing: whoever died of SIGKILL was terminated by somebody."""
    if not any(event.fields.get("kernel_kills") == 0 for event in events):
        return list(events)
    return [_ended_by_somebody(event) for event in events]


def _ended_by_somebody(event: Event) -> Event:
    if event.kind is not Kind.HOST_OOM or event.fields.get("ended_by") != _SIGKILL:
        return event
    return replace(event, kind=Kind.LOOK_ALIKE, certainty=Certainty.CERTAIN)


def _is_ambiguous(event: Event) -> bool:
    """Return whether another failure is ambiguous, or only reports how a process ended: neither accounts for an earlier request."""
    return event.certainty is Certainty.POSSIBLE or any(name in event.fields for name in _END)


def _is_other_worker(event: Event, failures: Sequence[Event]) -> bool:
    """Return whether a timeout belongs to a worker other than the one that was killed."""
    pids = {failure.fields["pid"] for failure in failures if "pid" in failure.fields}
    return bool(pids) and "overdue_pid" in event.fields and event.fields["overdue_pid"] not in pids


def _concerns_failed_rank(event: Event) -> bool:
    """Return whether a consequence concerns a rank that failed rather than one its launcher is shutting down."""
    return "signal" not in event.fields or "exit_code" in event.fields


def _stands_before(some: Sequence[Event], others: Sequence[Event], ordered: Sequence[Event]) -> bool:
    """Return whether the first of `some` comes before the first of `others`."""
    return bool(some) and ordered.index(some[0]) < ordered.index(others[0])


def _make_incident(root: Event, members: Sequence[Event], consequences: Sequence[Event]) -> Incident:
    named = [root, *(event for event in members if event is not root and not _is_same(event, root))]
    ranks = sorted({event.rank for event in named if event.rank is not None})
    gpus = sorted({gpu for event in named if isinstance(gpu := event.fields.get("gpu_index"), int)})
    return Incident(
        root=root,
        kind=root.kind,
        certainty=root.certainty or Certainty.POSSIBLE,
        repeats=tuple(event for event in members if not _is_same(event, root)),
        count=sum(event.signature == root.signature for event in members) or 1,
        consequences=tuple(consequences),
        phase=root.phase or next((event.phase for event in members if event.phase), None),
        computes=root.computes or next((event.computes for event in members if event.computes), None),
        ranks=tuple(ranks),
        gpus=tuple(gpus),
    )


def _find_root(members: Sequence[Event]) -> Event:
    """Return the root among the messages of one failure: the first, unless a nearby one says the same with figures."""
    best = min(members, key=lambda event: _ORDER[event.certainty])
    first = next(event for event in members if event.certainty is best.certainty)
    if _count_figures(first):
        return first
    near = [event for event in members if event.certainty is first.certainty and event.rank in (first.rank, None)]
    telling = next((event for event in near if _count_figures(event) and event.place.source == first.place.source), None)
    if telling is not None and abs(telling.place.offset - first.place.offset) < 1 << 16:
        return telling
    return first


def _count_figures(event: Event) -> int:
    return sum(name in event.fields for name in _FIGURES)


def _survived(failures: Sequence[Event], last: tuple[str, int], progress: LaterEvidence) -> Iterator[Event]:
    """Yield the failures that the program handled. If the run survived the last of a kind, it survived the earlier ones in that log too."""
    outlived: set[tuple[str, str]] = set()
    ended: set[str] = set()
    for event in reversed(failures):
        source, alike = event.place.source, (event.place.source, event.signature)
        if source in ended or alike in outlived:
            yield event
        elif _is_survived(event, last, progress):
            outlived |= {alike} if event.caught else set()
            ended |= {source} if progress.ended_well(event) else set()
            yield event


def _is_survived(event: Event, last: tuple[str, int], progress: LaterEvidence) -> bool:
    """Return whether the program handled it: progress follows, and no failure (`last`: the last unhandled one) it could have caused."""
    if not event.caught and ("exception" in event.fields or event.frame is not None):
        return last <= _position(event) and progress.ended_well(event)
    if last > _position(event):
        return False
    # A killed process is gone, whatever else ends well.
    return progress.went_on(event) or (event.caught and event.kind is not Kind.HOST_OOM and progress.ended_well(event))


def _ended_something(event: Event, ends: Sequence[Event]) -> bool:
    """Return whether a kill ended something, even if progress follows it.

    Slurm reports kills when a step is over; and when the kernel kills one process, the others may not know, and keep working until
    they wait for it.
    """
    if event.kind is not Kind.HOST_OOM or event.certainty is not Certainty.CERTAIN:
        return False
    return "step" in event.fields or ("anon_rss_bytes" in event.fields and any(_stands_behind(end, event) for end in ends))


def _stands_behind(end: Event, event: Event) -> bool:
    return end.place.source != event.place.source or end.place.offset > event.place.offset


def _weigh(event: Event, events: Sequence[Event]) -> Event:
    """Weigh an ambiguous message: what is near it can make it more likely."""
    if event.kind is Kind.HOST_OOM:
        used = [value for other in events if isinstance(value := other.fields.get("host_used_percent"), (int, float, str))]
        full = any(_as_number(value) >= 80 for value in used)
        if event.fields.get("ended_by") == _SIGKILL or event.phase == "model-load" or full:
            # Nothing else that was read explains it, or it would not be weighed.
            return replace(event, certainty=Certainty.LIKELY)
    if event.kind is Kind.MASKED_DEVICE_OOM and any(map(_suggests_memory_failure, events)):
        return replace(event, certainty=Certainty.LIKELY)
    return event


def _suggests_memory_failure(event: Event) -> bool:
    """Return whether it is a warning about memory, or shows a GPU that is full."""
    return (event.kind.is_memory and not event.is_failure) or (card_share(event) or 0) >= _FULL


def _as_number(value: int | float | str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


def _settling_check(event: Event) -> str:
    if event.kind is Kind.HOST_OOM:
        return "sigkill"
    if event.kind is Kind.MASKED_DEVICE_OOM:
        return "nccl-debug" if "nccl" in event.signature or "c10d" in event.signature else "library-not-initialized"
    return "generic"


def _group(event: Event) -> str:
    return "device" if event.kind in _DEVICE else event.kind.value


def _best_certainty(members: Sequence[Event]) -> int:
    return min(_ORDER[event.certainty] for event in members)


def _position(event: Event) -> tuple[str, int]:
    return event.place.source, event.place.offset


def _is_same(first: Event, second: Event) -> bool:
    return first.place == second.place and first.signature == second.signature
