"""`oomdoctor triage`: one row a job of folders of logs, and what the rows come to together."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor.api.fleet.triage import triage as triage_logs
from oomdoctor.cli.options import RULES
from oomdoctor.report.triage.row_text import redact_line
from oomdoctor.triage.store.export import write_rows

_MOST_PROCESSES = 256


@click.command()
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="ROWS", type=click.Path(), help="Write a row for each job there: .jsonl, .sqlite or .parquet.")
@click.option(
    "--records", metavar="FILE", multiple=True, type=click.Path(exists=True), help="What the scheduler says: sacct, pods. A file or folder."
)
@click.option("--store", metavar="FOLDER", type=click.Path(), help="Keep rows there, so that the next run reads only what is new.")
@click.option("--jobs", metavar="N", type=click.IntRange(1, _MOST_PROCESSES), default=os.cpu_count() or 1, help="How many processes read.")
@click.option("--refresh", is_flag=True, help="Read everything again, changed or not.")
@RULES
def triage(
    paths: tuple[str, ...], output: str | None, records: tuple[str, ...], store: str | None, jobs: int, refresh: bool, rules: str | None
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
    if output is not None:
        write_rows(result.folder, output)
    fleet = result.fleet
    click.echo(
        f"{fleet.jobs} jobs, {result.files} files, {fleet.failed} died of memory in {len(fleet.groups)} groups, {fleet.possible} may have"
    )
    if fleet.failed:
        sys.exit(1)
