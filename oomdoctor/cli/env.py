"""`oomdoctor env`: this machine, its cards and the interpreter of the run, and what is wrong with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor import __version__
from oomdoctor.cli.machine import described_machine
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.machine.findings import environment_findings

if TYPE_CHECKING:
    from oomdoctor.case.diagnosis import Finding
    from oomdoctor.case.environment import Environment

FORMATS = ("terminal", "markdown", "json", "html")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--python", "-p", metavar="PATH", help="The interpreter of the run, or its environment's folder (default: the active one's).")
@click.option("--deep", is_flag=True, help="Import torch in that interpreter and ask it too (takes as long as that import).")
@click.option("--from", "from_", metavar="FILE", help="Read the machine from what a tool printed (- for standard input), not from here.")
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the report.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the report (default: the locale's).")
@click.option("--check", is_flag=True, help="End with status 1 when something was found that makes runs fail.")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
@click.option("--no-redact", is_flag=True, help="Keep user and host names, paths, addresses and tokens as they are.")
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
    """Say what this machine, its driver, its cards and its torch are, and what of it would make a run fail.

    torch is not imported unless --deep asks for it; then it runs in a process of its own, with a time limit. --from takes
    the output of collect_env (torch, vLLM, SGLang), transformers env, accelerate env, llamafactory-cli env, ds_report,
    nvidia-smi, pip freeze, conda list, an issue that holds any of them, or the JSON of this command.

    \b
    Examples:
      oomdoctor env
      oomdoctor env --python ~/train/.venv --deep
      oomdoctor env --format json --output env.json
      oomdoctor env --from issue.md
      oomdoctor env --check && torchrun train.py

    Exit status: 0 looked, 1 with --check when something makes runs fail, 2 could not run.
    """
    environment = _here(python, deep=deep) if from_ is None else described_machine(from_)
    found = environment_findings(environment, load_pack(rules))
    language = lang or locale_language(os.environ)
    write(render(environment, found, format_, language, redact=not no_redact, to_terminal=output is None, name=from_), output)
    if check and any(one.severity == "error" for one in found):
        sys.exit(1)


def render(
    environment: Environment,
    found: Sequence[Finding],
    format_: str,
    lang: str,
    *,
    redact: bool,
    to_terminal: bool,
    name: str | None = None,
) -> str:
    """The report as text; `name` is the file that the environment was read from."""
    if format_ == "json":
        import json  # noqa: PLC0415 - each format loads only what it needs

        from oomdoctor.report.wire.environment import to_json  # noqa: PLC0415

        return json.dumps(to_json(environment, found, version=__version__, redact=redact, lang=lang), ensure_ascii=False, indent=1) + "\n"
    from oomdoctor.machine.facts import environment_facts  # noqa: PLC0415
    from oomdoctor.report.machine.environment import compose_environment  # noqa: PLC0415

    document = compose_environment(environment, found, environment_facts(environment), lang, __version__, name)
    if redact:
        from oomdoctor.report.safety.redact import redact as hide  # noqa: PLC0415

        document = hide(document)
    return show(document, format_, to_terminal=to_terminal)


def _here(python: str | None, *, deep: bool) -> Environment:
    from oomdoctor.machine.collect.environment import collect_environment  # noqa: PLC0415 - not for what was read from a file
    from oomdoctor.machine.collect.interpreter import executable  # noqa: PLC0415

    if python is not None and executable(os.path.expanduser(python)) is None:
        raise UsageError(f"--python {python}: no interpreter there")
    return collect_environment(os.environ, python=None if python is None else os.path.expanduser(python), deep=deep)
