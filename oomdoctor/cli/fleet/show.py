"""`oomdoctor triage show`: one group of failures."""

from __future__ import annotations

import os

import click

from oomdoctor import __version__
from oomdoctor.api.fleet.show import show_group
from oomdoctor.api.fleet.stores import last_store
from oomdoctor.cli.options import FULL, RULES, STORE, language_option
from oomdoctor.cli.output import locale_language, write
from oomdoctor.cli.output import show as as_text
from oomdoctor.report.triage.group_page import compose
from oomdoctor.report.wording.wording import Wording


@click.command()
@click.argument("number", metavar="GROUP", type=click.IntRange(1))
@STORE
@FULL
@language_option()
@RULES
def show(number: int, store: str | None, full: bool, lang: str | None, rules: str | None) -> None:
    """Show a group by its number: its jobs, one of them in full, and what to write to its user."""
    shown = show_group(last_store(store), number, rules=rules)
    document = compose(shown, Wording(lang or locale_language(os.environ)), __version__)
    write(as_text(document, "terminal", to_terminal=True, full=full), None)
