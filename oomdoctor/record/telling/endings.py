"""How a command and its processes ended, and what ran out beside them."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

from oomdoctor.parse.ending import find_log_ending
from oomdoctor.record.evidence import FileSystem, RunRecord, Sample, WatchedProcess
from oomdoctor.record.read_folder import RunEvidence
from oomdoctor.record.telling.prefix import PREFIX

_FULL = 0.02
"""A file system of which less than this share was left was full for whoever wrote to it."""
_NEAR = 0.98
"""A control group that came this near to its limit reached it."""
_AT_THE_END = 5.0
"""Seconds of samples that belong to the end; the last of them may come after what died."""
_STALLED = 10.0
"""Percent of ten seconds in which something waited for memory: below, it is page cache that is read again."""
_POLITE = (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM))
_CRASHES = ("SIGBUS", "SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE", "SIGXFSZ", "SIGXCPU", "SIGSYS", "SIGTRAP")
"""Signals that a process brings upon itself."""
_SHELL, _SIGKILL = 128, 9
"""A shell gives a signal's number above this as the status of what it ended."""
_LIMIT_WORDS = {
    "address_space_bytes": "address space {} bytes",
    "data_bytes": "data {} bytes",
    "locked_bytes": "locked {} bytes",
    "file_bytes": "a file {} bytes",
    "open_files": "{} open files",
    "processes": "{} processes of the user",
}
_LARGEST = 1 << 60
_SHM = "/dev/shm"  # noqa: S108 - a name in a record
_PID = re.compile(r"(?:\[|process |pid[=:] ?)(\d{1,10})\b")
_CRASH = re.compile(r"\]: segfault at|traps: |general protection|trap invalid opcode")
_MOST_LINES = 1000
_OWN_FAULT = re.compile(
    r"(?:builtins\.)?(?P<name>ValueError|TypeError|KeyError|IndexError|AttributeError|NameError|AssertionError|ImportError|"
    r"ModuleNotFoundError|ZeroDivisionError|FileNotFoundError|PermissionError|UnboundLocalError|NotImplementedError|SyntaxError|"
    r"IndentationError|UnicodeDecodeError|UnicodeEncodeError|RecursionError|KeyboardInterrupt)\b"
)
"""Exceptions of Python that state a defect or a stop. Those that libraries also raise where memory is short are left out."""


def ending_lines(evidence: RunEvidence, run: RunRecord) -> Iterator[str]:
    """Yield how the command and its processes ended, and what ran out beside them."""
    recorders = sum(rank.hello is not None for rank in evidence.ranks)
    yield f"{PREFIX}the run was watched at level {min(2, max(0, run.level))}, {recorders} processes from inside"
    if evidence.is_going:
        yield f"{PREFIX}the run is still going: this is what was seen until now"
    elif run.end is None:
        yield f"{PREFIX}nothing was written after the start: the wrapper was ended, too"
    failed = run.signal is not None or bool(run.exit_code)
    kills = _kills(run, evidence.samples)
    if kills:
        yield from _killed_by_kernel(run, kills, evidence.samples)
    elif kills == 0 and failed:
        yield f"{PREFIX}the kernel ended no process for memory in the time of the run"
    if kills is None or run.end is None:
        yield from _full_at_the_end(run, evidence)
    if failed:
        yield from _limits(run, evidence.samples)
    full = [files for files in run.files if failed and _is_full(files)]
    for files in full:
        what = "/dev/shm" if files.path == _SHM else f"the disk of {_one_line(files.path)}"
        yield f"{PREFIX}{what} was full: {files.least_free_bytes} of {files.total_bytes} bytes were left"
    yield from _signals(run, evidence.samples, kills)
    yield from _kernel_lines(run, kills)
    if failed and _ending_signal(run) is None and not kills and not full:
        yield from _by_itself(evidence, run, kills)


def left_lines(evidence: RunEvidence) -> Iterator[str]:
    """Yield what is left of a run whose node died."""
    yield f"{PREFIX}only what {len(evidence.ranks)} processes counted is left: neither the wrapper nor they saw the end"


def _signals(run: RunRecord, samples: Sequence[Sample], kills: int | None) -> Iterator[str]:
    """Yield signals that ended the command: whose they were, and whether the kernel counted a kill for memory."""
    for received in run.signals:
        if received.signal in _POLITE:
            who = "the terminal" if received.from_terminal else f"process {received.sender}"
            yield f"{PREFIX}{signal.Signals(received.signal).name} of {who} stopped the command"
    ended = _ending_signal(run)
    killed = [process.pid for process in run.processes if process.signal == _SIGKILL]
    if (killed or ended == "SIGKILL") and not kills:
        whom = f"process {', '.join(map(str, killed[:20]))}" if killed else "the command"
        if kills == 0:
            yield f"{PREFIX}SIGKILL ended {whom}, and the kernel counted no kill for memory in that time"
        else:
            yield f"{PREFIX}SIGKILL ended {whom}; whether the kernel did it for memory was not counted; {_room(samples)}"
    if ended in _CRASHES:
        yield f"{PREFIX}{ended} ended the command; {_room(samples)}"


def _ending_signal(run: RunRecord) -> str | None:
    """Return the name of the signal that ended the command, also where a shell passed it on as a status."""
    number = run.signal
    if number is None and run.exit_code is not None and run.exit_code > _SHELL:
        number = run.exit_code - _SHELL
    try:
        return None if number is None else signal.Signals(number).name
    except ValueError:
        return None


def _killed_by_kernel(run: RunRecord, kills: int, samples: Sequence[Sample]) -> Iterator[str]:
    counters = run.counters
    limit = counters.limit_bytes if counters is not None else None
    peak = counters.peak_bytes if counters is not None else None
    if peak is None:
        peak = max((sample.cgroup.current or 0 for sample in samples if sample.cgroup is not None), default=None) or None
    if limit is not None and (peak is None or peak >= _NEAR * limit):
        told = "" if peak is None else f", at most {peak} bytes used"
        yield f"{PREFIX}the kernel killed {kills} processes for the limit of the control group, {limit} bytes{told}"
    else:
        left = min((sample.available for sample in samples if sample.available is not None), default=None)
        told = "" if left is None else f"; the least that was available were {left} bytes"
        yield f"{PREFIX}the kernel killed {kills} processes because the machine had no memory left{told}"


def _full_at_the_end(run: RunRecord, evidence: RunEvidence) -> Iterator[str]:
    """Yield what was nearly full where something was killed, or everything at once, and nobody could count by whom."""
    is_unexplained = (run.end is None and not evidence.is_going) or _ending_signal(run) == "SIGKILL"
    last = [sample for sample in evidence.samples if sample.t >= evidence.samples[-1].t - _AT_THE_END] if is_unexplained else []
    stalled = max((sample.psi for sample in last if sample.psi is not None), default=0.0)
    waited = f"; processes waited for memory {min(100, int(stalled))} % of ten seconds" if stalled >= _STALLED else ""
    full = [sample for sample in last if sample.group_is_full()]
    short = [sample for sample in last if sample.machine_is_full()]
    if full:
        group = max((sample.cgroup for sample in full if sample.cgroup is not None), key=lambda group: group.current or 0)
        yield f"{PREFIX}the control group was nearly full at the end: {group.current} of {group.limit} bytes{waited}"
    elif short:
        sample = min(short, key=lambda sample: sample.available or 0)
        yield f"{PREFIX}the machine was nearly full at the end: {sample.available} of {sample.total} bytes were left{waited}"


def _limits(run: RunRecord, samples: Sequence[Sample]) -> Iterator[str]:
    """Yield the limits of a process that are below what the machine has."""
    memory = max((sample.total for sample in samples if sample.total), default=_LARGEST)
    set_limits = ((name, run.limits.get(name)) for name in _LIMIT_WORDS)
    told = [_LIMIT_WORDS[name].format(limit) for name, limit in set_limits if limit is not None and 0 <= limit < memory]
    if told:
        yield f"{PREFIX}limits of a process: {', '.join(told)}"


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


def _kernel_lines(run: RunRecord, kills: int | None) -> Iterator[str]:
    """Yield the lines of the kernel that can be of this run: others die on the same machine in the same second."""
    for line in run.kernel[:_MOST_LINES]:
        is_crash = _CRASH.search(line) is not None
        if _is_of_the_run(line, run) or not (is_crash or kills == 0):
            yield _one_line(line)


def _is_of_the_run(line: str, run: RunRecord) -> bool:
    pids = {str(process.pid) for process in run.processes}
    return any(number in pids for number in _PID.findall(line))


def _by_itself(evidence: RunEvidence, run: RunRecord, kills: int | None) -> Iterator[str]:
    """Yield that the command ended itself, and with what, where neither the allocator nor Python saw memory run out."""
    fault = _own_fault(evidence)
    if fault is not None:
        yield f"{PREFIX}{fault} ended the command with status {run.exit_code}; {_room(evidence.samples)}"
    elif not any(rank.exception is not None or rank.ooms for rank in evidence.ranks):
        watched = any(rank.hello is not None for rank in evidence.ranks)
        told = ", no process was killed for memory and none was refused any" if watched and kills == 0 else ""
        yield f"{PREFIX}the command ended by itself with status {run.exit_code}{told}; {_room(evidence.samples)}"


def _own_fault(evidence: RunEvidence) -> str | None:
    """Return the exception of the program's own that ended it, where that is what it died of."""
    for rank in evidence.ranks:
        if rank.exception is not None and not rank.ooms:
            named = _OWN_FAULT.fullmatch(rank.exception.type)
            if named is not None:
                return named["name"]
    if evidence.log is None or any(rank.ooms for rank in evidence.ranks):
        return None
    ending = find_log_ending(_tail(evidence.log))
    named = None if ending is None or ending.speaks_of_memory or ending.survived else _OWN_FAULT.match(ending.text)
    return None if named is None else named["name"]


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - (16 << 10)))
            return file.read()
    except OSError:
        return b""


def _room(samples: Sequence[Sample]) -> str:
    """Say how much of the host was left at the worst moment."""
    least = min(((sample.available, sample.total) for sample in samples if sample.available and sample.total), default=None)
    return "how much memory was left is not known" if least is None else f"{least[0]} of {least[1]} bytes were available at the least"


def _is_full(files: FileSystem) -> bool:
    return files.total_bytes is not None and files.least_free_bytes is not None and files.least_free_bytes < _FULL * files.total_bytes


def _one_line(text: str) -> str:
    return " ".join(text[:2000].split())
