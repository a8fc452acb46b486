"""Which release of a server runs: the one that somebody names, else the newest, and from which one on its answer is another."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import RunSettings
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.records.server import ServerDefaults, ServerRecord
from oomdoctor.versions import parse_version

_ID = "server_version"
_TURNS = {
    "no": Text(" (before {} it does not start)", "（{} 之前的版本无法启动）"),
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


def with_older_releases(served: Served, record: ServerRecord, at_version: Callable[[str], Served]) -> Served:
    """Return what a server makes of a card with the word, where its version was assumed, before which release it is the other way."""
    if not any(assumption.id == _ID for assumption in served.assumptions):
        return served
    turned = next(
        (text for release in _changes(record.defaults) if (text := _turned(served, at_version(f"{release}.dev0"), release))), None
    )
    if turned is None:
        return served
    said = tuple(
        replace(one, text=Text(one.text.en + turned.en, one.text.zh + turned.zh)) if one.id == _ID else one for one in served.assumptions
    )
    return replace(served, assumptions=said)


def _turned(now: Served, then: Served, release: str) -> Text | None:
    """Return how the verdict before a release differs; None where one of the two is not firm or both are the same."""
    if now.starts == then.starts or "close" in (now.starts, then.starts):
        return None
    text = _TURNS[then.starts]
    return Text(text.en.format(release), text.zh.format(release))


def _changes(defaults: ServerDefaults) -> list[str]:
    """Return the releases in which something that is counted changed, the newest first."""
    rows = (row for name in defaults.__struct_fields__ for row in getattr(defaults, name) or ())
    found = {row.until: version for row in rows if row.until is not None and (version := parse_version(row.until)) is not None}
    return sorted(found, key=lambda release: found[release], reverse=True)
