"""What a triage came to, for others than the person at the terminal: `triage metrics`, `triage warnings`, `triage notify`."""

from __future__ import annotations

import os

import click

from oomdoctor.api.fleet.sums import sum_up
from oomdoctor.api.fleet.webhook import post_json
from oomdoctor.cli.fleet.opening import open_store
from oomdoctor.cli.fleet.window_options import window_options
from oomdoctor.cli.options import STORE, language_option, output_option
from oomdoctor.cli.output import locale_language, write
from oomdoctor.report.triage.exposition import exposition
from oomdoctor.report.triage.messages import alerts, slack_message
from oomdoctor.report.triage.warning_lines import warning_lines
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.store.told import note_told, told_until
from oomdoctor.triage.window import TimeWindow

_FORMS = {"slack": slack_message, "alertmanager": alerts}


@click.command()
@STORE
@window_options
@output_option("figures")
def metrics(store: str | None, window: TimeWindow, output: str | None) -> None:
    """Write the figures of the last triage for Prometheus, replacing the file atomically.

    For the node exporter: `--output /var/lib/node_exporter/oomdoctor.prom`.

    Without --since, a failure counts as long as its row is kept; with --since 24h, an alert ends when the failures do.
    """
    write(exposition(sum_up(open_store(store), window)), output)


@click.command()
@STORE
@window_options
@output_option("lines")
@language_option()
def warnings(store: str | None, window: TimeWindow, output: str | None, lang: str | None) -> None:
    """List users who keep resubmitting jobs that cannot work as is, tab-separated: user, name, jobs, what to do. For job_submit.lua."""
    write(warning_lines(sum_up(open_store(store), window).fleet, Wording(lang or locale_language(os.environ))), output)


@click.command()
@click.option("--for", "for_", type=click.Choice(list(_FORMS)), required=True, help="The service that receives the message.")
@click.option(
    "--post", metavar="URL", envvar="OOMDOCTOR_WEBHOOK", help="Send it to this URL (or $OOMDOCTOR_WEBHOOK); otherwise it is printed."
)
@STORE
@window_options
@language_option()
def notify(for_: str, post: str | None, store: str | None, window: TimeWindow, lang: str | None) -> None:
    """Report groups that are new in the last triage or came back: once per triage, and nothing if there are none.

    Without --post, nothing is sent anywhere. Anything that cannot be sent is sent next time, along with whatever is new.
    """
    kept = open_store(store)
    sums = sum_up(kept, window)
    wording = Wording(lang or locale_language(os.environ))
    news = sums.news if post is None else sums.news_since(told_until(kept, sums.known, post))
    if not news:
        return
    text = json_text(_FORMS[for_](news, wording))
    if post is None:
        write(text, None)
        return
    post_json(post, text)
    note_told(kept, sums.known, post)
