"""`oomdoctor triage users` and `triage mails`: what a triage came to, by person."""

from __future__ import annotations

import os

import click
from msgspec.json import encode

from oomdoctor.api.fleet.show import show_fleet
from oomdoctor.api.fleet.sums import sum_up
from oomdoctor.cli.fleet.opening import open_store
from oomdoctor.cli.fleet.window_options import window_options
from oomdoctor.cli.options import RULES, STORE, format_option, language_option, output_option
from oomdoctor.cli.output import complain, locale_language, show, write
from oomdoctor.report.document import Document
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.user_message import UserMail, mails_of
from oomdoctor.report.triage.user_table import user_lines, user_table
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.window import TimeWindow

_LONGEST = 200


@click.command()
@STORE
@window_options
@format_option(("terminal", "markdown", "json"), "table")
@output_option("table")
@language_option()
def users(store: str | None, window: TimeWindow, format_: str, output: str | None, lang: str | None) -> None:
    """Write a table by user: jobs that ran out of memory, total jobs, number of groups, and GPU hours lost.

    GPU hours are known for jobs whose records give cards and times (--records).
    """
    lines = user_lines(sum_up(open_store(store), window).fleet)
    if format_ == "json":
        write("".join(f"{encode(line).decode()}\n" for line in lines), output)
        return
    table = user_table(lines, Wording(lang or locale_language(os.environ)))
    write(show(Document("", (table,)), format_, to_terminal=output is None).strip("\n") + "\n", output)


@click.command()
@STORE
@window_options
@format_option(("terminal", "json"), "mails")
@output_option("mails")
@language_option()
@RULES
def mails(store: str | None, window: TimeWindow, format_: str, output: str | None, lang: str | None, rules: str | None) -> None:
    """Write an email to each user whose jobs ran out of memory: which, why, and any remedy that was found. Nothing is sent.

    With --format json, one line per user: user, jobs, subject, text.
    """
    shown = show_fleet(open_store(store), window=window, rules=rules)
    made = mails_of(shown.groups, Wording(lang or locale_language(os.environ)))
    unknown = shown.fleet.users[""].failed if "" in shown.fleet.users else 0
    left = shown.fleet.failed - unknown - sum(mail.jobs for mail in made)
    complain([f"{unknown:,} jobs without an email: their user is unknown"] if unknown else [])
    complain(
        [f"{left:,} jobs without an email: only the newest 1,000 jobs of the {len(shown.groups)} largest groups are covered"]
        if left
        else []
    )
    write("".join(f"{encode(mail).decode()}\n" if format_ == "json" else _text(mail) for mail in made), output)


def _text(mail: UserMail) -> str:
    return f"To: {clean_line(mail.user, _LONGEST)}\nSubject: {clean_line(mail.subject, _LONGEST)}\n\n{mail.text}\n\n"
