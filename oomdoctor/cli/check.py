"""`oomdoctor check`: a config before the run: what of it is wrong, and whether it fits the cards."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor import __version__
from oomdoctor.cli.estimate import estimated, fetch_unknown, named_card, serving
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack

if TYPE_CHECKING:
    from oomdoctor.case.gap import Gap
    from oomdoctor.case.settings import RunConfig
    from oomdoctor.knowledge.tables.cards import Card
    from oomdoctor.report.edits.check import Taken

FORMATS = ("terminal", "markdown", "json", "sarif")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("configs", nargs=-1, required=True, type=click.Path())
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB); then also whether the run fits.")
@click.option("--gpus", type=click.IntRange(1, 100_000), help="How many cards.")
@click.option("--model", help="The model where the config does not name a known one: a name, or a folder with its config.json.")
@click.option("--hub", is_flag=True, help="Fetch the config.json of a model that is not known (from HF_ENDPOINT, else huggingface.co).")
@click.option("--strict", is_flag=True, help="A warning, and a run that may not fit, end with status 1 too.")
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the report.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of the report (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
def check(
    configs: tuple[str, ...],
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    hub: bool,
    strict: bool,
    format_: str,
    output: str | None,
    lang: str | None,
    rules: str | None,
) -> None:
    """Say of a config, before anything runs, what in it stops the run or has no effect, and whether it fits the cards.

    CONFIGS are the files of one run; those beside them that they name are read too.

    \b
    Examples:
      oomdoctor check sft.yaml
      oomdoctor check sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor check train.sh ds_z3.json --strict --format sarif --output check.sarif

    Exit status: 0 fine, 1 an error, or it does not fit, 2 could not run.
    """
    language = lang or locale_language(os.environ)
    card = named_card(gpu)
    training, gaps = _read(configs, card, rules)
    if hub and card is not None:
        fetch_unknown(model or (training.settings.get("model") if training else None))
    taken, unknown = _taken(training, model, gpus, card) if card is not None else (None, None)
    write(_render(training, taken, [*gaps, *unknown] if unknown else gaps, format_, language, to_terminal=output is None), output)
    if unknown:
        click.echo(f"oomdoctor: {unknown[0].why}", err=True)
        sys.exit(2)
    if _is_wrong(training, taken, strict=strict):
        sys.exit(1)


def _read(configs: Sequence[str], card: Card | None, rules: str | None) -> tuple[RunConfig | None, list[Gap]]:
    """The settings. Raises UsageError where a file that was named cannot be read, or none of them is a config."""
    from oomdoctor.configs.files import read_files  # noqa: PLC0415
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415 - wrong use needs no reader

    sheets, gaps = read_files(configs)
    unread = next((gap for gap in gaps if gap.what in configs), None)
    if unread is not None:
        raise UsageError(f"{unread.what}: {unread.why}")
    found = resolve_config(sheets, (), {"log.gpu_name": card.name} if card is not None else {}, load_pack(rules))
    if found is None or not found.given:
        raise UsageError(f"{configs[0]} is no config that is known")
    return found, gaps


def _taken(training: RunConfig | None, model: str | None, gpus: int | None, card: Card) -> tuple[Taken | None, list[Gap] | None]:
    """What the run takes of a card, or why that is not known."""
    from oomdoctor.case.gap import Gap  # noqa: PLC0415 - only where a card is named
    from oomdoctor.planning.memory_budget import judge_fit, memory_budget  # noqa: PLC0415

    settings, framework = (training.settings, training.framework) if training is not None else ({}, None)
    try:
        server = serving(settings, model, framework, gpus, card)
        if server is not None:
            return server, None
        found = estimated(settings, model, framework, gpus)
    except UsageError as why:
        return None, [Gap(what="memory", why=str(why))]
    return (found, judge_fit(found.setup, memory_budget(card))), None


def _is_wrong(training: RunConfig | None, taken: Taken | None, *, strict: bool) -> bool:
    grave = ("error", "warning") if strict else ("error",)
    if training is not None and any(one.severity in grave for one in training.complaints):
        return True
    if taken is None:
        return False
    from oomdoctor.report.edits.check import fits  # noqa: PLC0415 - only where a card is named

    return fits(taken) in (("no", "close") if strict else ("no",))


def _render(training: RunConfig | None, taken: Taken | None, gaps: Sequence[Gap], format_: str, lang: str, *, to_terminal: bool) -> str:
    from oomdoctor.report.edits.check import compose, findings, to_json  # noqa: PLC0415 - each format loads only what it needs

    if format_ in ("terminal", "markdown"):
        return show(compose(training, taken, gaps, lang, __version__), format_, to_terminal=to_terminal)
    import json  # noqa: PLC0415

    if format_ == "json":
        return json.dumps(to_json(training, taken, gaps, lang, __version__), ensure_ascii=False, indent=1) + "\n"
    from oomdoctor.report.wire.sarif import to_sarif  # noqa: PLC0415

    found = () if training is None else findings(training, taken)
    return json.dumps(to_sarif(found, lang, __version__), ensure_ascii=False, indent=1) + "\n"
