"""`oomdoctor env`: this machine, its cards and the interpreter of the run, and what is wrong with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from oomdoctor import __version__
from oomdoctor.api.environment import environment
from oomdoctor.case.diagnosis import Finding, KnownBug
from oomdoctor.case.environment import Environment
from oomdoctor.cli.options import NO_REDACT, RULES, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.machine.facts import environment_facts
from oomdoctor.report.machine.environment import compose_environment
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.environment import convert_environment
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "json", "html")


@click.command()
@click.option("--python", "-p", metavar="PATH", help="The run's interpreter, or its environment folder (default: the active one).")
@click.option("--deep", is_flag=True, help="Import torch in that interpreter and query it too (takes as long as the import).")
@click.option("--from", "from_", metavar="FILE", help="Read the machine from a tool's output (- for standard input), not from here.")
@format_option(FORMATS, "report")
@output_option("report")
@language_option(" of the report")
@click.option("--check", is_flag=True, help="Exit with status 1 if anything was found that would make runs fail.")
@RULES
@NO_REDACT
def env(
    python: str | None,
    deep: bool,
    from_: str | None,
    format_: str,
    output: str | None,
    lang: str | None,
    check: bool,
    rules: str | None,
    no_redact: bool,
) -> None:
    """Describe this machine, its driver, its cards and its torch, and report anything that would make a run fail.

    torch is not imported unless --deep is given; it is then imported in a separate process with a time limit. --from reads the
    output of collect_env (torch, vLLM, SGLang), transformers env, accelerate env, llamafactory-cli env, ds_report, nvidia-smi,
    pip freeze, conda list, an issue that contains any of them, or the JSON of this command.

    \b
    Examples:
      oomdoctor env
      oomdoctor env --python ~/train/.venv --deep
      oomdoctor env --format json --output env.json
      oomdoctor env --from issue.md
      oomdoctor env --check && torchrun train.py

    Exit status: 0 completed, 1 with --check if something would make runs fail, 2 could not run.
    """
    machine = environment(from_, python=python, deep=deep, rules=rules)
    wording = Wording(lang or locale_language(os.environ))
    text = render(
        machine.environment,
        machine.findings,
        format_,
        wording,
        redact=not no_redact,
        to_terminal=output is None,
        name=from_,
        bugs=machine.bugs,
    )
    write(text, output)
    if check and any(finding.severity == "error" for finding in machine.findings):
        sys.exit(1)


def render(
    machine: Environment,
    findings: Sequence[Finding],
    format_: str,
    wording: Wording,
    *,
    redact: bool,
    to_terminal: bool,
    name: str | None = None,
    bugs: Sequence[KnownBug] = (),
) -> str:
    """Return the report as text; `name` is the file that the machine was read from, `bugs` are those of what is installed."""
    if format_ == "json":
        return json_text(convert_environment(machine, findings, wording, __version__, redact=redact, bugs=bugs), redact=redact)
    document = compose_environment(machine, findings, environment_facts(machine), wording, __version__, name, bugs=bugs)
    return show(document, format_, to_terminal=to_terminal, redact=redact)
