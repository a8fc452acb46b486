"""`oomdoctor web`: the page in the browser of this machine."""

from __future__ import annotations

import os
import webbrowser
from threading import Thread

import click

from oomdoctor.cli.web.page_server import serve_page
from oomdoctor.errors import UsageError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PLACES = (os.path.join(_PACKAGE, "site"), os.path.join(os.path.dirname(_PACKAGE), "dist", "site"))
"""Inside an installed package that brings the page, and where it is built in a checkout."""


@click.command()
@click.option("--site", type=click.Path(file_okay=False), metavar="FOLDER", help="The built page (default: that of the package).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port (default: any that is free).")
@click.option("--no-browser", is_flag=True, help="Only say the address.")
def web(site: str | None, port: int, no_browser: bool) -> None:
    """Open the page that diagnoses logs and sizes runs in the browser of this machine.

    The page is served on the loopback address alone. It computes in the browser; nothing is sent anywhere, and nobody else can reach it.

    \b
    Examples:
      oomdoctor web
      oomdoctor web --port 8080 --no-browser
      oomdoctor web --site dist/site

    Exit status: 0 ended by Ctrl-C, 2 could not run.
    """
    with serve_page(site or _built(), port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        click.echo(f"oomdoctor: {address} (Ctrl-C ends it)")
        if not no_browser:
            # Beside the server: a browser of the terminal (w3m, lynx) comes back only when it is left.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


def _built() -> str:
    """Return the folder of the page. Raise UsageError that says how to get it where there is none."""
    site = next((place for place in _PLACES if os.path.isfile(os.path.join(place, "version.json"))), None)
    if site is None:
        how = "in a checkout of oomdoctor: python tools/build_site.py --out dist/site; then oomdoctor web --site dist/site"
        raise UsageError(f"this installation does not bring the page; {how}")
    return site
