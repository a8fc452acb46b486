"""`oomdoctor triage show`: one group of failures."""

from __future__ import annotations

import os

import click

from oomdoctor import __version__
from oomdoctor.api.fleet.show import show_group
from oomdoctor.cli.fleet.opening import open_store
from oomdoctor.cli.fleet.window_options import window_options
from oomdoctor.cli.options import FULL, RULES, STORE, language_option
from oomdoctor.cli.output import locale_language, write
from oomdoctor.cli.output import show as as_text
from oomdoctor.report.triage.group_page import compose
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.window import TimeWindow


@click.command()
@click.argument("number", metavar="GROUP", type=click.IntRange(1))
@STORE
@window_options
@FULL
@language_option()
@RULES
def show(number: int, store: str | None, window: TimeWindow, full: bool, lang: str | None, rules: str | None) -> None:
    """Show a group by its number on the screen for the same period: its jobs, one of them in full, and a message to its users."""
    shown = show_group(open_store(store), number, window=window, rules=rules)
    document = compose(shown, Wording(lang or locale_language(os.environ)), __version__)
    write(as_text(document, "terminal", to_terminal=True, full=full, only_keys=True), None)
