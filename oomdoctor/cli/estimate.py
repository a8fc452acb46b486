"""`oomdoctor estimate`: what a run takes of a card, from its config, from options, or from lines of JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from oomdoctor import __version__
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from oomdoctor.case.estimate import Estimate
    from oomdoctor.case.plan import Fit
    from oomdoctor.case.serving import Served
    from oomdoctor.case.settings import RunConfig
    from oomdoctor.case.shape import Shape
    from oomdoctor.knowledge.tables.cards import Card

FORMATS = ("terminal", "markdown", "json", "html", "jsonl")
_OPTIONS = {
    "method": "finetuning",
    "batch": "micro_batch",
    "length": "sequence_length",
    "rank": "lora_rank",
    "targets": "lora_targets",
    "optimizer": "optimizer",
    "bits": "load_bits",
    "precision": "precision",
    "zero": "zero_stage",
    "checkpointing": "gradient_checkpointing",
    "packing": "packing",
    "accumulation": "accumulation",
    "share": "memory_share",
}
"""Options by the settings that they stand for."""
_ANY_SIZE = 1_000_000_000
"""Parameters of a model of which only a trace will say how many it has; the trace does not ask."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("configs", nargs=-1, type=click.Path())
@click.option("--spec", type=click.Path(), help="One JSON object a line in, one a line out; - is standard input.")
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB).")
@click.option("--gpus", type=click.IntRange(1, 100_000), help="How many cards.")
@click.option("--model", help="Name of a known model, or a folder or file with its config.json.")
@click.option("--hub", is_flag=True, help="Fetch the config.json of a model that is not known (from HF_ENDPOINT, else huggingface.co).")
@click.option("--framework", help="The framework where no config shows it (transformers, llamafactory, ms-swift, torchtune ...).")
@click.option("--method", type=click.Choice(["full", "lora", "qlora", "freeze"]), help="What is trained.")
@click.option("--serve", is_flag=True, help="Serve with vLLM (or what --framework names) instead of training.")
@click.option("--share", type=click.FloatRange(0.01, 1.0), help="Share of the card that a server takes (gpu_memory_utilization).")
@click.option("--batch", type=click.IntRange(1, 100_000), help="Samples on one card in one forward pass.")
@click.option("--length", type=click.IntRange(1, 100_000_000), help="Tokens of the longest sample.")
@click.option("--accumulation", type=click.IntRange(1, 1_000_000), help="Micro batches of one step.")
@click.option("--rank", type=click.IntRange(1, 100_000), help="Rank of LoRA.")
@click.option("--targets", help="What LoRA adapts: all, or module names with commas.")
@click.option("--optimizer", help="Optimizer, as the framework writes it (adamw_torch, adamw_8bit ...).")
@click.option("--bits", type=click.Choice(["4", "8", "16"]), help="Load the weights in so many bits.")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), help="Type of the computation.")
@click.option("--zero", type=click.IntRange(0, 3), help="ZeRO stage of DeepSpeed.")
@click.option("--checkpointing/--no-checkpointing", default=None, help="Gradient checkpointing.")
@click.option("--packing/--no-packing", default=None, help="All samples have one length.")
@click.option("--trace", is_flag=True, help="Count activations in the model's own code (needs torch, transformers and a config.json).")
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the answer.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the answer to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language (default: the locale's).")
def estimate(
    configs: tuple[str, ...],
    spec: str | None,
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    hub: bool,
    framework: str | None,
    serve: bool,
    trace: bool,
    format_: str,
    output: str | None,
    lang: str | None,
    **options: Any,
) -> None:
    """Say what a run takes of a card, part by part, and whether it fits.

    CONFIGS are the files of the run: LLaMA-Factory, axolotl or GLM-4 YAML, DeepSpeed or Trainer JSON, a launch script.

    \b
    Examples:
      oomdoctor estimate sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor estimate --model Qwen2.5-7B --method lora --batch 2 --length 4096 --gpu 24GB
      oomdoctor estimate --spec runs.jsonl --format jsonl

    Exit status: 0 it fits or no card was named, 1 it does not fit or is too close to say, 2 could not run.
    """
    if spec is not None:
        _answer_lines(spec, output)
        return
    card = named_card(gpu)
    read = _training(configs)
    settings: dict[str, Any] = {
        **(read.settings if read else {}),
        **{_OPTIONS[name]: value for name, value in options.items() if value is not None},
    }
    if serve:
        settings["method"] = "serve"
        if gpus is not None and not settings.keys() & {"tensor_parallel", "pipeline_parallel"}:
            settings["tensor_parallel"] = gpus
    if hub:
        fetch_unknown(model or settings.get("model"))
    own = framework or (read.framework if read else None)
    server = serving(settings, model, own, gpus, card)
    if server is not None:
        write(_render_server(server, format_, lang or locale_language(os.environ), to_terminal=output is None), output)
        sys.exit(0 if server.starts == "yes" else 1)
    calculate = traced if trace else estimated
    found = calculate(settings, model, own, gpus)
    judged = _judged(found, card) if card is not None else None
    write(_render(found, judged, format_, lang or locale_language(os.environ), to_terminal=output is None), output)
    if judged is not None and judged.fits != "yes":
        sys.exit(1)


def _answer_lines(spec: str, output: str | None) -> None:
    from oomdoctor.setups.spec_lines import answer_lines  # noqa: PLC0415 - only where lines are asked

    try:
        with click.open_file(spec, "rb") as lines:
            write("".join(f"{answer}\n" for answer in answer_lines(lines)), output)
    except OSError as why:
        raise UsageError(f"cannot read {spec}: {(why.strerror or str(why)).lower()}") from why


def named_card(name: str | None) -> Card | None:
    """The card that `--gpu` names."""
    from oomdoctor.knowledge.tables.cards import card_named  # noqa: PLC0415 - only where a card is named

    if name is None:
        return None
    found = card_named(name)
    if found is None:
        raise UsageError(f"--gpu {name}: not known, or known in several sizes; add the size (A100-80GB) or give it alone (24GB)")
    return found


def _training(configs: tuple[str, ...]) -> RunConfig | None:
    if not configs:
        return None
    from oomdoctor.configs.files import read_files  # noqa: PLC0415
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415
    from oomdoctor.knowledge.pack import load_pack  # noqa: PLC0415 - only where a config is named

    sheets, gaps = read_files(configs)
    if not sheets:
        raise UsageError("; ".join(f"{gap.what}: {gap.why}" for gap in gaps) or "nothing to read in these files")
    return resolve_config(sheets, (), {}, load_pack())


def estimated(settings: Mapping[str, Any], model: str | None, framework: str | None, gpus: int | None) -> Estimate:
    """What a run takes. Raises UsageError where the model is not known."""
    from oomdoctor.memory.estimate import estimate as calculate  # noqa: PLC0415 - as above
    from oomdoctor.setups.from_settings import setup  # noqa: PLC0415

    world = settings.get("world_size")
    cards = gpus or (world if isinstance(world, int) and world > 0 else 1)
    return calculate(*setup(settings, _shape(model or settings.get("model")), framework, cards))


def traced(settings: Mapping[str, Any], model: str | None, framework: str | None, gpus: int | None) -> Estimate:
    """The same with activations counted in the model's own code. Raises OomdoctorError where it cannot be traced."""
    from msgspec.structs import replace  # noqa: PLC0415 - as above

    from oomdoctor.memory.estimate import estimate as calculate  # noqa: PLC0415
    from oomdoctor.setups.from_settings import setup  # noqa: PLC0415
    from oomdoctor.setups.model_files import read_config, read_shape  # noqa: PLC0415
    from oomdoctor.setups.nearest_model import nearest_model  # noqa: PLC0415

    try:
        from oomdoctor.tracing.trace import trace  # noqa: PLC0415
    except ImportError as why:
        raise UsageError(f"--trace needs torch and transformers: pip install 'oomdoctor[trace]' ({why})") from why
    path = str(model or settings.get("model") or "")
    config = read_config(path) if path else None
    if config is None:
        raise UsageError("--trace needs the model's config.json: give its folder or the file with --model")
    world = settings.get("world_size")
    cards = gpus or (world if isinstance(world, int) and world > 0 else 1)
    known = read_shape(path)
    like = known or nearest_model(_ANY_SIZE, path)
    if like is None:
        raise UsageError(f"nothing is known of {path}")
    seen = trace(config, setup(settings, like, framework, cards)[0])
    shape = known or nearest_model(seen.params, path) or like
    made, assumptions = setup(settings, shape, framework, cards)
    return calculate(replace(made, traced=seen), assumptions)


def fetch_unknown(name: object) -> None:
    """Fetches the config.json of a model that neither the table nor this machine knows. Raises UsageError where it cannot be had."""
    from oomdoctor.knowledge.tables.shapes import model_shape  # noqa: PLC0415 - as above
    from oomdoctor.setups.model_files import read_config  # noqa: PLC0415

    if name and model_shape(str(name)) is None and read_config(str(name)) is None:
        from oomdoctor.setups.hub import fetch  # noqa: PLC0415 - only where something is fetched

        fetch(str(name))


def _shape(name: object) -> Shape:
    from oomdoctor.knowledge.tables.shapes import model_shape  # noqa: PLC0415 - as above
    from oomdoctor.setups.model_files import read_shape  # noqa: PLC0415

    if not name:
        raise UsageError("which model? name it with --model, or give a folder with its config.json")
    found = read_shape(str(name)) or model_shape(str(name))
    if found is None:
        raise UsageError(f"the model {name} is not in the table; give a folder or file with its config.json with --model, or --hub")
    return found


def serving(settings: Mapping[str, Any], model: str | None, framework: str | None, gpus: int | None, card: Card | None) -> Served | None:
    """What a server makes of a card; None for runs that are no server, and where no card is named."""
    if card is None or settings.get("method") != "serve":
        return None
    from oomdoctor.setups.server import CardLookup, program, server_setup  # noqa: PLC0415 - only for a server

    of = program(settings, framework)
    if of is None:
        return None
    named = model or settings.get("model")
    known = {**settings, "model": named} if named else settings
    return server_setup(known, _shape(named), of, CardLookup(card.name, card.bytes), cards=gpus or 1)


def _judged(found: Estimate, card: Card) -> Fit:
    from oomdoctor.planning.memory_budget import judge_fit, memory_budget  # noqa: PLC0415 - only where a card is named

    return judge_fit(found.setup, memory_budget(card))


def _render(found: Estimate, judged: Fit | None, format_: str, lang: str, *, to_terminal: bool) -> str:
    from oomdoctor.report.memory.estimate import compose  # noqa: PLC0415 - as above
    from oomdoctor.report.wire.estimate import to_json  # noqa: PLC0415

    if format_ in ("json", "jsonl"):
        return _as_json(to_json(found, lang, judged), format_)
    return show(compose(found, lang, __version__, judged), format_, to_terminal=to_terminal)


def _render_server(found: Served, format_: str, lang: str, *, to_terminal: bool) -> str:
    from oomdoctor.report.memory.serving import compose  # noqa: PLC0415 - as above
    from oomdoctor.report.wire.serving import to_json  # noqa: PLC0415

    if format_ in ("json", "jsonl"):
        return _as_json(to_json(found, lang), format_)
    return show(compose(found, lang, __version__), format_, to_terminal=to_terminal)


def _as_json(answer: dict[str, Any], format_: str) -> str:
    import json  # noqa: PLC0415 - each format loads only what it needs

    return json.dumps(answer, ensure_ascii=False, indent=1 if format_ == "json" else None) + "\n"
