"""The built page on loopback, the proxy that sees every request of a browser, and the browser that has nothing but this proxy."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--proxy-bypass-list=<-loopback>",
)
SCREEN = {"width": 1280, "height": 900}
PATIENCE_MS = 60_000
"""A guard against hanging, far above what anything here takes."""
BROWSERS_OWN = (".googleapis.com", ".google.com", ".gvt1.com")
"""Chromium asks these by itself for updates, whatever is open, flags or no flags; a page that did would be seen in its own requests."""
TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


class Request(NamedTuple):
    """What a browser sent."""

    method: str
    host: str
    path: str
    rest: str
    """Its headers and its body."""


class PageServer:
    """Serves a folder and is the proxy of the browser: what is for another host is written down and refused."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[Request] = []
        self.is_stopped = False
        handler = type("Handler", (_Handler,), {"server_of": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}/"

    def __enter__(self) -> PageServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; whoever asks is refused from now on, also on a connection that is open."""
        self.is_stopped = True
        self._server.shutdown()
        self._server.server_close()

    @property
    def hosts(self) -> set[str]:
        """The hosts that were asked for, without what the browser asks by itself."""
        hosts = {request.host for request in self.requests}
        return {host for host in hosts if not host.partition(":")[0].endswith(BROWSERS_OWN)}

    @property
    def own(self) -> list[Request]:
        """The requests for this server."""
        return [request for request in self.requests if request.host == self.host]


class _Handler(SimpleHTTPRequestHandler):
    server_of: PageServer
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, **TYPES}  # noqa: RUF012 - the base class has a plain dict
    protocol_version = "HTTP/1.1"

    def parse_request(self) -> bool:
        """Note the request, and take the address of a proxy's request as a path."""
        if not super().parse_request() or self.server_of.is_stopped:
            self.close_connection = True
            return False
        host, path = (self.path, "") if self.command == "CONNECT" else (urlsplit(self.path).netloc, urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        host = host or self.headers.get("Host", "")
        self.server_of.requests.append(Request(self.command, host, self.path, f"{self.headers}\n{body}"))
        if host != self.server_of.host:
            self.send_error(502)
            return False
        self.path = path
        return True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def started_browser(served: PageServer) -> Iterator[Any]:
    """Start the system's Chromium with a new profile, behind the proxy."""
    sync_playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").sync_playwright
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(QUIET), proxy={"server": f"http://{served.host}"})
        yield running
        running.close()


EMPTY = """() => {
    for (const box of document.querySelectorAll('.share input:not(:checked)')) box.click()
    for (const remove of document.querySelectorAll('.files button')) remove.click()
    document.querySelector('#view-log.answered [data-act=new]')?.click()
    document.querySelector('#log-text').value = ''
}"""
GO = """hash => new Promise(there => {
    if (location.hash === hash) return there()
    addEventListener('hashchange', () => setTimeout(there), { once: true })
    location.hash = hash
})"""


def begin_anew(page: Any) -> None:
    """Bring an open page back to how a reader finds it, in English on a wide screen; what an earlier question left stays below."""
    page.set_viewport_size(SCREEN)
    page.emulate_media(media="screen", color_scheme="light")
    if page.locator("html").get_attribute("lang") != "en":
        page.locator("#language").click()
        page.locator("html[lang=en]").wait_for()
    page.evaluate(EMPTY)
    go_to_address(page, "#log")
    page.locator("#engine-text.ready").wait_for()


def go_to_address(page: Any, address: str) -> None:
    """Open what an address says, without loading the page anew; what it asks is asked then."""
    page.evaluate(GO, address)


def open_view(page: Any, served: PageServer, view: str) -> None:
    """Open a view of the page, and wait until it can answer and is kept for use without a network."""
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{served.url}#{view}")
    page.locator("#engine-text.ready").wait_for()
    is_kept = page.evaluate(
        f"Promise.race([navigator.serviceWorker.ready, new Promise(end => setTimeout(end, {PATIENCE_MS}))]).then(Boolean)"
    )
    assert is_kept, "no service worker: a file of the built page is not the one that the build knows"
