"""One row a job: the contract `oomdoctor/triage/v1` of what triage writes. Names stay; what is new is added."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SCHEMA = "oomdoctor/triage/v1"
GROUPING_VERSION = 2
"""Raised with every change of what a fingerprint or a campaign is made of; rows keep the version that they were grouped by."""

RECORD_ONLY = "record"
"""The layout of a job of which no log is at hand, and only the scheduler's record tells."""

Failed = Literal["yes", "possible", "no", "unread"]
"""Whether memory failed; `unread`: nothing of the job could be read, so nobody knows."""
Retry = Literal["stop", "smaller", "more-memory", "other-node", "retry", "unknown"]
"""What a restart needs: nothing helps as it is, less at once, more host memory, another node, nothing, nobody knows."""
DaySource = Literal["record", "log", "file"]
Contradiction = Literal["ended-well", "not-ended", "host-memory", "other-node"]
"""What a record says of a job whose log shows a failure of memory: it ended with status 0, it has not ended, the host killed it for its
memory while the log tells of a card's, it ran on other nodes."""


class UnreadFile(Struct, frozen=True):
    """A file of a job that could not be read, or not to its end."""

    path: str
    why: str


class JobRow(Struct, frozen=True, kw_only=True):
    """What is known of one job. What nobody knows is null; sizes are bytes, times seconds since 1970 (UTC)."""

    job: str
    """What names this job among all: the files that are looked at together, and its native id."""
    native: str
    layout: str
    name: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    model: str | None = None
    config_key: str | None = None
    """A hash of the settings that the log shows."""
    state: str | None = None
    """The scheduler's word."""
    exit_code: int | None = None
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    day: str | None = None
    """The day on which it ended, YYYY-MM-DD in UTC."""
    day_source: DaySource | None = None
    """What tells when it ended: the scheduler's record, the last lines of its logs, or only the dates of its files."""
    zone: str | None = None
    """The zone that the line names, as UTC or +08:00; null where it names none and was read as UTC."""
    nodes: tuple[str, ...] = ()
    node: str | None = None
    """The node of the first failure."""
    world: int | None = None
    """How many processes took part."""
    attempt: int | None = None
    """The start that failed first of memory; the last one where none did."""
    attempts: int = 1
    files: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Where else it was met: copies of its files, exports of them, files that have been moved since."""
    bytes: int = 0
    """Of all files, as they lie."""
    read_bytes: int = 0
    """Of their text."""
    unreadable: tuple[UnreadFile, ...] = ()
    memory_failure: Failed = "no"
    evidence: str | None = None
    """What shows the failure: log, sacct, pod, event."""
    contradictions: tuple[Contradiction, ...] = ()
    """What the scheduler's record says against the log."""
    settle: str | None = None
    """The check that would settle a `possible`."""
    kind: str = "none"
    certainty: str | None = None
    survived: bool = False
    recovered: bool = False
    """A later start of the job went well."""
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
    """The message names other processes on the card, or leaves a good part of it to them."""
    text: str | None = None
    """The message, without secrets, cut after 300 characters."""
    error: str | None = None
    """What it ended with where memory did not fail, likewise."""
    framework: str | None = None
    versions: dict[str, str] = {}
    fingerprint: str | None = None
    """What failed: equal for the same failure, whoever met it and wherever."""
    campaign: str | None = None
    """Whose it is: equal for one user's submissions of the same thing."""
    group: str | None = None
    grouping_version: int = GROUPING_VERSION
    retry: Retry = "unknown"
    gpu_seconds_lost: int | None = None
    tool: str = ""
    rules: str = ""
    key: str = ""
    """A hash of the paths, sizes and times of its files: equal as long as nothing changed."""
    scanned_at: int = 0
