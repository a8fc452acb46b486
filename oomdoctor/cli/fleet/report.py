"""`oomdoctor triage report`: a whole triage as one page."""

from __future__ import annotations

import os

import click

from oomdoctor import __version__
from oomdoctor.api.fleet.show import show_fleet
from oomdoctor.cli.fleet.opening import open_store
from oomdoctor.cli.fleet.window_options import window_options
from oomdoctor.cli.options import RULES, STORE, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.report.triage.fleet_page import compose
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.window import TimeWindow


@click.command()
@click.option("--html", "as_html", is_flag=True, help="Write a single HTML file with charts instead of Markdown.")
@output_option("report")
@STORE
@window_options
@language_option()
@RULES
def report(as_html: bool, output: str | None, store: str | None, window: TimeWindow, lang: str | None, rules: str | None) -> None:
    """Write the last triage as one report: days, nodes, and a section for each group with its jobs and a message to its users."""
    document = compose(show_fleet(open_store(store), window=window, rules=rules), Wording(lang or locale_language(os.environ)), __version__)
    write(show(document, "html" if as_html else "markdown", to_terminal=output is None, only_keys=True), output)
