"""A record of a scheduler: what it says of one job, or of one pod of it."""

from __future__ import annotations

from datetime import datetime, timezone

from msgspec import Struct


class JobRecord(Struct, frozen=True, kw_only=True):
    """What the scheduler says. Times are seconds since 1970; what it does not say is None."""

    source: str
    """`sacct`, `pod`, or `event`: a pod whose end an event of its node explains."""
    job: str
    """The id that its logs carry: of a pod the namespace and its owner."""
    name: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    state: str | None = None
    exit_code: int | None = None
    """As a shell sees it: 128 and the number of the signal where one ended the job."""
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    nodes: tuple[str, ...] = ()
    gpus: int | None = None
    rank: int | None = None
    uid: str | None = None
    """Of a pod."""
    out_of_memory: bool = False
    """It says that a process was killed at the limit of the host's memory."""


def seconds(text: str | None) -> int | None:
    """Return a time as seconds since 1970, as UTC where no zone is named; None where it is none."""
    if text is None or not text[:4].isdigit():
        return None
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp())
