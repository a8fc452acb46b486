"""The memory a run uses on a GPU, from its config files or from settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from oomdoctor.api.bad_input import check_sizes, check_together
from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.models import (
    asked_card,
    card_assumption,
    cards_of_other_sizes,
    cards_there,
    fetch_unknown,
    find_card,
    find_shape,
    job_assumption,
    known_framework,
    number_of_cards,
    tag_assumption,
)
from oomdoctor.api.refusals import run_refusals
from oomdoctor.api.results import RunEstimate
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Fit, MemoryBudget, Otherwise
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import RunConfig, RunSettings, Scalar
from oomdoctor.case.setup import Setup, TracedMemory
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.knowledge.tables.likeness import did_you_mean
from oomdoctor.memory import rollout
from oomdoctor.memory.estimate import estimate as estimate_memory
from oomdoctor.memory.estimate import needed
from oomdoctor.planning.memory_budget import judge_fit, memory_budget
from oomdoctor.planning.sizing.layers import all_on_card, as_it_fits, fewer, on_card
from oomdoctor.planning.sizing.otherwise import otherwise
from oomdoctor.setups.from_log import sized_model
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.setups.model_files import read_config, read_shape
from oomdoctor.setups.nearest_model import model_of_size, nearest_model
from oomdoctor.setups.picture_models import named_pictures
from oomdoctor.setups.programs.ggml import ggml_run, with_context
from oomdoctor.setups.programs.installed import as_installed, installed_frameworks
from oomdoctor.setups.server import CardLookup, deploy, server_record
from oomdoctor.simulation.simulated_run import Simulation

_ANY_SIZE = 1_000_000_000
"""Parameters of a model whose size only a trace will show; the trace does not need it."""


_GGUF_READER = "llama.cpp"
"""The program that loads a GGUF file if none is named."""
_Config = Mapping[str, object]


class Tracing(NamedTuple):
    """Runs a model's code with sizes and no values."""

    trace: Callable[[_Config, Setup], TracedMemory]
    simulate: Callable[[_Config, Setup, str | None, Card | None], Simulation]


def estimate(
    config: Paths = (),
    *,
    model: Path | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    framework: str | None = None,
    settings: RunSettings | Mapping[str, Scalar] | None = None,
    serve: bool = False,
    hub: bool = False,
    trace: bool = False,
    simulate: bool = False,
    rules: Path | None = None,
) -> RunEstimate:
    """Estimate the memory a run uses on a GPU, part by part, and whether it fits.

    `config` are the run's config files and launch scripts. `settings` override theirs, by the names that all frameworks share
    (those of `RunSettings`: `finetuning`, `micro_batch`, `sequence_length`, `zero_stage`). `model` is a name, or the folder or
    file of a config.json; with `hub` the config.json of an unknown one is fetched. `gpu` is the name of a GPU or a size
    (`24GB`), `gpus` the number of them. `serve` estimates a server instead of training; `trace` counts activations in the model's own
    code, which needs torch, and `simulate` also sends the requests of its first steps through a model of torch's allocator.
    `rules` is a folder of rules that are added on top of the built-in ones.

    Raise UsageError if a file cannot be read, a setting has no such name or value, or the model or the GPU is unknown.

    >>> import oomdoctor
    >>> run = oomdoctor.estimate(
    ...     model="Qwen2.5-7B", gpu="24GB", settings={"finetuning": "lora", "micro_batch": 2, "sequence_length": 4096}
    ... )
    >>> run.fits
    'no'
    """
    card, pack = None if gpu is None else find_card(gpu), load_pack(over=path_text(rules))
    gpus, framework = number_of_cards(card, gpus), known_framework(framework, pack)
    known, named = read_run(config, pack, gpus=gpus, settings=settings, serve=serve)
    card = card or asked_card(None, known)
    name = path_text(model)
    if hub:
        fetch_unknown(name or known.model)
    return estimate_run(known, name, framework or named, gpus, card, pack, trace=trace or simulate, simulate=simulate)


def read_run(
    config: Paths, pack: Pack, *, gpus: int | None, settings: RunSettings | Mapping[str, Scalar] | None, serve: bool
) -> tuple[RunSettings, str | None]:
    """Return the settings of the requested run, and the framework that its configs show."""
    run = _read_configs(path_list(config), pack) if config else None
    known = asked_settings(run.settings if run else RunSettings(), gpus=gpus, settings=settings, serve=serve)
    return known, run.framework if run else None


def asked_settings(
    known: RunSettings, *, gpus: int | None, settings: RunSettings | Mapping[str, Scalar] | None, serve: bool
) -> RunSettings:
    """Return the settings with the given ones applied. Raise UsageError if a name or a value is invalid."""
    given = settings.known() if isinstance(settings, RunSettings) else settings or {}
    known = _with_settings(known, given)
    check_together(given, serve=serve)
    if serve:
        known = replace(known, method="serve")
        if gpus is not None and known.tensor_parallel is None and known.pipeline_parallel is None:
            known = replace(known, tensor_parallel=gpus)
    return known


def estimate_run(
    settings: RunSettings,
    model: str | None,
    framework: str | None,
    gpus: int | None,
    card: Card | None,
    pack: Pack,
    *,
    trace: bool = False,
    simulate: bool = False,
) -> RunEstimate:
    """Estimate the run with these settings. Raise UsageError if the model is unknown."""
    framework = framework or (_GGUF_READER if str(model or settings.model).lower().endswith(".gguf") else None)
    if settings.method is None and (ggml_run(framework) or pack.record(SERVERS, framework or "")):
        settings = replace(settings, method="serve")
    if named_pictures(str(model or settings.model or "")) is not None:
        settings = _made_or_trained(settings, framework, pack)
    served = None if card is None else serve_run(settings, model, framework, gpus, card, pack)
    if served is not None:
        here = () if settings.server_version else as_installed(served.server.program.name, pack)
        taken = (*card_assumption(card), *job_assumption(card, settings), *tag_assumption(model or settings.model), *here)
        refused = run_refusals(
            settings, served.setup.shape, framework or served.server.program.name, model, cards_there(gpus, settings), card, pack
        )
        return RunEstimate(estimate=replace(served, assumptions=(*taken, *served.assumptions)), refusals=refused)
    budget = None if card is None else memory_budget(card)
    named = settings.framework_version
    versions = {**installed_frameworks(pack), **({framework: named} if framework and named else {})}
    known = _traced(settings, model, framework, gpus, versions) if trace else _estimated(settings, model, framework, gpus, budget, versions)
    memory = replace(
        known,
        assumptions=(
            *card_assumption(card),
            *job_assumption(card, settings),
            *known.assumptions,
            *(() if named else as_installed(framework, pack)),
        ),
    )
    fit = None if budget is None else judge_fit(memory.setup, budget)
    need = needed(memory.setup) if fit is None else fit.needed
    steps = _tracing().simulate(_config(settings, model), memory.setup, settings.alloc_conf, card) if simulate else None
    layers = None if fit is None else fewer(memory.setup, fit)
    others = (
        *_on_other_cards(card, fit),
        *([layers] if layers else []),
        *_with_more_layers(memory, budget),
        *otherwise(memory, need, budget),
    )
    text = memory.setup.pictures is None
    refused = run_refusals(settings, memory.setup.shape, framework, model, cards_there(gpus, settings), card, pack) if text else ()
    return RunEstimate(estimate=memory, needed=need, fit=fit, otherwise=others, simulation=steps, refusals=refused)


def _with_more_layers(memory: Estimate, budget: MemoryBudget | None) -> Iterator[Otherwise]:
    return iter(()) if budget is None else all_on_card(memory.setup, budget)


def _made_or_trained(settings: RunSettings, framework: str | None, pack: Pack) -> RunSettings:
    """Return the settings of an image generator: no text server serves it, and some programs only generate."""
    record = pack.record(FRAMEWORKS, framework or "")
    makes = record is not None and record.in_logs is not None and record.in_logs.purpose == "inference"
    return replace(settings, method="generate") if settings.method == "serve" or (makes and settings.method is None) else settings


def _on_other_cards(card: Card | None, fit: Fit | None) -> Iterator[Otherwise]:
    """Yield the results for the run on the other GPUs with the given name."""
    if card is None or fit is None:
        return
    for other in cards_of_other_sizes(card):
        there = judge_fit(fit.needed.setup, memory_budget(other))
        text, sets = Text(f"on {other.name}", f"在 {other.name} 上"), (("gpu", other.name),)
        yield Otherwise(assumption="gpu", text=text, sets=sets, needed=there.needed, fits=there.fits, turns=there.fits != fit.fits)


def _read_configs(paths: Sequence[str], pack: Pack) -> RunConfig | None:
    from oomdoctor.api.configs import read_settings  # noqa: PLC0415 - only who gives configs pays for their readers

    run, gaps = read_settings(paths, pack, all_needed=False)
    if run is None or (run.framework is None and not run.settings.known()):
        unread = "; ".join(f"{gap.what}: {gap.why}" for gap in gaps)
        raise UsageError(unread or f"{', '.join(paths)}: contains no setting of any known framework (is it a config of the run?)")
    return run


def _with_settings(known: RunSettings, values: Mapping[str, Scalar]) -> RunSettings:
    settings = known.with_values(values)
    for name, value in values.items():
        if name not in settings.__struct_fields__:
            raise UsageError(f"settings: no setting is called {name}{did_you_mean(name, settings.__struct_fields__)}")
        if value is not None and getattr(settings, name) is None:
            raise UsageError(f"settings: {name} cannot be {value!r}")
    return settings


def serve_run(settings: RunSettings, model: str | None, framework: str | None, gpus: int | None, card: Card, pack: Pack) -> Served | None:
    """Return how a server uses a GPU; None for a run that is not a server."""
    server = server_record(settings, framework, pack) if settings.method == "serve" else None
    if server is None:
        return None
    name = model or settings.model
    version = settings.server_version or installed_frameworks(pack).get(server.server)
    known = replace(settings, model=name or settings.model, server_version=version)
    shape = find_shape(name, known)
    check_sizes(known, shape)
    return deploy(known, shape, server, CardLookup(card.name, card.bytes), cards=gpus or 1).served()


def _estimated(
    settings: RunSettings,
    model: str | None,
    framework: str | None,
    gpus: int | None,
    budget: MemoryBudget | None,
    versions: Mapping[str, str],
) -> Estimate:
    name, cards = model or settings.model, _cards(settings, gpus)
    shape = (None if name else sized_model(settings)) or find_shape(name, settings)
    check_sizes(settings, shape)
    known = with_context(replace(settings, model=name and str(name)), framework, shape, None if budget is None else budget.total, cards)
    setup, assumptions = setup_from_settings(known, shape, framework, cards, versions)
    setup = setup if budget is None else rollout.on_card(setup, budget.total)
    if budget is not None and (placed := as_it_fits(setup, budget)) is not setup:
        named = on_card(placed)
        setup, assumptions = placed, tuple(named if named and each.id == named.id else each for each in assumptions)
    return estimate_memory(setup, assumptions)


def _traced(settings: RunSettings, model: str | None, framework: str | None, gpus: int | None, versions: Mapping[str, str]) -> Estimate:
    """Estimate with activations counted in the model's own code. Raise OomdoctorError if it cannot be traced."""
    tracing, path = _tracing(), str(model or settings.model or "")
    config = _config(settings, model)
    cards = _cards(settings, gpus)
    known = read_shape(path)
    stand_in = known or nearest_model(_ANY_SIZE, path)
    if stand_in is None:
        raise UsageError(f"nothing is known about {path}")
    traced = tracing.trace(config, setup_from_settings(settings, stand_in, framework, cards, versions)[0])
    shape = known or model_of_size(traced.params, path)
    run, assumptions = setup_from_settings(settings, shape, framework, cards, versions)
    return estimate_memory(replace(run, traced=traced), assumptions)


def _tracing() -> Tracing:
    """Return what traces a model's code in a separate process. Raise UsageError if its requirements are not installed."""
    from oomdoctor.tracing import child  # noqa: PLC0415 - who traces nothing starts without it

    if (lacking := child.missing()) is not None:
        raise UsageError(f"--trace needs torch and transformers: pip install 'oomdoctor[trace]' ({lacking} is missing here)")
    return Tracing(child.trace, child.simulate)


def _config(settings: RunSettings, model: str | None) -> _Config:
    path = str(model or settings.model or "")
    config = read_config(path) if path else None
    if config is None:
        raise UsageError("--trace needs the model's config.json: specify its folder or the file with --model")
    return config


def _cards(settings: RunSettings, gpus: int | None) -> int:
    return gpus or max(1, settings.world_size or 1)
