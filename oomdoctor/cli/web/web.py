"""`oomdoctor web`: the page in the browser of this machine."""

from __future__ import annotations

import os
import webbrowser
from importlib.util import find_spec
from threading import Thread

import click

from oomdoctor.cli.web.page_server import serve_page
from oomdoctor.errors import UsageError

_PAGE = "oomdoctor_page"
"""The package that brings the page (`pip install 'oomdoctor[web]'`)."""
_CHECKOUT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "dist", "site")
"""Where it is built in a checkout."""


@click.command()
@click.option("--site", type=click.Path(file_okay=False), metavar="FOLDER", help="The built page (default: the installed one).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port (default: any free port).")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def web(site: str | None, port: int, no_browser: bool) -> None:
    """Open the page that diagnoses logs and sizes runs in this machine's browser.

    The page is served only on the loopback address. It computes in the browser; nothing is sent anywhere, and nobody else can
    reach it.

    \b
    Examples:
      oomdoctor web
      oomdoctor web --port 8080 --no-browser
      oomdoctor web --site dist/site

    Exit status: 0 stopped with Ctrl-C, 2 could not run.
    """
    with serve_page(site or _built(), port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        click.echo(f"oomdoctor: {address} (press Ctrl-C to stop)")
        if not no_browser:
            # Beside the server: a browser of the terminal (w3m, lynx) comes back only when it is left.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


def _built() -> str:
    """Return the folder of the page. Raise UsageError that says how to get it where there is none."""
    site = next((place for place in _places() if os.path.isfile(os.path.join(place, "version.json"))), None)
    if site is None:
        how = "or in a checkout of oomdoctor: python tools/build_site.py --out dist/site; then oomdoctor web --site dist/site"
        raise UsageError(f"the page is not installed: pip install 'oomdoctor[web]'; {how}")
    return site


def _places() -> list[str]:
    """Return where the page may lie: that of a checkout first, as it is the newer one there."""
    spec = find_spec(_PAGE)
    packaged = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [_CHECKOUT, *(os.path.join(place, "site") for place in packaged)]
