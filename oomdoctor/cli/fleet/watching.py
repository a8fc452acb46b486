"""What a triage came to, for others than the person at the terminal: `triage metrics`, `triage warnings`, `triage notify`."""

from __future__ import annotations

import os

import click

from oomdoctor.api.fleet.stores import last_store
from oomdoctor.api.fleet.sums import sum_up
from oomdoctor.api.fleet.webhook import post_json
from oomdoctor.cli.options import STORE, language_option, output_option
from oomdoctor.cli.output import locale_language, write
from oomdoctor.report.triage.exposition import exposition
from oomdoctor.report.triage.messages import alerts, slack_message
from oomdoctor.report.triage.warning_lines import warning_lines
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

_FORMS = {"slack": slack_message, "alertmanager": alerts}


@click.command()
@STORE
@output_option("figures")
def metrics(store: str | None, output: str | None) -> None:
    """Write the figures of the last triage for Prometheus: `--output /var/lib/node_exporter/oomdoctor.prom`, put there whole."""
    write(exposition(sum_up(last_store(store))), output)


@click.command()
@STORE
@output_option("lines")
@language_option()
def warnings(store: str | None, output: str | None, lang: str | None) -> None:
    """Write who submits again and again what cannot work as it is: user, name, jobs, what to do; tabs between. For job_submit.lua."""
    write(warning_lines(sum_up(last_store(store)).fleet, Wording(lang or locale_language(os.environ))), output)


@click.command()
@click.option("--for", "for_", type=click.Choice(list(_FORMS)), required=True, help="Who takes the message.")
@click.option("--post", metavar="URL", envvar="OOMDOCTOR_WEBHOOK", help="Send it there (or $OOMDOCTOR_WEBHOOK); else it is printed.")
@STORE
@language_option()
def notify(for_: str, post: str | None, store: str | None, lang: str | None) -> None:
    """Tell of the groups that are new to the last triage or came back: once after each triage, and nothing where there are none.

    Without --post nothing is sent anywhere.
    """
    news = sum_up(last_store(store)).news
    if not news:
        return
    text = json_text(_FORMS[for_](news, Wording(lang or locale_language(os.environ))))
    if post is None:
        write(text, None)
        return
    post_json(post, text)
