"""`oomdoctor plan`: what to change so that a run fits its cards."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor import __version__
from oomdoctor.cli.estimate import fetch_unknown
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from oomdoctor.case.plan import MemoryBudget, Plans
    from oomdoctor.case.serving import Served
    from oomdoctor.knowledge.pack import Pack
    from oomdoctor.planning.framework_keys import MeasureKeys
    from oomdoctor.planning.plan_request import PlanRequest

FORMATS = ("terminal", "markdown", "json", "html")
_CONFIGS = (".yaml", ".yml", ".json", ".sh")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--config", "-c", multiple=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="A config of the run.")
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB). Default: the card of the log.")
@click.option("--gpus", type=click.IntRange(1, 100_000), help="How many cards.")
@click.option("--model", help="Name of a known model, or a folder or file with its config.json.")
@click.option("--hub", is_flag=True, help="Fetch the config.json of a model that is not known (from HF_ENDPOINT, else huggingface.co).")
@click.option("--framework", help="The framework where nothing shows it (transformers, llamafactory, ms-swift ...).")
@click.option("--top", type=click.IntRange(1, 50), default=5, show_default=True, help="How many plans at most.")
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the answer.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the answer to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language (default: the locale's).")
def plan(
    paths: tuple[str, ...],
    config: tuple[str, ...],
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    hub: bool,
    framework: str | None,
    top: int,
    format_: str,
    output: str | None,
    lang: str | None,
) -> None:
    """Say what to change so that a run fits its cards, the smallest change first.

    PATHS are config files of the run (.yaml, .json, .sh), its logs, or both.

    \b
    Examples:
      oomdoctor plan sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor plan train.log --config sft.yaml
      oomdoctor plan sft.yaml ds_z2.json --gpu 24GB --top 3 --format markdown

    Exit status: 0 it fits, or something would; 1 nothing does; 2 could not run.
    """
    from oomdoctor.knowledge.pack import load_pack  # noqa: PLC0415 - only where a plan is made
    from oomdoctor.planning.framework_keys import measure_keys  # noqa: PLC0415
    from oomdoctor.planning.plans import plans  # noqa: PLC0415

    pack = load_pack()
    logs = [path for path in paths if not path.lower().endswith(_CONFIGS)]
    configs = [*config, *(path for path in paths if path not in logs)]
    asked = _asked(logs, configs, pack, hub=hub, model=model, gpus=gpus, framework=framework)
    own, within, language = (
        measure_keys(pack, asked.training, asked.log, asked.framework),
        named_room(gpu, asked),
        lang or locale_language(os.environ),
    )
    served = served_run(asked, within, model, gpus)
    if served is not None:
        wall, said = _plan_server(served, own, within, format_, language, top=top, to_terminal=output is None)
    else:
        found = own.written(plans(asked.setup, within, own.has, top=top))
        wall, said = found.wall, _render(found, asked, pack, format_, language, to_terminal=output is None)
    write(said, output)
    if wall is not None:
        sys.exit(1)


def _asked(
    logs: Sequence[str], configs: Sequence[str], pack: Pack, *, hub: bool, model: str | None, gpus: int | None, framework: str | None
) -> PlanRequest:
    """The run that logs and configs tell of."""
    from oomdoctor.planning.plan_request import plan_request  # noqa: PLC0415 - as above

    if logs:
        from oomdoctor.api.pipeline import diagnose_logs  # noqa: PLC0415 - only for logs

        case = diagnose_logs(logs, pack, config=configs).case
        first = case.incidents[0] if case.incidents else None
        if hub:
            fetch_unknown(model or (case.training and case.training.settings.get("model")) or case.facts.get("log.model_name_or_path"))
        return plan_request(case.training, case.facts, first, model=model, gpus=gpus, framework=framework)
    from oomdoctor.configs.files import read_files  # noqa: PLC0415
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415 - as above

    sheets, gaps = read_files(configs)
    if not sheets:
        raise UsageError("; ".join(f"{gap.what}: {gap.why}" for gap in gaps) or "nothing to read in these files")
    found = resolve_config(sheets, (), {}, pack)
    if hub:
        fetch_unknown(model or (found and found.settings.get("model")))
    return plan_request(found, {}, None, model=model, gpus=gpus, framework=framework)


def named_room(gpu: str | None, asked: PlanRequest) -> MemoryBudget:
    """The card that was named, else that of the log."""
    from oomdoctor.knowledge.tables.cards import Card, card_named  # noqa: PLC0415 - as above
    from oomdoctor.planning.memory_budget import memory_budget, without  # noqa: PLC0415

    if gpu is None:
        printed = asked.log.get("log.total_bytes")
        if asked.room is None and isinstance(printed, int) and printed > 0:
            return memory_budget(Card(str(asked.log.get("log.gpu_name", "")), printed))
        if asked.room is None:
            raise UsageError("which card? name it with --gpu (RTX 4090, A100-80GB, 24GB)")
        return without(asked.room, asked.unexplained)
    found = card_named(gpu)
    if found is None:
        raise UsageError(f"--gpu {gpu}: not known, or known in several sizes; add the size (A100-80GB) or give it alone (24GB)")
    return without(memory_budget(found), asked.unexplained)


def served_run(asked: PlanRequest, within: MemoryBudget, model: str | None, gpus: int | None) -> Served | None:
    """What the run makes of its card where it is a server."""
    from msgspec.structs import replace  # noqa: PLC0415 - as above

    from oomdoctor.setups.from_log import logged_run  # noqa: PLC0415
    from oomdoctor.setups.server import CardLookup, of_run  # noqa: PLC0415

    known = logged_run(asked.training, asked.log)
    settings = {**known.settings, "model": model} if model else known.settings
    known = replace(known, settings=settings, cards=gpus or known.cards, framework=asked.framework)
    return of_run(known, asked.log, asked.setup.shape, CardLookup(within.card, within.total))


def _plan_server(
    served: Served, own: MeasureKeys, within: MemoryBudget, format_: str, lang: str, *, top: int, to_terminal: bool
) -> tuple[object, str]:
    """What stands in the way, if nothing helps, and the answer."""
    from oomdoctor.planning.serving_keys import in_options  # noqa: PLC0415
    from oomdoctor.planning.serving_options import Deployment  # noqa: PLC0415 - only for a server
    from oomdoctor.planning.serving_search import plans  # noqa: PLC0415

    found = in_options(plans(Deployment(served.setup, served.server, served.total), within, own.has, top=top), own)
    if format_ == "json":
        import json  # noqa: PLC0415 - each format loads only what it needs

        from oomdoctor.report.wire.serving import plans_to_json  # noqa: PLC0415

        return found.wall, json.dumps(plans_to_json(found, served.assumptions, lang), ensure_ascii=False, indent=1) + "\n"
    from oomdoctor.report.memory.serving_plan import compose  # noqa: PLC0415 - as above

    return found.wall, show(compose(found, served.assumptions, lang, __version__), format_, to_terminal=to_terminal)


def _render(found: Plans, asked: PlanRequest, pack: Pack, format_: str, lang: str, *, to_terminal: bool) -> str:
    if format_ == "json":
        import json  # noqa: PLC0415 - each format loads only what it needs

        from oomdoctor.report.wire.plan import to_json  # noqa: PLC0415

        return json.dumps(to_json(found, asked.assumptions, lang), ensure_ascii=False, indent=1) + "\n"
    from oomdoctor.report.memory.plan import compose  # noqa: PLC0415 - as above

    return show(compose(found, asked.assumptions, pack, lang, __version__), format_, to_terminal=to_terminal)
