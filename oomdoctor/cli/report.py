"""`oomdoctor report`: a diagnosis as an issue to file."""

from __future__ import annotations

import os
from functools import partial

import click

from oomdoctor import __version__
from oomdoctor.api.diagnose import diagnose
from oomdoctor.api.inputs import default_jobs
from oomdoctor.case.case import SEVERAL_RUNS, reported_run
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.cli.clipboard import copy
from oomdoctor.cli.diagnose import exit_with_verdict, log_paths
from oomdoctor.cli.options import EXIT_ZERO, MACHINE, NO_REDACT, RULES, config_option, language_option, output_option
from oomdoctor.cli.output import complain, locale_language, show, write
from oomdoctor.cli.progress import Progress
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.issue.form_text import form_text
from oomdoctor.report.issue.issue import compose_issue
from oomdoctor.report.wording.wording import Wording

PROJECTS = (
    "pytorch", "transformers", "accelerate", "deepspeed", "llamafactory", "glm-4", "vllm", "axolotl", "unsloth", "ms-swift", "torchtitan",
    "trl", "verl", "sglang", "ollama", "llama-cpp", "comfyui",
)  # fmt: skip
"""The projects with a form in rules/forms; listed here so that --help reads no rules."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option(
    "--for",
    "for_",
    type=click.Choice(["github", "plain", *PROJECTS]),
    default="github",
    show_default=True,
    metavar="github|plain|PROJECT",
    help=f"Markdown for any issue, plain text, or the bug form of {', '.join(PROJECTS[:-1])} or {PROJECTS[-1]}.",
)
@config_option("A config file or launch script of the run (repeatable).")
@MACHINE
@output_option("report")
@click.option(
    "--copy", "copies", is_flag=True, help="Also copy the report to the clipboard, through the terminal's own escape sequence (OSC 52)."
)
@language_option(" of the report")
@RULES
@NO_REDACT
@EXIT_ZERO
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

    PATHS are the logs of one run: files, folders, globs, or - for standard input. Names of people and machines, paths in home
    folders, addresses and tokens are removed. Read it before you file it.

    \b
    Examples:
      oomdoctor report train.log
      oomdoctor report train.log --config sft.yaml
      oomdoctor report logs/ --lang en --output issue.md
      oomdoctor report train.log --for llamafactory --env here
      oomdoctor report train.log --for vllm --env env.txt --output issue.md
      oomdoctor report train.log --for pytorch --copy
      oomdoctor report train.log --for plain

    Exit status: 0 no memory failure, 1 a memory failure (certain or possible), 2 could not run, or found no failure but
    could not read everything.
    """
    with Progress() as progress:
        read = partial(
            diagnose,
            config=config,
            environment=None if env == "none" else env,
            rules=rules,
            jobs=default_jobs(),
            progress=progress.read,
        )
        diagnosis = read(log_paths(paths))
        if diagnosis.case.verdict.reason == SEVERAL_RUNS:
            run = reported_run(diagnosis.case.runs)
            complain([f"these logs come from several runs; this report is about {run.name}"])
            diagnosis = read(run.sources)
    wording = Wording(lang or locale_language(os.environ))
    if for_ in PROJECTS:
        pack, is_asked = load_pack(over=rules), lang is not None
        text = form_text(diagnosis, for_, pack, wording, __version__, is_asked=is_asked, redact=not no_redact)
    else:
        text = _issue(diagnosis, "markdown" if for_ == "github" else "terminal", wording, redact=not no_redact)
    write(text, output, [source.name for source in diagnosis.case.sources])
    if copies:
        _copy(text)
    exit_with_verdict(diagnosis, exit_zero=exit_zero)


def _copy(text: str) -> None:
    hindrance = copy(text, os.environ)
    click.echo(f"oomdoctor: not copied: {hindrance}" if hindrance else "oomdoctor: copied, if the terminal allows it", err=True)


def _issue(diagnosis: Diagnosis, format_: str, wording: Wording, *, redact: bool) -> str:
    return show(compose_issue(diagnosis, wording, __version__), format_, to_terminal=False, full=True, redact=redact)
