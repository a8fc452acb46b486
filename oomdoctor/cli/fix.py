"""`oomdoctor fix`: the changes that a diagnosis and the complaints about a config ask for, written into the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.output import coloured, locale_language, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack

if TYPE_CHECKING:
    from oomdoctor.case.plan import Plans
    from oomdoctor.case.serving import ServedPlans
    from oomdoctor.configs.proposals.apply import AppliedProposals
    from oomdoctor.configs.proposals.choice import Choice, ProposalSelection

_CONFIGS = (".yaml", ".yml", ".json", ".sh", ".bash")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "--config",
    "-c",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A config file or launch script of the run, to be changed (repeatable).",
)
@click.option("--gpu", help="The card that the run is to fit: a name (RTX 4090, A100-80GB) or a size (24GB). Default: the card of the log.")
@click.option("--gpus", type=click.IntRange(1, 100_000), help="How many cards.")
@click.option("--model", help="The model where the config does not name a known one: a name, or a folder with its config.json.")
@click.option("--plan", type=click.IntRange(1, 50), metavar="N", help="Write this plan of `oomdoctor plan`.")
@click.option("--only", multiple=True, metavar="ID", help="Write this fix, complaint or plan and nothing else (repeatable).")
@click.option("--yes", "-y", is_flag=True, help="Write without asking, and also what a person should decide.")
@click.option("--dry-run", is_flag=True, help="Show the difference and write nothing.")
@click.option("--output", "-o", type=click.Path(file_okay=False), metavar="DIR", help="Write the changed files into this folder instead.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of what is said (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
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
    """Change the config of a run so that it fits: only the values, with comments, order and quotes as they are.

    PATHS are config files of the run (.yaml, .json, .sh), its logs, or both. The difference is shown first; a copy of each
    changed file is kept as FILE.bak-1, FILE.bak-2 and so on. A change that needs a DeepSpeed JSON or an accelerate file creates
    it, and never overwrites one.

    \b
    What is written:
      always      what in the configs stops the run or has no effect
      and either  the first plan that makes the run fit, where the model and
                  the card are known (--plan N: another one)
      or          each fix of the diagnosis that is safe; with --yes also the
                  first fix of each finding
      --only ID   that one and nothing else

    Safe is what changes neither what is trained nor on how many samples. All else, a plan with such a part too, needs --yes.

    \b
    Examples:
      oomdoctor fix sft.yaml --gpu "RTX 4090"
      oomdoctor fix sft.yaml --gpu "RTX 4090" --gpus 4 --plan 2 --yes
      oomdoctor fix train.log --config sft.yaml --dry-run
      oomdoctor fix train.log --config sft.yaml --config ds_z2.json
      oomdoctor fix train.log --config sft.yaml --only smaller-batch --yes
      oomdoctor fix sft.yaml

    Exit status: 0 changed or nothing to change, 1 something was not changed, 2 could not run. --dry-run ends like the run
    that writes.
    """
    from oomdoctor.cli.offers import Run  # noqa: PLC0415
    from oomdoctor.configs.proposals.apply import apply_proposals  # noqa: PLC0415 - wrong use needs none of it
    from oomdoctor.report.edits.fix import render  # noqa: PLC0415

    language = lang or locale_language(os.environ)
    if "-" in paths and not (yes or dry_run):
        raise UsageError("the log comes from standard input, so nothing can be asked there: give --yes or --dry-run")
    run = Run(*_apart(paths, config), load_pack(rules), output, gpu)
    plans = run.plans(gpu, gpus, model, plan)
    choice = _chosen(run.offers(plans, gpus), plans, yes=yes, only=only, plan=plan)
    settled = apply_proposals(run.files, choice.taken, run.judge, run.there, run.older)
    write(render(settled, run.files, choice, plans, language, color=coloured()), None)
    left = any(step.left for step in settled.steps) or bool((only or plans) and choice.undecided) or _is_wall(plans)
    if settled.files and not dry_run:
        left = not _write(settled, run.files, output, language, ask=not yes) or left
    if left:
        sys.exit(1)


def _apart(paths: Sequence[str], config: Sequence[str]) -> tuple[list[str], list[str]]:
    """The logs and the configs. What is named alone is a config, whatever its name."""
    configs = [path for path in paths if path.lower().endswith(_CONFIGS)]
    if not config and not configs:
        return [], list(paths)
    return [path for path in paths if path not in configs], [*config, *configs]


def _chosen(offers: ProposalSelection, plans: Plans | ServedPlans | None, *, yes: bool, only: Sequence[str], plan: int | None) -> Choice:
    """What is done and what waits. Raises UsageError where something was named that is not there."""
    from oomdoctor.configs.proposals.choice import choose, named  # noqa: PLC0415 - as above

    if only and plan is not None:
        raise UsageError("--plan and --only exclude one another; --only plan-2 is the second plan and nothing else")
    known = sorted({one.id for one in offers.all()})
    unknown = next((one for one in only if one not in known), None)
    if unknown is not None:
        raise UsageError(f"--only {unknown}: not proposed here" + (f"; there is {', '.join(known)}" if known else ""))
    if plan is not None and plans is not None and len(plans.plans) < plan and plans.plans:
        raise UsageError(f"--plan {plan}: the last one is {len(plans.plans)} (see oomdoctor plan)")
    if only:
        return named(offers, only, yes=yes)
    return choose(offers, yes=yes, plan=None if plan is None else f"plan-{plan}")


def _is_wall(plans: Plans | ServedPlans | None) -> bool:
    return plans is not None and plans.wall is not None


def _write(settled: AppliedProposals, before: Mapping[str, bytes], output: str | None, lang: str, *, ask: bool) -> bool:
    """Whether the files were written."""
    from oomdoctor.configs.edit.store import write as put  # noqa: PLC0415 - as above
    from oomdoctor.report.edits.fix import declined, question, written  # noqa: PLC0415

    files = settled.files if output is None else _elsewhere(settled.files, output)
    if not files:
        return True
    if ask and not _agreed(question(lang)):
        click.echo(declined(lang))
        return False
    copies = put(files, before if output is None else {})
    write(written(copies, [path for path in files if path not in copies], lang), None)
    return True


def _elsewhere(files: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """The files that are not in `folder` as they are to be. Raises UsageError where one of that name says something else."""
    from oomdoctor.configs.edit.store import read  # noqa: PLC0415 - as above

    os.makedirs(folder, exist_ok=True)
    out: dict[str, bytes] = {}
    for path, data in files.items():
        place = os.path.join(folder, os.path.basename(path))
        if place in out or (os.path.lexists(place) and read(place) != data):
            raise UsageError(f"{place} is there already and says something else; it is not overwritten")
        if not os.path.lexists(place):
            out[place] = data
    return out


def _agreed(text: str) -> bool:
    try:
        return click.confirm(text)
    except click.Abort:
        click.echo()
        return False
