"""Which GPUs a run fits on, and which formats of its weights fit on a GPU: one `estimate` for each."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.api.estimate import estimate_run, read_run
from oomdoctor.api.inputs import Path, Paths, path_text
from oomdoctor.api.models import fetch_unknown, find_card, known_framework, number_of_cards, only_text
from oomdoctor.api.results import RunEstimate
from oomdoctor.api.sizing.sweep import swept_run
from oomdoctor.case.serving import ByteRange, Served
from oomdoctor.case.settings import RunSettings, Scalar
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.sizing.alternatives import Alternatives, Candidate
from oomdoctor.planning.sizing.sweep import served_need
from oomdoctor.setups.programs.ggml import ggml_run

_COUNTS = (1, 2, 4, 8)
_SPREADING = ("strategy", "zero_stage", "fsdp", "fsdp_sharding", "tensor_parallel", "pipeline_parallel", "shards_states")
"""Settings that say how GPUs share a run."""
_SHARDED = 3
_ALL_LAYERS = 999
"""llama.cpp leaves layers in host memory until the others fit; what is compared is the whole model on the GPU."""


class _OpenRun(Struct, frozen=True):
    """A requested run, before a GPU or a format is chosen."""

    settings: RunSettings
    model: str | None
    framework: str | None
    pack: Pack

    def on(self, card: Card | None, cards: int) -> RunEstimate:
        """Estimate it on this many GPUs."""
        return estimate_run(_spread(self.settings, cards), self.model, self.framework, cards, card, self.pack)


def compare_cards(
    config: Paths = (),
    *,
    model: Path | None = None,
    framework: str | None = None,
    settings: RunSettings | Mapping[str, Scalar] | None = None,
    serve: bool = False,
    hub: bool = False,
    rules: Path | None = None,
) -> Alternatives:
    """Estimate a run on the usual GPUs of 8 to 288 GB (rules/tables/compared_cards.csv), on 1, 2, 4 and 8 of each.

    If nothing says how several GPUs share the run, training is sharded by ZeRO 3 and a server is tensor parallel. The arguments
    are those of `estimate`. Raise UsageError as it does.

    >>> import oomdoctor
    >>> compared = oomdoctor.compare_cards(model="Qwen2.5-7B", settings={"finetuning": "qlora", "gradient_checkpointing": True})
    >>> [row[0].fits for row in compared.rows][:4]
    ['no', 'close', 'close', 'yes']
    """
    run = _open_run(config, model, framework, settings, hub=hub, serve=serve, rules=rules)
    rows = [_row(run, find_card(row["card"])) for row in table("compared_cards")]
    alone = run.on(None, 1).estimate
    first = run.on(find_card(table("compared_cards")[0]["card"]), 1).estimate
    return Alternatives(
        compared="cards",
        setup=alone.setup,
        budget=None,
        server=first.server.program.title if isinstance(first, Served) else None,
        spread=None if _is_spread(run.settings) else "tensor parallel" if isinstance(first, Served) else "zero3",
        rows=tuple(rows),
        assumptions=(first if isinstance(first, Served) else alone).assumptions,
    )


def compare_formats(
    config: Paths = (),
    *,
    gpu: str | None = None,
    gpus: int | None = None,
    model: Path | None = None,
    framework: str | None = None,
    settings: RunSettings | Mapping[str, Scalar] | None = None,
    serve: bool = False,
    hub: bool = False,
    rules: Path | None = None,
) -> Alternatives:
    """Estimate a run with its weights in each usual format (rules/tables/compared_formats.csv), and the longest sample that then fits.

    The arguments are those of `estimate`. Raise UsageError as it does, and if all weights are trained: trained weights have no
    other format.

    >>> import oomdoctor
    >>> compared = oomdoctor.compare_formats(model="Qwen3-8B", framework="llama.cpp", gpu="12GB")
    >>> [(cell.name, cell.fits) for (cell,) in compared.rows][:2]
    [('f16', 'no'), ('q8_0', 'yes')]
    """
    card = None if gpu is None else find_card(gpu)
    cards = number_of_cards(card, gpus) or 1
    run = _open_run(config, model, framework, settings, hub=hub, serve=serve, rules=rules)
    only_text(run.model or run.settings.model, "--formats")
    now = run.on(card, cards).estimate
    use = _use(run)
    if use == "train" and now.setup.adapters is None:
        raise UsageError("--formats: all weights are trained, in one format; use --method lora, or --serve")
    formats = [row["format"] for row in table("compared_formats") if row["use"] == use]
    return Alternatives(
        compared="formats",
        setup=now.setup,
        budget=None if card is None else memory_budget(card),
        server=now.server.program.title if isinstance(now, Served) else None,
        spread=None,
        rows=tuple((_in_format(run, name, card, cards),) for name in formats),
        assumptions=tuple(taken for taken in now.assumptions if taken.id != "weights"),
    )


def _open_run(
    config: Paths,
    model: Path | None,
    framework: str | None,
    settings: RunSettings | Mapping[str, Scalar] | None,
    *,
    hub: bool,
    serve: bool,
    rules: Path | None,
) -> _OpenRun:
    pack = load_pack(over=path_text(rules))
    known, named = read_run(config, pack, gpus=None, settings=settings, serve=serve)
    name = path_text(model)
    if hub:
        fetch_unknown(name or known.model)
    program = known_framework(framework, pack) or named
    if ggml_run(program) and known.gpu_layers is None:
        known = replace(known, gpu_layers=_ALL_LAYERS)
    return _OpenRun(known, name, program, pack)


def _row(run: _OpenRun, card: Card) -> tuple[Candidate, ...]:
    return tuple(_weighed(card.name, cards, run.on(card, cards)) for cards in _COUNTS)


def _in_format(run: _OpenRun, name: str, card: Card | None, cards: int) -> Candidate:
    packed = replace(run, settings=replace(run.settings, weight_format=name))
    estimated = packed.on(card, cards)
    now = _weighed(name, cards, estimated)
    if card is None or now.needed is None:
        return now
    sizes = {"batch": (1,)} if isinstance(estimated.estimate, Served) else {}
    settings = _spread(packed.settings, cards)
    return replace(now, longest=swept_run(settings, packed.model, packed.framework, cards, card, packed.pack, sizes).longest[0])


def _weighed(name: str, cards: int, run: RunEstimate) -> Candidate:
    if run.refusals:
        return Candidate(name=name, cards=cards, needed=None, fits="no")
    if isinstance(run.estimate, Served):
        need, fits = served_need(run.estimate, 1)
        return Candidate(name=name, cards=cards, needed=need, fits=fits)
    whole = run.needed or run.estimate
    return Candidate(name=name, cards=cards, needed=ByteRange(whole.expected, whole.low, whole.high), fits=run.fits)


def _use(run: _OpenRun) -> str:
    if ggml_run(run.framework):
        return "gguf"
    return "serve" if run.settings.method == "serve" else "train"


def _is_spread(settings: RunSettings) -> bool:
    return any(getattr(settings, name) is not None for name in _SPREADING)


def _spread(settings: RunSettings, cards: int) -> RunSettings:
    """Return the settings for this many GPUs, sharded if nothing says how they share the run."""
    if cards == 1 or _is_spread(settings):
        return settings
    if settings.method == "serve":
        return replace(settings, tensor_parallel=cards)
    return replace(settings, zero_stage=_SHARDED)
