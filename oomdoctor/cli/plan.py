"""`oomdoctor plan`: what to change so that a run fits its cards."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.api.inputs import CONFIG_ENDINGS
from oomdoctor.api.models import model_among
from oomdoctor.api.plan import plan as plan_run
from oomdoctor.case.serving import AnyPlans
from oomdoctor.cli.options import GPUS, HUB, MODEL, RULES, SERVER_VERSION, config_option, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.report.memory.plan_answer import convert_found_plans, plan_document
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "json", "html")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(dir_okay=False))
@config_option("A config file of the run.")
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB). Default: the card in the log.")
@GPUS
@MODEL
@HUB
@click.option("--framework", help="The framework if nothing shows it (transformers, llamafactory, ms-swift ...).")
@SERVER_VERSION
@click.option("--top", type=click.IntRange(1, 50), default=5, show_default=True, help="Maximum number of plans.")
@RULES
@format_option(FORMATS, "answer")
@output_option("answer")
@language_option()
def plan(
    paths: tuple[str, ...],
    config: tuple[str, ...],
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    hub: bool,
    framework: str | None,
    server_version: str | None,
    top: int,
    rules: str | None,
    format_: str,
    output: str | None,
    lang: str | None,
) -> None:
    """Show what to change so that a run fits its cards, smallest change first.

    PATHS are config files of the run (.yaml, .json, .sh), its logs, or both. A model name can be given instead.

    \b
    Examples:
      oomdoctor plan sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor plan train.log --config sft.yaml
      oomdoctor plan "Qwen3 8B" --gpu 24GB
      oomdoctor plan sft.yaml ds_z2.json --gpu 24GB --top 3 --format markdown

    Exit status: 0 it fits, or a plan would; 1 nothing does; 2 could not run.
    """
    paths, model = model_among(paths, model)
    if not (paths or config or model):
        raise UsageError("what to plan? give a config or a log of the run, or a model")
    if missing := next((path for path in paths if not os.path.exists(path)), None):
        raise UsageError(f"{missing}: no such file")
    logs = [path for path in paths if not path.lower().endswith(CONFIG_ENDINGS)]
    configs = [*config, *(path for path in paths if path not in logs)]
    plans = plan_run(
        configs,
        log=logs,
        gpu=gpu,
        gpus=gpus,
        model=model,
        hub=hub,
        framework=framework,
        server_version=server_version,
        top=top,
        rules=rules,
    )
    write(_render(plans, load_pack(over=rules), format_, Wording(lang or locale_language(os.environ)), to_terminal=output is None), output)
    if plans.obstacle is not None or plans.broken:
        sys.exit(1)


def _render(plans: AnyPlans, pack: Pack, format_: str, wording: Wording, *, to_terminal: bool) -> str:
    if format_ == "json":
        return json_text(convert_found_plans(plans, wording), only_keys=True)
    return show(plan_document(plans, pack, wording, __version__), format_, to_terminal=to_terminal, only_keys=True)
