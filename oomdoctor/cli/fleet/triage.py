"""`oomdoctor triage`: one row a job of folders of logs, and what the rows come to together."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.api.fleet.triage import triage as triage_logs
from oomdoctor.cli.options import EXIT_ZERO, RULES, language_option
from oomdoctor.cli.output import complain, locale_language, show, write
from oomdoctor.report.triage.row_text import redact_line
from oomdoctor.report.triage.screen import compose
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.store.export import write_rows

_MOST_PROCESSES = 256


@click.command()
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), metavar="ROWS", help="Write a row for each job there: .jsonl, .sqlite or .parquet."
)
@click.option(
    "--records",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True),
    help="What the scheduler says (repeatable): sacct --parsable2, pods as JSON; a file or a folder of them.",
)
@click.option(
    "--store",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Keep the rows there: the next run reads only what is new. Default: the cache.",
)
@click.option("--jobs", metavar="N", type=click.IntRange(1, _MOST_PROCESSES), default=os.cpu_count() or 1, help="How many processes read.")
@click.option("--refresh", is_flag=True, help="Read everything again, changed or not.")
@language_option()
@RULES
@EXIT_ZERO
def triage(
    paths: tuple[str, ...],
    output: str | None,
    records: tuple[str, ...],
    store: str | None,
    jobs: int,
    refresh: bool,
    lang: str | None,
    rules: str | None,
    exit_zero: bool,
) -> None:
    """Say of folders of job logs which jobs died of memory, of which, where first, and which of them are the same.

    PATHS are files, folders or globs: Slurm, torchrun, Kubernetes, Docker, Ray, exports of log stores, archives.

    \b
    Examples:
      oomdoctor triage /var/log/jobs
      oomdoctor triage logs/ --records sacct.psv -o rows.jsonl

    Exit status: 0 no failure of memory, 1 some, 2 could not run.
    """
    result = triage_logs(paths, redact=redact_line, store=store, records=records, rules=rules, jobs=jobs, refresh=refresh)
    complain(result.problems)
    if output is not None:
        write_rows(result.folder, output)
    document = compose(result.fleet, Wording(lang or locale_language(os.environ)), __version__)
    write(show(document, "terminal", to_terminal=True), None)
    if result.fleet.failed and not exit_zero:
        sys.exit(1)
