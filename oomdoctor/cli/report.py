"""`oomdoctor report`: a diagnosis as an issue to file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from oomdoctor import __version__
from oomdoctor.api.pipeline import diagnose_logs as run
from oomdoctor.cli.diagnose import inputs, say_gaps
from oomdoctor.cli.machine import asked_machine
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.cli.progress import Progress
from oomdoctor.errors import UsageError
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import load_pack

if TYPE_CHECKING:
    from oomdoctor.case.diagnosis import Diagnosis
    from oomdoctor.knowledge.pack import Pack


PROJECTS = (
    "pytorch", "transformers", "accelerate", "deepspeed", "llamafactory", "glm-4", "vllm", "axolotl", "unsloth", "ms-swift", "torchtitan",
    "ollama",
)  # fmt: skip
"""The projects with a form in rules/forms; listed here so that --help reads no rules."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "--for",
    "for_",
    type=click.Choice(["github", "plain", *PROJECTS]),
    default="github",
    show_default=True,
    metavar="github|plain|PROJECT",
    help=f"Markdown for any issue, plain text, or the bug form of {', '.join(PROJECTS[:-1])} or {PROJECTS[-1]}.",
)
@click.option("--config", multiple=True, type=click.Path(), metavar="FILE", help="A config file or launch script of the run (repeatable).")
@click.option(
    "--env",
    default="auto",
    show_default=True,
    metavar="auto|here|none|FILE",
    help="The run's machine: this one if it agrees with the log, this one, none, or a file that describes it.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--copy", "copies", is_flag=True, help="Put the report on the clipboard too, by the terminal's own escape (OSC 52).")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the report (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
@click.option("--no-redact", is_flag=True, help="Keep user and host names, paths, addresses and tokens as they are.")
@click.option("--exit-zero", is_flag=True, help="End with status 0 also when a memory failure was found.")
def report(
    paths: tuple[str, ...],
    for_: str,
    config: tuple[str, ...],
    env: str,
    output: str | None,
    copies: bool,
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
      oomdoctor report train.log --for llamafactory --env here
      oomdoctor report train.log --for vllm --env env.txt --output issue.md
      oomdoctor report train.log --for pytorch --copy
      oomdoctor report train.log --for plain

    Exit status: 0 no memory failure, 1 a memory failure (certain or possible), 2 could not run.
    """
    pack, machine = load_pack(rules), asked_machine(env)
    with Progress() as progress:
        found = run(
            list(expand_sources(inputs(paths))),
            pack,
            jobs=min(4, os.cpu_count() or 1),
            progress=progress.read,
            config=config,
            machine=machine,
        )
    language = lang or locale_language(os.environ)
    if for_ in PROJECTS:
        text = _form(found, for_, pack, language, asked=lang is not None, redact=not no_redact)
    else:
        text = _issue(found, "markdown" if for_ == "github" else "terminal", language, redact=not no_redact)
    write(text, output)
    if copies:
        _copy(text)
    if say_gaps(found):
        sys.exit(2)
    if found.case.verdict.memory_failure != "no" and not exit_zero:
        sys.exit(1)


def _copy(text: str) -> None:
    from oomdoctor.cli.clipboard import copy  # noqa: PLC0415 - only where it was asked for

    hindered = copy(text, os.environ)
    click.echo(f"oomdoctor: not copied: {hindered}" if hindered else "oomdoctor: copied, if the terminal allows it", err=True)


def _issue(found: Diagnosis, format_: str, lang: str, *, redact: bool) -> str:
    from oomdoctor.report.issue.issue import issue  # noqa: PLC0415 - wrong use needs no report
    from oomdoctor.report.safety.redact import redact as hide  # noqa: PLC0415

    document = issue(found, lang, __version__)
    return show(hide(document) if redact else document, format_, to_terminal=False, full=True)


def _form(found: Diagnosis, project: str, pack: Pack, lang: str, *, asked: bool, redact: bool) -> str:
    """The project's form, in a language that it takes unless the user asked for another."""
    from oomdoctor.knowledge.project_forms import project_form  # noqa: PLC0415 - only for a form
    from oomdoctor.report.issue.form_markdown import render  # noqa: PLC0415
    from oomdoctor.report.issue.forms import form  # noqa: PLC0415
    from oomdoctor.report.safety.redact import redact as hide  # noqa: PLC0415

    try:
        own = project_form(pack, project)
    except KeyError as why:
        raise UsageError(f"--for {project}: these rules have no form {why}") from why
    language = lang if asked or lang in own.form.languages else own.form.languages[0]
    document = form(found, own, language, __version__)
    return render(hide(document) if redact else document, own.form)
