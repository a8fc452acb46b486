"""The groups known from earlier runs of a store: which groups are new, and which came back after a quiet week.

One small file beside the parts. It is written when a run has ended, so that a run that is killed has told nobody and known nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import date, timedelta

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from oomdoctor.triage.groups import Fleet, Group
from oomdoctor.triage.store.sealed import keep_sealed, read_sealed

_QUIET = timedelta(days=7)
"""A group that had no failure for this long and then has one again came back."""
_FILE = "groups.json"
GROUPS_LOST = f"{_FILE} is damaged: the groups known from earlier runs are lost, so every group counts as new"


class KnownGroup(Struct, frozen=True, kw_only=True):
    """What the last run knew of a group, and what was new about it. Days are YYYY-MM-DD."""

    first_seen: str | None
    last_seen: str | None
    is_new: bool = False
    """Whether no run before the last one knew it."""
    came_back: str | None = None
    """The day on which it came back, if no run before the last one knew that."""
    news_of: int = 0
    """The last run in which it was new or came back."""


class KnownGroups(Struct, frozen=True, kw_only=True):
    """What the last run of a store knew."""

    groups: dict[str, KnownGroup] = {}
    is_first: bool = True
    """Whether no run came before it: then every group is new."""
    run: int = 0
    """The last run with news: its end in seconds since 1970, always later than the one before."""

    @property
    def news(self) -> list[str]:
        """Return the groups that were new in the last run, or came back."""
        return [name for name, group in self.groups.items() if group.is_new or group.came_back is not None]


def note_groups(store: str, fleet: Fleet) -> KnownGroups:
    """Compare the groups of a finished run with those of earlier runs of the store, and keep them for the next. Raise OSError."""
    before = _read(store)
    earlier = {} if before is None else before.groups
    last = 0 if before is None else before.run
    now = max(last + 1, int(time.time()))
    seen = {name: _seen(group, earlier, now) for name, group in fleet.groups.items()}
    has_news = any(group.news_of == now for group in seen.values())
    known = KnownGroups(groups=seen, is_first=before is None, run=now if has_news else last)
    path = os.path.join(store, _FILE)
    if known == before:
        os.utime(path)  # its time is that of the last run
        return known
    keep_sealed(path, encode(known))
    return known


def known_groups(store: str) -> KnownGroups:
    """Return what the last run of a store knew; nothing if none has finished."""
    return _read(store) or KnownGroups()


def _read(store: str) -> KnownGroups | None:
    data = read_sealed(os.path.join(store, _FILE))
    try:
        return None if data is None else decode(data, type=KnownGroups)
    except DecodeError:  # written by another version
        return None


def are_lost(store: str) -> bool:
    """Return whether a store knew groups that can no longer be read."""
    return os.path.lexists(os.path.join(store, _FILE)) and _read(store) is None


def _seen(group: Group, earlier: Mapping[str, KnownGroup], run: int) -> KnownGroup:
    days = sorted(group.days)
    known = earlier.get(group.id)
    back = None if known is None or known.last_seen is None else _return_after(known.last_seen, days)
    return KnownGroup(
        first_seen=days[0] if days else None,
        last_seen=days[-1] if days else None,
        is_new=known is None,
        came_back=back,
        news_of=run if known is None or back is not None else known.news_of,
    )


def _return_after(last: str, days: list[str]) -> str | None:
    """Return the newest day after `last` that follows a quiet period."""
    day = [date.fromisoformat(day) for day in days if day >= last]
    back = [after for before, after in zip(day, day[1:]) if after - before > _QUIET]
    return back[-1].isoformat() if back else None


def last_run(store: str) -> int | None:
    """Return when the last run of a store ended, in seconds since 1970; None if there was none."""
    try:
        return int(os.stat(os.path.join(store, _FILE)).st_mtime)
    except OSError:
        return None
