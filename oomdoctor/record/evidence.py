"""The evidence folder (docs/evidence-folder.md): its structures, and reading them from a folder that nobody vouches for.

Times are seconds since 1970, sizes are bytes. What is not known is None.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from oomdoctor.record.output import OutputKind

RUN, ENVIRONMENT, SAMPLES, LOG, CONFIGS, REPORT, ATTEMPTS = (
    "run.json", "environment.json", "samples.jsonl", "log.txt", "configs", "report.json", "attempts",
)  # fmt: skip
"""Names in the folder."""
OUTPUT = "what the command wrote"
"""What a gap is about where nobody could read it."""
CHANGED = "changed-"
"""Before the number of an attempt: the configs that were changed for it."""

_NEAR = 0.1
"""Where less than this share is left, memory is nearly full."""

Tag = Literal["oomdoctor/evidence/v1"]


class EvidenceGap(Struct, frozen=True, kw_only=True):
    """What is not known of the run, and why."""

    what: str
    why: str
    how: str | None = None


class Output(Struct, frozen=True, kw_only=True):
    """Where the command wrote to."""

    kind: OutputKind
    path: str | None = None
    start_offset: int | None = None
    end_offset: int | None = None


class WatchedProcess(Struct, frozen=True, kw_only=True):
    """A process of the run. `exit_code` and `signal` are both None where nobody saw how it ended."""

    pid: int
    parent: int | None = None
    command: str = ""
    start: float | None = None
    end: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    rank: int | None = None
    peak_rss_bytes: int | None = None


class ReceivedSignal(Struct, frozen=True, kw_only=True):
    """A signal that reached the wrapper."""

    time: float
    signal: int
    sender: int | None = None
    from_terminal: bool = False
    forwarded: bool = False


class Survivor(Struct, frozen=True, kw_only=True):
    """A process that outlived the command; it was left alone."""

    pid: int
    command: str = ""
    card_bytes: int | None = None


class CgroupCounters(Struct, frozen=True, kw_only=True):
    """What the control group counted between the start and the end of the run."""

    version: int
    limit_bytes: int | None = None
    peak_bytes: int | None = None
    oom: int | None = None
    oom_kill: int | None = None
    max: int | None = None


class FileSystem(Struct, frozen=True, kw_only=True):
    """A file system that the run may have filled: `path` is /dev/shm or a folder of the run."""

    path: str
    total_bytes: int | None = None
    least_free_bytes: int | None = None


class RunRecord(Struct, frozen=True, kw_only=True):
    """run.json."""

    schema: Tag = "oomdoctor/evidence/v1"
    oomdoctor: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    start: float = 0.0
    end: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    level: int = 0
    attempt: int = 1
    rank: int | None = None
    """Which task of a launcher it is, where the wrapper was started for each."""
    log: Output | None = None
    variables: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """What a process of the run may have at most (getrlimit, the soft limits that are set): by the names of record/limits.py."""
    processes: tuple[WatchedProcess, ...] = ()
    signals: tuple[ReceivedSignal, ...] = ()
    survivors: tuple[Survivor, ...] = ()
    kernel: tuple[str, ...] = ()
    counters: CgroupCounters | None = None
    host_oom_kills: int | None = None
    """Processes that the kernel of the machine killed for memory during the run, of whatever job."""
    has_machine_pids: bool = False
    """Whether processes have the numbers that the kernel of the machine gives them: not in most containers."""
    files: tuple[FileSystem, ...] = ()
    gaps: tuple[EvidenceGap, ...] = ()


class CgroupSample(Struct, frozen=True, kw_only=True):
    """The control group at a moment."""

    current: int | None = None
    limit: int | None = None
    oom_kill: int | None = None


class CardSample(Struct, frozen=True, kw_only=True):
    """A card at a moment; `ours` is what processes of the run hold of it."""

    index: int
    used: int | None = None
    total: int | None = None
    ours: int | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """A line of samples.jsonl."""

    t: float
    rss: int | None = None
    available: int | None = None
    total: int | None = None
    swap_free: int | None = None
    cgroup: CgroupSample | None = None
    psi: float | None = None
    shm_free: int | None = None
    disk_free: int | None = None
    cards: tuple[CardSample, ...] = ()
    processes: dict[str, int] = field(default_factory=dict)

    def group_is_full(self) -> bool:
        """Return whether less than a tenth of what the control group may have is left, and the run holds most of it.

        Files that were read stay in a group until somebody needs the room: what it holds says nothing alone.
        """
        group = self.cgroup
        if group is None or not group.limit or group.current is None or self.rss is None:
            return False
        return group.current > (1 - _NEAR) * group.limit and self.rss > group.limit / 2

    def machine_is_full(self) -> bool:
        """Return whether less than a tenth of the machine's memory is left."""
        return self.available is not None and self.total is not None and self.available < _NEAR * self.total


class Hello(Struct, frozen=True, kw_only=True):
    """KEY.hello.json: the recorder was in this process."""

    time: float = 0.0
    pid: int = 0
    parent: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    torch: str | None = None
    backend: str | None = None
    """cuda, hip, npu, xpu, mps, jax, tensorflow or cpu."""
    device: int | None = None
    hook: str = ""
    """entry-point, sitecustomize or watch."""
    level: int = 0
    restart: int | None = None
    gaps: tuple[EvidenceGap, ...] = ()


class RefusedRequest(Struct, frozen=True, kw_only=True):
    """KEY.oom-N.json: a request that failed."""

    time: float = 0.0
    device: int | None = None
    driver_request_bytes: int | None = None
    """What was asked of the driver: 2 MiB, 20 MiB, or the request rounded up to 2 MiB."""
    total_bytes: int | None = None
    """What the process may have at most: the card, or a fraction of it."""
    free_bytes: int | None = None
    stats: dict[str, Any] = field(default_factory=dict)
    """The raw counters of the allocator."""
    stack: tuple[str, ...] = ()
    """file:line:function of the thread that asked, innermost first."""
    thread: str | None = None
    gradients: bool | None = None
    """Whether the thread recorded gradients (`torch.is_grad_enabled()`); not known of the backward pass, nor behind an exception."""
    step: int | None = None
    phase: str | None = None
    count: int = 1
    """The how manieth failure of this process it is."""
    holders: tuple[dict[str, Any], ...] = ()
    """At level 1: site, bytes, blocks of what lives, the largest first."""


class RecordedException(Struct, frozen=True, kw_only=True):
    """KEY.exception.json: what nobody caught."""

    time: float = 0.0
    type: str = ""
    text: str = ""
    traceback: str = ""
    thread: str | None = None


class PhasePeak(Struct, frozen=True, kw_only=True):
    """What a phase held that the program told."""

    name: str
    times: int = 1
    seconds: float = 0.0
    first_step: int | None = None
    last_step: int | None = None
    peak: int | None = None
    """Where the peak of the allocator rose in it, its height; else the phase held at most what one before it did."""
    least: int | None = None
    """The most that was allocated at a moment that was looked at."""


class ToldPhases(Struct, frozen=True, kw_only=True):
    """KEY.phases.json: the phases that a program told, in the order in which they began."""

    phases: tuple[PhasePeak, ...] = ()


class OrderlyEnd(Struct, frozen=True, kw_only=True):
    """KEY.end.json: the interpreter ended by itself."""

    time: float = 0.0
    ooms: int = 0
    steps: int | None = None
