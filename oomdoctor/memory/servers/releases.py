"""Which release of a server runs: the one that somebody names, else the newest, with what those since the model's release make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.serving import ByteRange, Served
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.records.server import ServerDefaults, ServerRecord
from oomdoctor.versions import parse_version

_ID = "server_version"
_TURNS = {
    "no": Text(" (before {} it does not start)", "（{} 之前的版本无法启动）"),
    "close": Text(" (before {} it may not start)", "（{} 之前的版本不一定能启动）"),
    "yes": Text(" (before {} it starts)", "（{} 之前的版本可以启动）"),
}


def known_version(settings: RunSettings) -> str | None:
    """Return the release that settings name. Raise UsageError where what they name is none."""
    named = settings.server_version
    if named is not None and parse_version(named) is None:
        raise UsageError(f"the server's version: {named!r} is none; write it as the package does (0.8.5)")
    return named


def newest_release(record: ServerRecord) -> Assumption:
    """Return that the newest release was taken."""
    name = f"{record.title} {record.newest}"
    text = Text(f"{name}, the newest that is known here", f"{name}，即这里所知的最新版本")
    return Assumption(id=_ID, text=text, is_question=True)


def with_older_releases(served: Served, record: ServerRecord, at_version: Callable[[str], Served], since: str | None = None) -> Served:
    """Return what a server makes of a card as wide as the releases that can be meant, where its version was assumed.

    `since` is the first release that loads the model. An assumption says before which release the verdict is, or may be, the other way.
    """
    if not any(assumption.id == _ID for assumption in served.assumptions):
        return served
    older = {release: at_version(f"{release}.dev0") for release in _changes(record.defaults, since or record.oldest)}
    widened = replace(served, cache=_widest(served, tuple(older.values())))
    turns = [(then.starts, text) for release, then in older.items() if (text := _turned(served, then, release))]
    if not turns:
        return widened
    # A release that surely differs is named rather than one that may.
    verdict, turned = next((turn for turn in turns if turn[0] != "close"), turns[0])
    changed = tuple(
        replace(assumption, text=Text(assumption.text.en + turned.en, assumption.text.zh + turned.zh))
        if assumption.id == _ID
        else assumption
        for assumption in served.assumptions
    )
    return replace(widened, assumptions=changed, releases_differ=verdict != "close")


def _widest(served: Served, older: Sequence[Served]) -> ByteRange:
    """Return the cache with the least and the most that any release holds, in bytes of this release's tokens."""
    if not served.token:
        return served.cache
    scaled = [(then.cache, served.token / then.token) for then in older if then.token]
    low = min([served.cache.low, *(round(cache.low * scale) for cache, scale in scaled)])
    high = max([served.cache.high, *(round(cache.high * scale) for cache, scale in scaled)])
    return ByteRange(served.cache.expected, low, high)


def _turned(now: Served, then: Served, release: str) -> Text | None:
    """Return how the verdict before a release differs; None where both are the same or this one is not firm."""
    if now.starts in (then.starts, "close") or (now.starts, then.starts) == ("no", "close"):
        return None
    text = _TURNS[then.starts]
    return Text(text.en.format(release), text.zh.format(release))


def _changes(defaults: ServerDefaults, since: str | None) -> list[str]:
    """Return the releases after `since` in which something that is counted changed, the newest first."""
    rows = (row for name in defaults.__struct_fields__ for row in getattr(defaults, name) or ())
    releases = {row.until: version for row in rows if row.until is not None and (version := parse_version(row.until)) is not None}
    oldest = parse_version(since)
    return sorted(
        (name for name, version in releases.items() if oldest is None or version > oldest), key=releases.__getitem__, reverse=True
    )
