"""`oomdoctor diagnose`: from logs to a report."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from oomdoctor import __version__
from oomdoctor.api.diagnose import diagnose as diagnose_run
from oomdoctor.api.inputs import default_jobs, partly_unread_lines, unread_lines
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.cli.options import (
    EXIT_ZERO,
    FULL,
    MACHINE,
    NO_REDACT,
    RULES,
    SERIES,
    SNAPSHOT,
    config_option,
    format_option,
    language_option,
    output_option,
)
from oomdoctor.cli.output import complain, locale_language, show, write
from oomdoctor.cli.progress import Progress
from oomdoctor.errors import UsageError
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.ingest.streams import stdin_is_terminal
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

_PASTED = 64 << 20
"""The longest text from standard input that is answered; a log of this size comes as a file."""
_BEGINNING = 200_000

FORMATS = ("terminal", "markdown", "json", "html", "svg", "sarif")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@format_option(FORMATS, "report")
@FULL
@click.option("--reply", is_flag=True, help="Write a short answer to the reporter, in the reporter's language, as Markdown to paste.")
@config_option("A config file or launch script of the run (repeatable).")
@SERIES
@SNAPSHOT
@output_option("report")
@language_option(" of the report")
@click.option("--include", multiple=True, metavar="GLOB", help="In folders, read only files that match (repeatable).")
@click.option("--exclude", multiple=True, metavar="GLOB", help="In folders, skip files that match (repeatable).")
@MACHINE
@RULES
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 64), default=None, help="Number of reader threads (default: the number of CPUs, at most 4)."
)
@NO_REDACT
@EXIT_ZERO
def diagnose(
    paths: tuple[str, ...],
    format_: str,
    full: bool,
    reply: bool,
    config: tuple[str, ...],
    series: tuple[str, ...],
    snapshot: tuple[str, ...],
    output: str | None,
    lang: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    env: str,
    rules: str | None,
    jobs: int | None,
    no_redact: bool,
    exit_zero: bool,
) -> None:
    """Find out whether a run ran out of memory, what failed first, where the memory went, and what to change.

    PATHS are the logs of one run: files (including .gz, .zst, .xz, .bz2), folders, globs, or - for standard input. Numbered
    attempts and jobs, several jobs in one folder, and many logs that each failed differently are treated as separate runs: the
    output then has one line per run and the command that shows one in full.

    \b
    Examples:
      oomdoctor diagnose train.log
      oomdoctor diagnose rank0.log rank1.log rank2.log
      oomdoctor diagnose logs/ --include '*.err'
      oomdoctor diagnose train.log --config sft.yaml --config ds_z3.json
      oomdoctor diagnose train.log --series gpu.csv
      oomdoctor diagnose train.log --snapshot oom_rank0.pickle
      pbpaste | oomdoctor diagnose - --format markdown --lang zh
      pbpaste | oomdoctor diagnose - --reply

    Exit status: 0 no memory failure, 1 a memory failure (certain or possible), 2 could not run, or found no failure but
    could not read everything. Anything that could not be read is named on standard error.
    """
    logs = log_paths(paths) if paths or not series else []
    beginning = _beginning(logs, include, exclude) if reply else b""
    is_pasted = reply and set(logs) == {"-"}
    with Progress() as progress:
        diagnosis = diagnose_run(
            beginning if is_pasted else logs,
            name="-",
            config=config,
            series=series,
            snapshot=snapshot,
            environment=None if env == "none" else env,
            rules=rules,
            include=include,
            exclude=exclude,
            jobs=jobs or default_jobs(),
            progress=progress.read,
            early=progress.early if progress.is_shown and not reply else None,
        )
    if reply:
        text = answer(diagnosis, lang, beginning, redact=not no_redact)
    else:
        wording = Wording(lang or locale_language(os.environ))
        text = render(diagnosis, format_, wording, redact=not no_redact, to_terminal=output is None, full=full)
    write(text, output, [source.name for source in diagnosis.case.sources])
    exit_with_verdict(diagnosis, exit_zero=exit_zero)


def render(diagnosis: Diagnosis, format_: str, wording: Wording, *, redact: bool, to_terminal: bool, full: bool = False) -> str:
    """Return the report as text."""
    if format_ == "json":
        from oomdoctor.report.wire.diagnosis import convert_diagnosis  # noqa: PLC0415 - a tenth of the start of the other formats

        return json_text(convert_diagnosis(diagnosis, wording, __version__), redact=redact)
    if format_ == "sarif":
        from oomdoctor.report.wire.sarif import convert_findings  # noqa: PLC0415 - few ask for it

        return json_text(convert_findings(diagnosis, wording, __version__), redact=redact)
    return show(compose(diagnosis, wording, __version__), format_, to_terminal=to_terminal, full=full, redact=redact)


def answer(diagnosis: Diagnosis, lang: str | None, pasted: bytes, *, redact: bool) -> str:
    """Return the answer to the reporter: in `lang`, else in the language of what was pasted, else in the locale's."""
    from oomdoctor.report.issue.reply import compose_reply, language_of  # noqa: PLC0415 - few ask for it

    text = pasted.decode("utf-8", "replace")
    wording = Wording(lang or language_of(text) or locale_language(os.environ))
    return show(compose_reply(diagnosis, wording, __version__, text), "markdown", to_terminal=False, redact=redact)


def exit_with_verdict(diagnosis: Diagnosis, *, exit_zero: bool) -> None:
    """End with 1 where memory failed, and with 2 where nothing says so and an input was not read; standard error names what was not.

    A failure that was seen stays one, whatever else could not be read; that there was none is said of what was read alone.
    """
    nothing = unread_lines(diagnosis)
    unread = nothing or partly_unread_lines(diagnosis)
    complain(unread)
    verdict = diagnosis.case.verdict
    has_failed = verdict.memory_failure != "no" and verdict.settle != "unread-rest"
    if nothing or (unread and not has_failed):
        sys.exit(2)
    if has_failed and not exit_zero:
        sys.exit(1)


def log_paths(paths: Sequence[str]) -> Sequence[str]:
    """Return the inputs as they were named; standard input where none was and something comes in there."""
    if paths:
        return paths
    if stdin_is_terminal():
        raise UsageError("specify a log, a folder, or - for standard input (oomdoctor diagnose --help)")
    return ["-"]


def _beginning(logs: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> bytes:
    """Return what was pasted, or the beginning of the first file, to see in which language its author writes."""
    if set(logs) == {"-"}:
        data = sys.stdin.buffer.read(_PASTED + 1)
        if len(data) > _PASTED:
            raise UsageError("--reply answers an issue; pass a log of this size as a file")
        return data
    try:
        with open(str(next(expand_sources(logs, include, exclude), "")), "rb") as file:
            return file.read(_BEGINNING)
    except (OSError, ValueError):
        return b""
