"""`oomdoctor report`: a diagnosis as an issue to file."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.cli.diagnose import inputs, say_gaps
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.cli.progress import Progress
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.pipeline import diagnose as run
from oomdoctor.scan.sources import expand


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "--for",
    "for_",
    type=click.Choice(["github", "plain"]),
    default="github",
    show_default=True,
    help="Markdown for an issue, or plain text.",
)
@click.option("--config", multiple=True, type=click.Path(), metavar="FILE", help="A config file or launch script of the run (repeatable).")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the report (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
@click.option("--no-redact", is_flag=True, help="Keep user and host names, paths, addresses and tokens as they are.")
@click.option("--exit-zero", is_flag=True, help="End with status 0 also when a memory failure was found.")
def report(
    paths: tuple[str, ...],
    for_: str,
    config: tuple[str, ...],
    output: str | None,
    lang: str | None,
    rules: str | None,
    no_redact: bool,
    exit_zero: bool,
) -> None:
    """Write an issue about a run that died: the message, the figures, versions, settings, and what is still missing.

    PATHS are the logs of one run: files, folders, globs, or - for standard input. Names of people and machines, paths
    in home folders, addresses and tokens are taken out. Read it before you file it.

    \b
    Examples:
      oomdoctor report train.log
      oomdoctor report train.log --config sft.yaml
      oomdoctor report logs/ --lang en --output issue.md
      oomdoctor report train.log --for plain

    Exit status: 0 no memory failure, 1 a memory failure (certain or possible), 2 could not run.
    """
    from oomdoctor.report.issue import issue  # noqa: PLC0415 - wrong use needs no report
    from oomdoctor.report.redact import redact  # noqa: PLC0415

    with Progress() as progress:
        found = run(list(expand(inputs(paths))), load_pack(rules), jobs=min(4, os.cpu_count() or 1), progress=progress.read, config=config)
    document = issue(found, lang or locale_language(os.environ), __version__)
    form = "markdown" if for_ == "github" else "terminal"
    write(show(document if no_redact else redact(document), form, to_terminal=False, full=True), output)
    if say_gaps(found):
        sys.exit(2)
    if found.case.verdict.memory_failure != "no" and not exit_zero:
        sys.exit(1)
