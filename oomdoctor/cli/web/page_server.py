"""The built page on the loopback address: its files as version.json lists them, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode

from oomdoctor.errors import UsageError

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
}
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src 'self'; style-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_LISTS = ("version.json", "sw.js")
"""The files that no list names, as they are lists themselves."""


class _Listed(Struct):
    bytes: int


class _Version(Struct):
    version: str
    files: dict[str, _Listed]


def listed_files(site: str) -> dict[str, str]:
    """Return the files of a built page: the path in its address, and where the file lies. Raise UsageError where it is none."""
    try:
        with open(os.path.join(site, _LISTS[0]), "rb") as file:
            names = decode(file.read(), type=_Version).files
    except (OSError, DecodeError, ValidationError) as why:
        raise UsageError(f"{site}: contains no built page") from why
    return {name: os.path.join(site, *name.split("/")) for name in (*names, *_LISTS) if ".." not in name.split("/")}


def serve_page(site: str, port: int) -> ThreadingHTTPServer:
    """Return a server of the page on the loopback address; port 0 is any that is free. Raise UsageError where it cannot listen."""
    files = listed_files(site)
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(_Page, files))
    except (OSError, OverflowError) as why:
        raise UsageError(f"cannot listen on port {port}: {(getattr(why, 'strerror', None) or str(why)).lower()}") from why


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "oomdoctor", ""

    def __init__(self, files: Mapping[str, str], *given: object) -> None:
        self._files = files
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(is_sent=True)

    def do_HEAD(self) -> None:
        """Send what is told of a file."""
        self._answer(is_sent=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - the name of the base class
        """Say nothing: the terminal belongs to the user."""

    def _answer(self, *, is_sent: bool) -> None:
        # A page elsewhere may have given its own name the address of this machine; it is not to read along.
        port = self.connection.getsockname()[1]
        named = "" if port == HTTP_PORT else f":{port}"
        if self.headers.get("Host") not in (f"127.0.0.1{named}", f"localhost{named}"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        name = urlsplit(self.path).path.lstrip("/") or "index.html"
        try:
            with open(self._files[name], "rb") as file:
                data = file.read()
        except (KeyError, OSError):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        kind = _TYPES.get(os.path.splitext(name)[1], "application/octet-stream")
        for header, value in {"Content-Type": kind, "Content-Length": str(len(data)), **_HEADERS}.items():
            self.send_header(header, value)
        self.end_headers()
        if is_sent:
            self.wfile.write(data)
