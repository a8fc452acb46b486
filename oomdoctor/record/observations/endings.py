"""How a command and its processes ended, and what ran out beside them."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

from oomdoctor.case.event import Event, Value
from oomdoctor.parse.observer import Observer
from oomdoctor.reading.errors import last_error
from oomdoctor.record.evidence import OUTPUT, FileSystem, RunRecord, Sample, WatchedProcess
from oomdoctor.record.read_folder import RunEvidence

_FULL = 0.02
"""A file system of which less than this share was left was full for whoever wrote to it."""
_NEAR = 0.98
"""A control group that came this near to its limit reached it."""
_AT_THE_END = 5.0
"""Seconds of samples that belong to the end; the last of them may come after what died."""
_STALLED = 10.0
"""Percent of ten seconds in which something waited for memory: below, it is page cache that is read again."""
_POLITE = (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM))
_CRASHES = {
    "SIGBUS": "watched-bus-error",
    "SIGABRT": "watched-abort",
    **dict.fromkeys(("SIGSEGV", "SIGILL", "SIGFPE", "SIGXFSZ", "SIGXCPU", "SIGSYS", "SIGTRAP"), "watched-crash"),
}
"""Signals that a process brings upon itself."""
_SHELL, _SIGKILL = 128, 9
"""A shell gives a signal's number above this as the status of what it ended."""
_LIMITS = {
    "address_space_bytes": "address_space_bytes",
    "data_bytes": "data_limit_bytes",
    "locked_bytes": "locked_limit_bytes",
    "file_bytes": "file_limit_bytes",
    "open_files": "open_files_limit",
    "processes": "processes_limit",
}
"""Names of record/limits.py, and the fields of the event."""
_LARGEST = 1 << 60
_SHM = "/dev/shm"  # noqa: S108 - a name in a record
_PID = re.compile(r"(?:\[|process |pid[=:] ?)(\d{1,10})\b")
_CRASH = re.compile(r"\]: segfault at|traps: |general protection|trap invalid opcode")
_MOST_LINES, _LONGEST_LINE = 1000, 2000
_OWN_FAULT = re.compile(
    r"(?:builtins\.)?(?P<name>ValueError|TypeError|KeyError|IndexError|AttributeError|NameError|AssertionError|ImportError|"
    r"ModuleNotFoundError|ZeroDivisionError|FileNotFoundError|PermissionError|UnboundLocalError|NotImplementedError|SyntaxError|"
    r"IndentationError|UnicodeDecodeError|UnicodeEncodeError|RecursionError|KeyboardInterrupt)\b"
)
"""Exceptions of Python that state a defect or a stop. Those that libraries also raise where memory is short are left out."""


def ending_events(see: Observer, evidence: RunEvidence, run: RunRecord) -> Iterator[Event]:
    """Yield how the command and its processes ended, and what ran out beside them."""
    recorders = sum(rank.hello is not None for rank in evidence.ranks)
    yield see.event("watched-run", {"watched_level": min(2, max(0, run.level)), "recorders": recorders})
    if evidence.is_going:
        yield see.event("watched-run-goes-on")
    elif run.end is None:
        yield see.event("watched-wrapper-died")
    failed = run.signal is not None or bool(run.exit_code)
    kills = _kills(run, evidence.samples)
    if kills:
        yield _killed_by_kernel(see, run, kills, evidence.samples)
    elif kills == 0 and failed:
        yield see.event("watched-no-kernel-kill")
    if kills is None or run.end is None:
        yield from _full_at_the_end(see, run, evidence)
    if failed and (limits := _limits(run, evidence.samples)):
        yield see.event("watched-limits", limits)
    full = [files for files in run.files if failed and _is_full(files)]
    for files in full:
        name = "watched-shm-full" if files.path == _SHM else "watched-disk-full"
        path = None if files.path == _SHM else files.path
        yield see.event(name, {"path": path, "free_bytes": files.least_free_bytes, "total_bytes": files.total_bytes})
    yield from _signals(see, run, evidence, kills)
    if failed and _ending_signal(run) is None and not kills and not full:
        yield from _by_itself(see, evidence, run, kills)


def _signals(see: Observer, run: RunRecord, evidence: RunEvidence, kills: int | None) -> Iterator[Event]:
    """Yield signals that ended the command: whose they were, and whether the kernel counted a kill for memory."""
    for received in run.signals:
        if received.signal in _POLITE:
            who: dict[str, Value | None] = {"terminal": "the terminal"} if received.from_terminal else {"sender": received.sender}
            yield see.event("watched-stop", {"signal": signal.Signals(received.signal).name, **who})
    ended = _ending_signal(run)
    killed = [process.pid for process in run.processes if process.signal == _SIGKILL]
    if (killed or ended == "SIGKILL") and not kills:
        process = killed[0] if len(killed) == 1 else ", ".join(map(str, killed[:20])) or None
        if kills == 0:
            yield see.event("watched-kill-by-hand", {"process": process})
        else:
            yield see.event("watched-kill-of-unknown-sender", {"process": process, **_room(evidence.samples)})
    if ended in _CRASHES:
        name = "watched-unseen-end" if ended != "SIGBUS" and _is_unseen(run) else _CRASHES[ended]
        yield see.event(name, {"signal": ended, **_room(evidence.samples)})


def _ending_signal(run: RunRecord) -> str | None:
    """Return the name of the signal that ended the command, also where a shell passed it on as a status."""
    number = run.signal
    if number is None and run.exit_code is not None and run.exit_code > _SHELL:
        number = run.exit_code - _SHELL
    try:
        return None if number is None else signal.Signals(number).name
    except ValueError:
        return None


def _killed_by_kernel(see: Observer, run: RunRecord, kills: int, samples: Sequence[Sample]) -> Event:
    counters = run.counters
    limit = counters.limit_bytes if counters is not None else None
    peak = counters.peak_bytes if counters is not None else None
    if peak is None:
        peak = max((sample.cgroup.current or 0 for sample in samples if sample.cgroup is not None), default=None) or None
    if limit is not None and (peak is None or peak >= _NEAR * limit):
        return see.event("watched-limit-kill", {"kills": kills, "limit_bytes": limit, "used_bytes": peak})
    left = min((sample.available for sample in samples if sample.available is not None), default=None)
    return see.event("watched-machine-kill", {"kills": kills, "available_bytes": left})


def _full_at_the_end(see: Observer, run: RunRecord, evidence: RunEvidence) -> Iterator[Event]:
    """Yield what was nearly full where something was killed, or everything at once, and nobody could count by whom."""
    is_unexplained = (run.end is None and not evidence.is_going) or _ending_signal(run) == "SIGKILL"
    last = [sample for sample in evidence.samples if sample.t >= evidence.samples[-1].t - _AT_THE_END] if is_unexplained else []
    stalled = max((sample.psi for sample in last if sample.psi is not None), default=0.0)
    waited = {"stalled_percent": min(100, int(stalled)) if stalled >= _STALLED else None}
    full = [sample.cgroup for sample in last if sample.cgroup is not None and sample.group_is_full()]
    short = [sample for sample in last if sample.machine_is_full()]
    if full:
        group = max(full, key=lambda group: group.current or 0)
        yield see.event("watched-limit-near-at-the-end", {"used_bytes": group.current, "limit_bytes": group.limit, **waited})
    elif short:
        sample = min(short, key=lambda sample: sample.available or 0)
        left = {"available_bytes": sample.available, "host_total_bytes": sample.total}
        yield see.event("watched-machine-near-at-the-end", {**left, **waited})


def _limits(run: RunRecord, samples: Sequence[Sample]) -> dict[str, int]:
    """Return the limits of a process that are below what the machine has, by the fields of the event."""
    memory = max((sample.total for sample in samples if sample.total), default=_LARGEST)
    return {field: limit for name, field in _LIMITS.items() if (limit := run.limits.get(name)) is not None and 0 <= limit < memory}


def _kills(run: RunRecord, samples: Sequence[Sample]) -> int | None:
    """Return how many processes of the run the kernel killed for memory; None where nothing counted or somebody else's may be meant.

    What a control group counts are its own and those of the groups below, which may be of other jobs; so may what the machine counts.
    Where it is known how every process of the run ended, and none by SIGKILL, none of them was killed. A command may have moved into
    another group, and then only the count of the whole machine tells that nobody was killed.
    """
    if run.processes and not any(map(_may_have_been_killed, run.processes)):
        return 0
    counters = run.counters
    own = None if counters is None else counters.oom_kill
    if own is None:
        counted = [sample.cgroup.oom_kill for sample in samples if sample.cgroup is not None and sample.cgroup.oom_kill is not None]
        own = counted[-1] - counted[0] if counted else None
    if own is not None and own > 0:
        return own
    if not run.host_oom_kills:
        return own if run.host_oom_kills is None else 0
    victims = [line for line in run.kernel if "Killed process" in line]
    named = sum(_is_of_the_run(line, run) for line in victims)
    # The kernel counts processes as the machine does; in a container they have other numbers.
    all_are_of_others = run.has_machine_pids and not named and len(victims) >= run.host_oom_kills
    return 0 if all_are_of_others else named or None


def _may_have_been_killed(process: WatchedProcess) -> bool:
    """Return whether a process ended by SIGKILL, or passed that of another on as its status, or nobody saw how it ended."""
    return process.signal == _SIGKILL or process.exit_code == _SHELL + _SIGKILL or (process.signal is None and process.exit_code is None)


def kernel_lines(evidence: RunEvidence, run: RunRecord) -> str:
    """Return the lines of the kernel that can be of this run: others die on the same machine in the same second."""
    kills = _kills(run, evidence.samples)
    lines = run.kernel[:_MOST_LINES]
    kept = [line for line in lines if _is_of_the_run(line, run) or not (kills == 0 or _CRASH.search(line))]
    return "".join(" ".join(line[:_LONGEST_LINE].split()) + "\n" for line in kept)


def _is_of_the_run(line: str, run: RunRecord) -> bool:
    pids = {str(process.pid) for process in run.processes}
    return any(number in pids for number in _PID.findall(line))


def _by_itself(see: Observer, evidence: RunEvidence, run: RunRecord, kills: int | None) -> Iterator[Event]:
    """Yield that the command ended itself, and with what, where neither the allocator nor Python saw memory run out."""
    ended: dict[str, Value | None] = {"exit_code": run.exit_code, **_room(evidence.samples)}
    fault = _own_fault(evidence)
    if fault is not None:
        yield see.event("watched-own-error", {"error": fault, **ended})
    elif not any(rank.exception is not None or rank.ooms for rank in evidence.ranks):
        watched = kills == 0 and any(rank.hello is not None for rank in evidence.ranks)
        name = "watched-unseen-end" if _is_unseen(run) else "watched-own-end-seen" if watched else "watched-own-end"
        yield see.event(name, ended)


def _is_unseen(run: RunRecord) -> bool:
    """Return whether nobody could read what the command wrote.

    A program that catches an exception, or a library in C, says in its output alone what it died of.
    """
    return any(gap.what == OUTPUT for gap in run.gaps)


def _own_fault(evidence: RunEvidence) -> str | None:
    """Return the exception of the program's own that ended it, where that is what it died of."""
    for rank in evidence.ranks:
        if rank.exception is not None and not rank.ooms:
            named = _OWN_FAULT.fullmatch(rank.exception.type)
            if named is not None:
                return named["name"]
    if evidence.log is None or any(rank.ooms for rank in evidence.ranks):
        return None
    error = last_error(_tail(evidence.log).decode("utf-8", "replace"))
    named = None if error is None else _OWN_FAULT.match(error)
    return None if named is None else named["name"]


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - (16 << 10)))
            return file.read()
    except OSError:
        return b""


def _room(samples: Sequence[Sample]) -> dict[str, int]:
    """Return how much of the host was left at the worst moment; nothing where that is not known."""
    least = min(((sample.available, sample.total) for sample in samples if sample.available and sample.total), default=None)
    return {} if least is None else {"available_bytes": least[0], "host_total_bytes": least[1]}


def _is_full(files: FileSystem) -> bool:
    return files.total_bytes is not None and files.least_free_bytes is not None and files.least_free_bytes < _FULL * files.total_bytes
