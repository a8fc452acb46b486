"""`oomdoctor triage logs` and `triage merge`: rows of many jobs, and what they come to together."""

from __future__ import annotations

import os
import sys
from typing import Literal

import click

from oomdoctor import __version__
from oomdoctor.api.fleet.merge import merge as merge_stores
from oomdoctor.api.fleet.triage import TriageResult
from oomdoctor.api.fleet.triage import triage as triage_logs
from oomdoctor.cli.fleet.window_options import window_options
from oomdoctor.cli.options import EXIT_ZERO, RULES, STORE, format_option, language_option
from oomdoctor.cli.output import complain, locale_language, show, write
from oomdoctor.cli.progress import FileProgress
from oomdoctor.errors import UsageError
from oomdoctor.report.triage.row_text import redact_line
from oomdoctor.report.triage.screen import compose
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.fleet.summary import convert_fleet
from oomdoctor.report.wording.triage import READING, SHARD_DONE
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.store.export import write_rows
from oomdoctor.triage.window import TimeWindow, span_of

_MOST_PROCESSES = 256
_FOLDER = "logs"
"""A folder that is called as this command is, and that most people mean by `oomdoctor triage logs`."""
OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False),
    metavar="ROWS",
    help="Write one row per job to this file: .jsonl, .sqlite or .parquet.",
)
FORMAT = format_option(("terminal", "markdown", "json"), "summary")
FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["failure", "new-group"]),
    default="failure",
    show_default=True,
    help="When to exit with status 1: on any memory failure, or only on a group that is new or came back after a week.",
)


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Read I/N: the I-th of N shards, I from 0."""
    if value is None:
        return None
    first, _, second = value.partition("/")
    if not (first.isdecimal() and second.isdecimal() and int(first) < int(second)):
        raise click.BadParameter(f"{value!r} is not in the form 0/8: shards are counted from 0", ctx, param)
    return int(first), int(second)


@click.command()
@click.argument("paths", metavar="PATHS...", nargs=-1)
@click.option("--files-from", metavar="FILE", help="More paths, one per line or NUL-terminated; - reads them from standard input.")
@OUTPUT
@click.option(
    "--records",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True),
    help="Scheduler records (repeatable): sacct --parsable2, JSON from Slurm or kubectl (pods, events); a file or a folder of them.",
)
@STORE
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, _MOST_PROCESSES), default=os.cpu_count() or 1, help="Number of reader processes."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the work runs: locally, or on a Ray cluster.",
)
@click.option("--address", metavar="ADDRESS", help="The Ray cluster (default: the one in RAY_ADDRESS, or the one running here).")
@click.option(
    "--shard",
    metavar="I/N",
    callback=_shard,
    help="Process the I-th of N equal parts of the work, starting at 0; the shards may share a --store. Then: oomdoctor triage merge.",
)
@click.option("--keep", metavar="SPAN", help="Drop rows of jobs that ended longer ago (90d); their logs are not read again.")
@window_options
@click.option("--refresh", is_flag=True, help="Read everything again, whether or not it changed.")
@FORMAT
@language_option()
@RULES
@FAIL_ON
@EXIT_ZERO
def logs(
    paths: tuple[str, ...],
    files_from: str | None,
    output: str | None,
    records: tuple[str, ...],
    store: str | None,
    jobs: int,
    engine: Literal["local", "ray"],
    address: str | None,
    shard: tuple[int, int] | None,
    keep: str | None,
    window: TimeWindow,
    refresh: bool,
    format_: str,
    lang: str | None,
    rules: str | None,
    fail_on: str,
    exit_zero: bool,
) -> None:
    """Make one row per job, and summarize them. A second run reads only what is new.

    PATHS are files, folders, globs, or object-store URLs (s3://bucket/logs). Supported: logs as laid out by Slurm, torchrun,
    Kubernetes, Docker and Ray, log-store exports, and archives.

    Exit status: 0 no memory failures, 1 some (see --fail-on), 2 could not run, or read nothing; for a shard 0 or 2.
    """
    if not paths and files_from is None and os.path.isdir(_FOLDER):
        paths = (_FOLDER,)
    if not paths and files_from is None:
        raise UsageError("which logs? Give files, folders, globs or URLs, or --files-from")
    if shard is not None and output is not None:
        raise UsageError("--output: a shard has only some of the rows; oomdoctor triage merge writes them all")
    wording = Wording(lang or locale_language(os.environ))
    progress = FileProgress(lambda done, in_all, rate: wording.say(READING, done=done, all=in_all, rate=rate))
    try:
        result = triage_logs(
            paths,
            redact=redact_line,
            files_from=files_from,
            store=store,
            records=records,
            rules=rules,
            jobs=jobs,
            engine=engine,
            address=address,
            refresh=refresh,
            shard=shard,
            window=window,
            keep=None if keep is None else span_of(keep, "--keep"),
            progress=progress.show,
        )
    finally:
        progress.end()
    if shard is not None:
        complain(result.problems)
        told = wording.say(SHARD_DONE, n=shard[0], of=shard[1], files=result.files, read=result.read, store=os.path.dirname(result.folder))
        write(f"{told}\n", None)
        return
    _tell(result, output, format_, lang)
    _end(result, fail_on, exit_zero)


def _tell(result: TriageResult, output: str | None, format_: str, lang: str | None) -> None:
    """Write the rows and the screen."""
    complain(result.problems)
    if output is not None:
        write_rows(result.folder, output, result.fleet.window)
    wording = Wording(lang or locale_language(os.environ))
    if format_ == "json":
        write(json_text(convert_fleet(result.fleet, result.known, wording)), None)
        return
    write(show(compose(result.fleet, result.known, wording, __version__), format_, to_terminal=True), None)


def _end(result: TriageResult, fail_on: str, exit_zero: bool) -> None:
    """End with the status that a result means."""
    if result.fleet.is_unread:
        sys.exit(2)
    if (result.known.news if fail_on == "new-group" else result.fleet.failed) and not exit_zero:
        sys.exit(1)


@click.command()
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@OUTPUT
@STORE
@FORMAT
@language_option()
@FAIL_ON
@EXIT_ZERO
def merge(
    stores: tuple[str, ...], output: str | None, store: str | None, format_: str, lang: str | None, fail_on: str, exit_zero: bool
) -> None:
    """Merge the results of all shards, or of several triages, into one.

    STORE is the folder that the shards shared, or one folder per shard; --store is where the merged results are kept.

    Exit status: 0 no memory failures, 1 some (see --fail-on), 2 could not run, or read nothing.
    """
    result = merge_stores(stores, into=store)
    _tell(result, output, format_, lang)
    _end(result, fail_on, exit_zero)
