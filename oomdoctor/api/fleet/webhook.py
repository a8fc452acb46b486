"""Send JSON text to an address named by the user, and nowhere else."""

from __future__ import annotations

from http.client import HTTPException
from typing import Any
from urllib import error, parse, request

from oomdoctor.errors import UsageError

_SECONDS = 15


class _NoRedirect(request.HTTPRedirectHandler):
    """Refuses redirects: the text goes where the user said."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def post_json(url: str, text: str) -> None:
    """Send a text with POST. Raise UsageError if the address is not http(s), cannot be reached, or rejects it.

    The path of an address can be a secret (Slack), so messages name only the host.
    """
    host = _host(url)
    try:
        asking = request.Request(url, text.encode(), {"Content-Type": "application/json"}, method="POST")
        with request.build_opener(_NoRedirect).open(asking, timeout=_SECONDS):
            pass
    except error.HTTPError as why:
        why.close()
        raise UsageError(f"{host} rejected the message with status {why.code}") from why
    except OSError as why:
        raise UsageError(f"{host} cannot be reached: {getattr(why, 'reason', why)}") from why
    except (HTTPException, ValueError) as why:  # their messages quote the address
        raise UsageError(f"{host} cannot be reached: the address is malformed, or the response is not HTTP") from why


def _host(url: str) -> str:
    try:
        told = parse.urlsplit(url)
        host = told.hostname if told.scheme in ("http", "https") and told.port != 0 else None
    except ValueError:
        host = None
    if not host:
        raise UsageError("--post needs a URL that begins with http:// or https:// and includes a host")
    return host
