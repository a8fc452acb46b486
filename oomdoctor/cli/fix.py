"""`oomdoctor fix`: the changes that a diagnosis and the complaints about a config ask for, written into the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from oomdoctor.api.fix import apply_fix, files_to_write
from oomdoctor.api.fix import fix as fix_config
from oomdoctor.api.inputs import CONFIG_ENDINGS
from oomdoctor.api.results import ConfigFix
from oomdoctor.cli.options import GPUS, MODEL_OF_CONFIG, RULES, config_option, language_option
from oomdoctor.cli.output import is_coloured, locale_language, write
from oomdoctor.errors import UsageError
from oomdoctor.report.edits.fix import declined_text, question_text, render, written_text
from oomdoctor.report.wording.wording import Wording


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@config_option("A config file or launch script of the run to change (repeatable).")
@click.option("--gpu", help="The card the run should fit: a name (RTX 4090, A100-80GB) or a size (24GB). Default: the card in the log.")
@GPUS
@MODEL_OF_CONFIG
@click.option("--plan", type=click.IntRange(1, 50), metavar="N", help="Write this plan from `oomdoctor plan`.")
@click.option("--only", multiple=True, metavar="ID", help="Write only this fix, complaint or plan (repeatable).")
@click.option("--yes", "-y", is_flag=True, help="Write without asking, including changes that a person should decide.")
@click.option("--dry-run", is_flag=True, help="Show the diff and write nothing.")
@click.option("--output", "-o", type=click.Path(file_okay=False), metavar="DIR", help="Write the changed files to this folder instead.")
@language_option(" of what is said")
@RULES
def fix(
    paths: tuple[str, ...],
    config: tuple[str, ...],
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    plan: int | None,
    only: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    output: str | None,
    lang: str | None,
    rules: str | None,
) -> None:
    """Edit a run's config so that it fits: only values change; comments, order and quotes are preserved.

    PATHS are config files of the run (.yaml, .json, .sh, .py, .ipynb), its logs, or both. The diff is shown first; a copy of each
    changed file is kept as FILE.bak-1, FILE.bak-2 and so on. A change that needs a DeepSpeed JSON or an accelerate file creates
    it, but never overwrites one.

    \b
    What is written:
      always      fixes for config problems that stop the run or have no effect
      and either  the first plan that makes the run fit, if the model and
                  the card are known (--plan N: another one)
      or          each safe fix from the diagnosis; with --yes also the
                  first fix for each finding
      --only ID   only that one

    A change is safe if it affects neither what is trained nor the number of samples. Anything else, including a plan with such a
    part, needs --yes.

    \b
    Examples:
      oomdoctor fix sft.yaml --gpu "RTX 4090"
      oomdoctor fix sft.yaml --gpu "RTX 4090" --gpus 4 --plan 2 --yes
      oomdoctor fix train.log --config sft.yaml --dry-run
      oomdoctor fix train.log --config sft.yaml --config ds_z2.json
      oomdoctor fix train.log --config sft.yaml --only smaller-batch --yes
      oomdoctor fix sft.yaml

    Exit status: 0 changed or nothing to change, 1 something was not changed, 2 could not run. --dry-run exits with
    the same status as the run that writes.
    """
    wording = Wording(lang or locale_language(os.environ))
    if "-" in paths and not (yes or dry_run):
        raise UsageError("the log comes from standard input, so you cannot be prompted: use --yes or --dry-run")
    logs, configs = _logs_and_configs(paths, config)
    changes = fix_config(configs, log=logs, gpu=gpu, gpus=gpus, model=model, plan=plan, only=only, review=yes, folder=output, rules=rules)
    write(render(changes.applied, changes.before, changes.choice, changes.plans, wording, color=is_coloured()), None)
    is_written = dry_run or not changes.applied.files or _write(changes, output, wording, ask=not yes)
    if changes.is_incomplete or not is_written:
        sys.exit(1)


def _logs_and_configs(paths: Sequence[str], config: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the logs and the configs. What is named alone is a config, whatever its name."""
    configs = [path for path in paths if path.lower().endswith(CONFIG_ENDINGS)]
    if not config and not configs:
        return [], list(paths)
    return [path for path in paths if path not in configs], [*config, *configs]


def _write(changes: ConfigFix, output: str | None, wording: Wording, *, ask: bool) -> bool:
    """Write the files, after a question with `ask`; return whether they are as they are to be."""
    if not files_to_write(changes, output):
        return True
    if ask and not _agrees(question_text(wording)):
        click.echo(declined_text(wording))
        return False
    files = apply_fix(changes, output)
    write(written_text(files.copies, files.created, wording), None)
    return True


def _agrees(text: str) -> bool:
    try:
        return click.confirm(text)
    except click.Abort as end:
        click.echo()
        # click makes one of both: Ctrl-C ends the command, no answer is a no.
        if isinstance(end.__context__, KeyboardInterrupt):
            raise
        return False
