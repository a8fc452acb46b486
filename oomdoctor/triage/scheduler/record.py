"""A scheduler record about one job, or about one of its pods."""

from __future__ import annotations

from datetime import datetime, timezone

from msgspec import Struct


class JobRecord(Struct, frozen=True, kw_only=True):
    """The scheduler's information. Times are seconds since 1970; missing information is None."""

    source: str
    """`sacct`, `pod`, or `event`: a pod whose end is explained by an event of its node."""
    job: str
    """The ID in its logs: for a pod, its namespace and owner."""
    name: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    state: str | None = None
    exit_code: int | None = None
    """As seen by a shell: 128 plus the signal number if a signal ended the job."""
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    nodes: tuple[str, ...] = ()
    gpus: int | None = None
    rank: int | None = None
    uid: str | None = None
    """The pod's UID."""
    out_of_memory: bool = False
    """Whether it says that a process was killed at the host memory limit."""


def seconds(text: str | None) -> int | None:
    """Return a time as seconds since 1970, as UTC if it names no zone; None if it is not a time."""
    if text is None or not text[:4].isdigit():
        return None
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp())
