"""`oomdoctor estimate`: what a run takes of a card, from its config, from options, or from lines of JSON."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from oomdoctor import __version__
from oomdoctor.api.estimate import estimate as estimate_run
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.serving import Served
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.report.memory.estimate import compose
from oomdoctor.report.memory.serving import compose as compose_server
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.estimate import convert_estimate
from oomdoctor.report.wire.serving import convert_served
from oomdoctor.setups.spec_lines import answer_lines

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
    run = estimate_run(
        configs,
        model=model,
        gpu=gpu,
        gpus=gpus,
        framework=framework,
        settings={_OPTIONS[name]: int(value) if name == "bits" else value for name, value in options.items() if value is not None},
        serve=serve,
        hub=hub,
        trace=trace,
    )
    write(_render(run, format_, lang or locale_language(os.environ), to_terminal=output is None), output)
    if run.fits not in ("yes", None):
        sys.exit(1)


def _answer_lines(spec: str, output: str | None) -> None:
    try:
        with click.open_file(spec, "rb") as lines:
            write("".join(f"{answer}\n" for answer in answer_lines(lines)), output)
    except OSError as error:
        raise UsageError(f"cannot read {spec}: {(error.strerror or str(error)).lower()}") from error


def _render(run: RunEstimate, format_: str, lang: str, *, to_terminal: bool) -> str:
    memory = run.estimate
    if format_ in ("json", "jsonl"):
        report = convert_served(memory, lang) if isinstance(memory, Served) else convert_estimate(memory, lang, run.fit)
        return json_text(report, line=format_ == "jsonl")
    if isinstance(memory, Served):
        document = compose_server(memory, lang, __version__)
    else:
        document = compose(memory, lang, __version__, run.fit)
    return show(document, format_, to_terminal=to_terminal)
