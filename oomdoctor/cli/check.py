"""`oomdoctor check`: a config before the run: what of it is wrong, and whether it fits the cards."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.api.check import check as check_config
from oomdoctor.api.results import ConfigCheck
from oomdoctor.cli.options import GPUS, HUB, MODEL_OF_CONFIG, RULES, SERVER_VERSION, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.report.edits.check import compose, findings
from oomdoctor.report.wire.check import convert_check
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.sarif import convert_config_issues
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "json", "sarif")


@click.command()
@click.argument("configs", nargs=-1, required=True, type=click.Path())
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB); also checks whether the run fits.")
@GPUS
@MODEL_OF_CONFIG
@HUB
@SERVER_VERSION
@click.option("--strict", is_flag=True, help="Exit with status 1 on warnings, and if the run may not fit.")
@format_option(FORMATS, "report")
@output_option("report")
@language_option(" of the report")
@RULES
def check(
    configs: tuple[str, ...],
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    hub: bool,
    server_version: str | None,
    strict: bool,
    format_: str,
    output: str | None,
    lang: str | None,
    rules: str | None,
) -> None:
    """Check a config before anything runs: what would stop the run, what has no effect, and whether it fits the cards.

    CONFIGS are the config files of one run; local files that they name are read too.

    \b
    Examples:
      oomdoctor check sft.yaml
      oomdoctor check sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor check train.sh ds_z3.json --strict --format sarif --output check.sarif

    Exit status: 0 no problems, 1 an error or the run does not fit, 2 could not run.
    """
    result = check_config(configs, gpu=gpu, gpus=gpus, model=model, hub=hub, server_version=server_version, rules=rules)
    write(_render(result, format_, Wording(lang or locale_language(os.environ)), to_terminal=output is None), output)
    if result.unknown is not None:
        click.echo(f"oomdoctor: {result.unknown}", err=True)
        sys.exit(2)
    if result.is_wrong(strict=strict):
        sys.exit(1)


def _render(result: ConfigCheck, format_: str, wording: Wording, *, to_terminal: bool) -> str:
    if format_ == "json":
        return json_text(convert_check(result.config, result.memory, result.gaps, wording, __version__, bugs=result.bugs), only_keys=True)
    if format_ == "sarif":
        return json_text(convert_config_issues(findings(result.config, result.memory), wording, __version__), only_keys=True)
    return show(
        compose(result.config, result.memory, result.gaps, wording, __version__, bugs=result.bugs),
        format_,
        to_terminal=to_terminal,
        only_keys=True,
    )
