"""Which release of a server runs: the named one, or otherwise the newest, with the range of those since the model's release."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.serving import ByteRange, Served, TurnedRelease
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.records.server import ServerRecord
from oomdoctor.versions import last_release, parse_version

_ID = "server_version"
_TURNS = {
    "no": Text("before {} it does not start", "{} 之前的版本无法启动"),
    "close": Text("before {} it may not start", "{} 之前的版本不一定能启动"),
    "yes": Text("before {} it starts", "{} 之前的版本可以启动"),
}


def known_version(settings: RunSettings) -> str | None:
    """Return the release that settings name, the last if they name a series. Raise UsageError if what they name is not a release."""
    named = settings.server_version
    if named is not None and parse_version(named) is None:
        raise UsageError(f"the server's version: {named!r} is not valid; write it as the package does (0.8.5)")
    return last_release(named)


def newest_release(record: ServerRecord, settings: RunSettings) -> Assumption:
    """Return that the newest release was assumed, or the newest that accepts the options as written."""
    if before := settings.server_before:
        option = settings.removed_option
        older = Text(
            f"{record.title} before {before}, which rejects {option}", f"{record.title} {before} 之前的版本（该版本起不再接受 {option}）"
        )
        return Assumption(id=_ID, text=older, is_question=True)
    name = f"{record.title} {record.newest}"
    text = Text(f"{name}, the newest known here", f"{name}，即这里所知的最新版本")
    return Assumption(id=_ID, text=text, is_question=True)


def turned_text(turned: TurnedRelease) -> Text:
    """Return a clause saying before which release the verdict is, or may be, the opposite."""
    text = _TURNS[turned.starts]
    return Text(text.en.format(turned.before), text.zh.format(turned.before))


def over_releases(served: Served, older: Sequence[tuple[str, Served]]) -> Served:
    """Return how a server uses a GPU, with the range of these releases, each with the release before which it applies.

    One that certainly does not start where this one may has no cache that would widen it; that it does not start is stated in words.
    """
    if not older:
        return served
    turns = (TurnedRelease(before, then.starts) for before, then in older if _is_reversed(served, then))
    # A release that certainly differs is named rather than one that may.
    turned = min(turns, key=lambda turned: turned.starts == "close", default=None)
    assumptions = served.assumptions if turned is None else tuple(_with_turned_release(each, turned) for each in served.assumptions)
    holding = [then for _, then in older if then.starts != "no" or served.starts == "no"]
    return replace(served, cache=_widest(served, holding), turned=turned, assumptions=assumptions)


def _with_turned_release(assumption: Assumption, turned: TurnedRelease) -> Assumption:
    """Return the version assumption with the release before which the verdict is different."""
    if assumption.id != _ID:
        return assumption
    before = turned_text(turned)
    return replace(assumption, text=Text(f"{assumption.text.en} ({before.en})", f"{assumption.text.zh}（{before.zh}）"))


def _widest(served: Served, older: Sequence[Served]) -> ByteRange:
    """Return the cache with the minimum and the maximum that any release holds, in bytes of this release's tokens."""
    if not served.full_token:
        return served.cache
    scaled = [(then.cache, served.full_token / then.full_token) for then in older if then.full_token]
    low = min([served.cache.low, *(round(cache.low * scale) for cache, scale in scaled)])
    high = max([served.cache.high, *(round(cache.high * scale) for cache, scale in scaled)])
    return ByteRange(served.cache.expected, low, high)


def _is_reversed(now: Served, then: Served) -> bool:
    """Return whether the verdict of another release is, or may be, the opposite; never if this one is not firm."""
    return now.starts not in (then.starts, "close") and (now.starts, then.starts) != ("no", "close")


def changed_releases(record: ServerRecord, since: str | None, before: str | None = None) -> list[str]:
    """Return the releases in which something counted changed, the newest first: after `since`, which loads the model, to `before`."""
    defaults = record.defaults
    rows = (row for name in defaults.__struct_fields__ for row in getattr(defaults, name) or ())
    releases = {row.until: version for row in rows if row.until is not None and (version := parse_version(row.until)) is not None}
    oldest, newest = parse_version(since or record.oldest), parse_version(before)
    meant = (name for name, at in releases.items() if (oldest is None or at > oldest) and (newest is None or at < newest))
    return sorted(meant, key=releases.__getitem__, reverse=True)
