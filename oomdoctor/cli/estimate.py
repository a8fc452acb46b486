"""`oomdoctor estimate`: what a run takes of a card, from its config, from options, or from lines of JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, TypedDict

import click

import oomdoctor
from oomdoctor import __version__
from oomdoctor.api.bad_input import OF_TRAINING
from oomdoctor.api.estimate import estimate as estimate_run
from oomdoctor.api.models import model_among
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.settings import Scalar
from oomdoctor.cli.options import GPUS, HUB, MODEL, RULES, SERVER_VERSION, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.planning.sizing.axes import read_number
from oomdoctor.report.memory.estimate_answer import estimate_document
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.setups.words.question import is_question, read_question

_OFFLOADS = {"params": "offload_params", "optimizer": "offload_optimizer", "activations": "activation_offload"}
"""What can be kept on the host, and the setting that says so."""
_CACHES = {"latents": "caches_latents", "text": "caches_text"}
_TRAINED = ("full", "lora", "qlora", "freeze")
_WAYS = ("dpo", "kto", "orpo", "rm", "grpo", "ppo", "embedding", "reranker")
FORMATS = ("terminal", "markdown", "json", "html", "jsonl")


class _Tokens(click.IntRange):
    """A number of tokens: 4096, or 4k as --sweep takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Fail where it is none, or out of range."""
        known = int(value) if str(value).isdecimal() else read_number(str(value))
        if known is None:
            self.fail(f"{value!r} is not a number of tokens; write 4096 or 4k", param, ctx)
        number: int = super().convert(known, param, ctx)
        return number


@click.command()
@click.argument("configs", nargs=-1, type=click.Path())
@click.option("--spec", type=click.Path(), help="One JSON object per line in, one per line out; - is standard input.")
@click.option("--gpu", help="The card: a name (RTX 4090, A100-80GB) or a size (24GB).")
@GPUS
@MODEL
@HUB
@click.option("--framework", help="The framework if no config shows it (transformers, llamafactory, ms-swift, torchtune ...).")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice([*_TRAINED, *_WAYS]),
    help="What is trained, and how; repeatable: --method lora --method ppo.",
)
@click.option("--reward-model", help="The model that scores responses (PPO); default: one like the trained model.")
@click.option("--critic-model", help="The model PPO's critic is initialized from; default: the reward model.")
@click.option("--serve", is_flag=True, help="Serve with vLLM (or the program in --framework) instead of training.")
@SERVER_VERSION
@click.option(
    "--share", "memory_share", type=click.FloatRange(0.01, 1.0), help="Share of the card a server reserves (gpu_memory_utilization)."
)
@click.option("--batch", "micro_batch", type=click.IntRange(1, 100_000), help="Samples per card in one forward pass.")
@click.option("--length", "sequence_length", type=_Tokens(1, 1_000_000_000), help="Tokens in the longest sample (4096, or 4k).")
@click.option("--accumulation", type=click.IntRange(1, 1_000_000), help="Micro-batches per step.")
@click.option("--rank", "lora_rank", type=click.IntRange(1, 100_000), help="LoRA rank.")
@click.option("--targets", "lora_targets", help="What LoRA adapts: all, or comma-separated module names.")
@click.option("--optimizer", help="Optimizer, as spelled by the framework (adamw_torch, adamw_8bit ...).")
@click.option("--bits", "load_bits", type=click.Choice(["4", "8", "16"]), help="Load the weights with this many bits.")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), help="Compute data type.")
@click.option("--weights", "weight_format", help="Weight format on the card: bf16, fp32, nf4, gptq-int4, q4_k_m ...")
@click.option("--strategy", help='How the run is distributed, in words: zero3, fsdp2, "fsdp 32 + tp 8", device_map.')
@click.option("--zero", "zero_stage", type=click.IntRange(0, 3), help="DeepSpeed ZeRO stage.")
@click.option("--checkpointing/--no-checkpointing", "gradient_checkpointing", default=None, help="Gradient checkpointing.")
@click.option("--packing/--no-packing", default=None, help="All samples have the same length.")
@click.option("--attention", type=click.Choice(["eager", "sdpa", "flash_attention_2"]), help="Attention kernel.")
@click.option(
    "--fused-loss/--no-fused-loss", "fused_cross_entropy", default=None, help="A loss that never holds all logits at once (Liger, chunks)."
)
@click.option("--offload", multiple=True, type=click.Choice(list(_OFFLOADS)), help="What is offloaded to the host; repeatable.")
@click.option("--size", "pixels", help="Image or video resolution: 1024, or 1280x720.")
@click.option("--frames", "video_frames", type=click.IntRange(1, 10_000), help="Number of video frames.")
@click.option("--cached", multiple=True, type=click.Choice(list(_CACHES)), help="What is precomputed before training on images.")
@click.option("--swap", "swapped_blocks", type=click.IntRange(1, 1000), help="Blocks kept on the host (blocks_to_swap).")
@click.option("--kv-cache", "kv_cache_dtype", help="KV cache data type: fp8, q8_0 ...")
@click.option("--gpu-layers", type=click.IntRange(0, 10_000), help="Layers that llama.cpp or Ollama offloads to the GPU (-ngl, num_gpu).")
@click.option(
    "--counter", type=click.Choice(["nvidia-smi", "max_reserved", "max_allocated"]), help="Which figure to show; default: nvidia-smi."
)
@click.option("--sweep", "axes", help="A table of batches and lengths: batch,length or length=2048..32768 or batch=1,2,6.")
@click.option("--cards", "compares_cards", is_flag=True, help="A table of common cards from 8 to 288 GB, 1 to 8 of each, and which fit.")
@click.option("--formats", "compares_formats", is_flag=True, help="A table of weight formats, which fit, and up to what length.")
@click.option("--trace", is_flag=True, help="Count activations using the model's own code (needs torch, transformers and a config.json).")
@click.option("--snapshot", type=click.Path(), help="Trace two steps, run torch's allocator on them, and write a file for memory_viz.")
@RULES
@format_option(FORMATS, "answer")
@output_option("answer")
@language_option()
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
    snapshot: str | None,
    axes: str | None,
    compares_cards: bool,
    compares_formats: bool,
    offload: tuple[str, ...],
    methods: tuple[str, ...],
    pixels: str | None,
    cached: tuple[str, ...],
    rules: str | None,
    format_: str,
    output: str | None,
    lang: str | None,
    **settings: str | float | bool | None,
) -> None:
    """Estimate how much memory a run needs on a card, part by part, and whether it fits.

    CONFIGS are the run's files: LLaMA-Factory, axolotl or GLM-4 YAML, DeepSpeed or Trainer JSON, or a launch script. A model name
    can be given instead.

    \b
    Examples:
      oomdoctor estimate sft.yaml --gpu "RTX 4090" --gpus 4
      oomdoctor estimate "Qwen3 8B" --method lora --batch 2 --length 4096 --gpu 24GB
      oomdoctor estimate "will Qwen3-32B QLoRA fit on a 4090?"
      oomdoctor estimate "Qwen2.5 7B" --method ppo --framework verl --gpus 8 --gpu H100
      oomdoctor estimate "will SDXL LoRA fit on 12 GB?"
      oomdoctor estimate "Wan 2.1 14B" --serve --size 832x480 --frames 81 --offload params --gpu "RTX 4090"
      oomdoctor estimate sft.yaml --gpu 24GB --sweep batch,length
      oomdoctor estimate --model Qwen2.5-7B --serve --gpu L40S --sweep batch=8..64,length=4k..32k
      oomdoctor estimate "Qwen3 8B" --method qlora --length 4k --cards
      oomdoctor estimate "Qwen3 8B" --framework llama.cpp --gpu 16GB --formats
      oomdoctor estimate --spec runs.jsonl --format jsonl
      oomdoctor estimate sft.yaml --model ./my-model --snapshot steps.pickle --gpu 24GB

    --sweep shows the memory needed for each combination of batch and length, which of them fit the card, and the largest that do:
    for training, samples at a time and tokens per sample; for a server, concurrent requests and tokens per request. a..b doubles
    from a to b; at most 16 values each.

    Exit status: 0 it fits or no card was given, 1 it does not fit or is too close to call (for a sweep: nothing is certain to
    fit), 2 could not run.
    """
    if spec is not None:
        _answer_lines(spec, output)
        return
    configs, model = model_among(configs, model)
    known = {name: int(value) if name == "load_bits" else value for name, value in settings.items() if value is not None}
    known |= {_OFFLOADS[what]: True for what in offload}
    known |= {_CACHES[what]: True for what in cached}
    known |= {**_methods(methods), **_sides(pixels)}
    if model is not None and is_question(model):
        worded = read_question(model)
        if worded.model is None:
            raise UsageError(f"no model found in “{model[:200]}”: give one with its size (Qwen3-8B), or use --model")
        serve = serve or worded.serves
        model, gpu, gpus, framework = worded.model, gpu or worded.gpu, gpus or worded.gpus, framework or worded.framework
        aside = ("model", *(("method", *OF_TRAINING) if serve else ()))
        told = {name: value for name, value in worded.settings.known().items() if name not in aside and value is not None}
        known = {**told, **known}
    question = _Question(model=model, gpu=gpu, gpus=gpus, framework=framework, settings=known, serve=serve, hub=hub, rules=rules)
    wording = Wording(lang or locale_language(os.environ))
    if sum((axes is not None, compares_cards, compares_formats)) > 1:
        raise UsageError("--sweep, --cards and --formats each produce a table: use only one")
    if axes is not None or compares_cards or compares_formats:
        if trace or snapshot is not None:
            raise UsageError("a table cannot be combined with --trace or --snapshot: a trace covers one batch and length")
        text, status = _table(configs, axes, question, format_, wording, to_terminal=output is None, of_cards=compares_cards)
        write(text, output)
        sys.exit(status)
    run = estimate_run(configs, trace=trace, simulate=snapshot is not None, **question)
    if snapshot is not None:
        _write_snapshot(run, snapshot)
    write(_render(run, format_, wording, to_terminal=output is None), output)
    if run.fits not in ("yes", None) or (run.simulation is not None and run.simulation.run.failed is not None):
        sys.exit(1)


def _sides(pixels: str | None) -> dict[str, int]:
    """Return width and height as settings. Raise UsageError where they are none."""
    if pixels is None:
        return {}
    sides = re.fullmatch(r"(\d{2,5})(?:\s{0,2}[x×*]\s{0,2}(\d{2,5}))?", pixels.strip())
    if sides is None:
        raise UsageError(f"--size {pixels}: give the pixels of one edge (1024), or width and height (1280x720)")
    return {"picture_width": int(sides[1]), "picture_height": int(sides[2] or sides[1])}


def _methods(methods: tuple[str, ...]) -> dict[str, str]:
    """Return what is trained and how, as settings. Raise UsageError where two exclude each other."""
    settings: dict[str, str] = {}
    for name in methods:
        setting = "finetuning" if name in _TRAINED else "method"
        if settings.get(setting, name) != name:
            raise UsageError(f"--method {settings[setting]} and --method {name} are mutually exclusive")
        settings[setting] = name
    return settings


class _Question(TypedDict):
    """What `estimate` and `sweep` of the library both take."""

    model: str | None
    gpu: str | None
    gpus: int | None
    framework: str | None
    settings: Mapping[str, Scalar]
    serve: bool
    hub: bool
    rules: str | None


def _table(
    configs: tuple[str, ...],
    axes: str | None,
    question: _Question,
    format_: str,
    wording: Wording,
    *,
    to_terminal: bool,
    of_cards: bool,
) -> tuple[str, int]:
    """Return the text of a sweep, or of the usual cards or formats, and the exit status."""
    from oomdoctor.cli.sizing import tables  # noqa: PLC0415 - only who asks for a table pays for it

    if axes is not None:
        return tables.sweep_text(oomdoctor.sweep(configs, axes=axes, **question), format_, wording, to_terminal=to_terminal)
    if not of_cards:
        return tables.alternatives_text(oomdoctor.compare_formats(configs, **question), format_, wording, to_terminal=to_terminal)
    if question["gpu"] is not None or question["gpus"] is not None:
        raise UsageError("--cards checks the common cards itself: omit --gpu and --gpus")
    compared = oomdoctor.compare_cards(
        configs,
        model=question["model"],
        framework=question["framework"],
        settings=question["settings"],
        serve=question["serve"],
        hub=question["hub"],
        rules=question["rules"],
    )
    return tables.alternatives_text(compared, format_, wording, to_terminal=to_terminal)


def _write_snapshot(run: RunEstimate, path: str) -> None:
    if run.simulation is None:
        raise UsageError("--snapshot is for training: a server reserves its share of the card at once")
    try:
        with open(path, "wb") as file:
            file.write(run.simulation.snapshot)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def _answer_lines(spec: str, output: str | None) -> None:
    from oomdoctor.setups.spec_lines import LONGEST_LINE, answer_lines  # noqa: PLC0415 - only who gives lines of JSON pays for their reader

    try:
        with click.open_file(spec, "rb") as file:
            lines = iter(lambda: file.readline(LONGEST_LINE), b"")
            write("".join(f"{answer}\n" for answer in answer_lines(lines)), output)
    except OSError as error:
        raise UsageError(f"cannot read {spec}: {(error.strerror or str(error)).lower()}") from error


def _render(run: RunEstimate, format_: str, wording: Wording, *, to_terminal: bool) -> str:
    if format_ in ("json", "jsonl"):
        from oomdoctor.report.memory.estimate_json import convert_run_estimate  # noqa: PLC0415 - ten modules that only JSON needs

        return json_text(convert_run_estimate(run, wording), line=format_ == "jsonl", only_keys=True)
    return show(estimate_document(run, wording, __version__), format_, to_terminal=to_terminal, only_keys=True)
