"""One row per job: the contract `oomdoctor/triage/v1` for triage output. Names are kept; new ones are added."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SCHEMA = "oomdoctor/triage/v1"
GROUPING_VERSION = 2
"""Incremented with every change to the contents of a fingerprint or campaign; rows keep the version they were grouped by."""

RECORD_ONLY = "record"
"""The layout of a job without a log, known only from the scheduler's record."""

Failed = Literal["yes", "possible", "no", "unread"]
"""Whether memory failed; `unread`: nothing of the job could be read, so it is not known."""
Retry = Literal["stop", "smaller", "more-memory", "other-node", "retry", "unknown"]
"""What a restart needs: it would fail again unchanged, less at once, more host memory, another node, nothing, not known."""
DaySource = Literal["record", "log", "file"]
Contradiction = Literal["ended-well", "not-ended", "host-memory", "other-node"]
"""What a record says about a job whose log shows a memory failure: it ended with status 0, it has not ended, the host killed it because of
host memory while the log shows a GPU memory failure, it ran on other nodes."""


class UnreadFile(Struct, frozen=True):
    """A file of a job that could not be read, or not to the end."""

    path: str
    why: str


class JobRow(Struct, frozen=True, kw_only=True):
    """What is known about one job. Unknown values are null; sizes are in bytes, times in seconds since 1970 (UTC)."""

    job: str
    """The job's unique name: the files that were read together, and its native ID."""
    native: str
    layout: str
    name: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    model: str | None = None
    config_key: str | None = None
    """A hash of the settings shown in the log."""
    state: str | None = None
    """The state reported by the scheduler."""
    exit_code: int | None = None
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    day: str | None = None
    """The day on which it ended, YYYY-MM-DD in UTC."""
    day_source: DaySource | None = None
    """The source of its end time: the scheduler's record, the last lines of its logs, or only the dates of its files."""
    zone: str | None = None
    """The time zone named in the line, as UTC or +08:00; null if it names none and was read as UTC."""
    nodes: tuple[str, ...] = ()
    node: str | None = None
    """The node of the first failure."""
    world: int | None = None
    """The number of processes."""
    attempt: int | None = None
    """The start that first ran out of memory; the last one if none did."""
    attempts: int = 1
    files: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Where else it was found: copies of its files, exports of them, files that have since been moved."""
    bytes: int = 0
    """The size of all files as stored."""
    read_bytes: int = 0
    """The size of their text."""
    unreadable: tuple[UnreadFile, ...] = ()
    memory_failure: Failed = "no"
    evidence: str | None = None
    """The source that shows the failure: log, sacct, pod, event."""
    contradictions: tuple[Contradiction, ...] = ()
    """How the scheduler's record contradicts the log."""
    settle: str | None = None
    """The check that would settle a `possible`."""
    kind: str = "none"
    certainty: str | None = None
    survived: bool = False
    recovered: bool = False
    """A later start of the job succeeded."""
    signature: str | None = None
    first_file: str | None = None
    first_line: int | None = None
    first_offset: int | None = None
    first_rank: int | None = None
    local_rank: int | None = None
    gpu: int | None = None
    phase: str | None = None
    requested_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    used_by_others_bytes: int | None = None
    others_hold_card: bool = False
    """The message names other processes on the GPU, or leaves a considerable part of it to them."""
    text: str | None = None
    """The message, without secrets, truncated to 300 characters."""
    error: str | None = None
    """The error it ended with if memory did not fail, likewise."""
    framework: str | None = None
    versions: dict[str, str] = {}
    fingerprint: str | None = None
    """What failed: equal for the same failure, for any user and anywhere."""
    campaign: str | None = None
    """Whose job it is: equal for one user's submissions of the same job."""
    group: str | None = None
    grouping_version: int = GROUPING_VERSION
    retry: Retry = "unknown"
    gpu_seconds_lost: int | None = None
    tool: str = ""
    rules: str = ""
    key: str = ""
    """A hash of the paths, sizes and times of its files: equal as long as nothing changes."""
    scanned_at: int = 0
