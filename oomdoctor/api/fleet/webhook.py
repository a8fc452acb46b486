"""A JSON text sent to an address that the user names, and nowhere else."""

from __future__ import annotations

from typing import Any
from urllib import error, parse, request

from oomdoctor.errors import UsageError

_SECONDS = 15


class _NoRedirect(request.HTTPRedirectHandler):
    """An address that sends elsewhere is refused: the text goes where the user said."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def post_json(url: str, text: str) -> None:
    """Send a text with POST. Raise UsageError where the address is not http(s), cannot be reached, or refuses it.

    The path of an address can be a secret (Slack), so that messages name the host alone.
    """
    told = parse.urlsplit(url)
    if told.scheme not in ("http", "https") or not told.hostname:
        raise UsageError("--post takes an address that begins with http:// or https://")
    try:
        asking = request.Request(url, text.encode(), {"Content-Type": "application/json"}, method="POST")
        with request.build_opener(_NoRedirect).open(asking, timeout=_SECONDS):
            pass
    except error.HTTPError as why:
        why.close()
        raise UsageError(f"{told.hostname} refused the message with status {why.code}") from why
    except (error.URLError, OSError, ValueError) as why:
        raise UsageError(f"{told.hostname} cannot be reached: {getattr(why, 'reason', why)}") from why
