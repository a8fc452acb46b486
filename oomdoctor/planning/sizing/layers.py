"""How many layers of a model llama.cpp can put on a GPU, and what happens to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.pictures import PictureRun
from oomdoctor.case.plan import Fit, MemoryBudget, Otherwise
from oomdoctor.case.settings import Scalar
from oomdoctor.case.setup import GgmlRun, Setup
from oomdoctor.case.text import Text
from oomdoctor.memory.model.gguf import type_bytes
from oomdoctor.planning.memory_budget import fits, judge_fit, needed
from oomdoctor.planning.sizing.largest import largest
from oomdoctor.setups.assumed import assumed
from oomdoctor.units import GIB

_CONTEXT_STEP = 1024
_CACHE_TYPES = ("q8_0", "q4_0")
"""Accepted by OLLAMA_KV_CACHE_TYPE and --cache-type-k; both need flash attention."""
_PARTS = 20
_TILE = 512
"""Pixels of a tile if the whole image cannot be decoded at once: ComfyUI nodes.py and comfy/sd.py, decode_tiled."""
_KEPT_FREE = GIB
"""What `--fit` leaves free on each GPU: fit_params_target of llama.cpp common/common.h, 1024 MiB."""


def as_it_fits(setup: Setup, budget: MemoryBudget) -> Setup:
    """Return the run as placed on a GPU by a program that determines itself what fits: experts go to the host first, then whole layers."""
    if setup.pictures is not None:
        return _as_loaded(setup, setup.pictures, budget)
    run = setup.ggml
    return setup if run is None or not run.fits_itself else _most(setup, run, lambda placed: _leaves(placed, budget)) or setup


def _as_loaded(setup: Setup, run: PictureRun, budget: MemoryBudget) -> Setup:
    """Return the run with as much of each part's weights on the GPU as certainly fits, by twentieths."""
    if not run.fits_itself:
        return setup

    def with_share(twentieths: int) -> Setup:
        return replace(setup, pictures=replace(run, resident=twentieths / _PARTS, tile=run.tile or _TILE))

    if fits(needed(setup, budget), budget) == "yes":
        return setup
    reached = largest(lambda number: fits(needed(with_share(number), budget), budget) == "yes", 1, _PARTS)
    return setup if reached is None else with_share(reached)


def on_card(setup: Setup) -> Assumption | None:
    """Return what part of a run is on the GPU if not all of it is; None if all of it is."""
    if setup.pictures is not None:
        share = round(100 * setup.pictures.resident)
        en = f"{share} % of each part's weights on the card and VAE tiling, which fits; the rest of the weights waits on the host"
        zh = f"每个部分的权重有 {share}% 在显卡上，解码分块进行，这是放得下的最多；其余权重留在主机内存"
        return assumed("by_parts", en, zh, is_question=False)
    run = setup.ggml
    if run is None or not (run.host_experts or run.layers is not None):
        return None
    en, zh = _placed(setup, run)
    text = f"{en}, as much as fits; the rest is computed on the host, several times slower"
    return assumed("gpu_layers", text, f"{zh}，这是放得下的最多；其余在主机上计算，速度慢数倍")


def fewer(setup: Setup, fit: Fit) -> Otherwise | None:
    """Return a run that is too large, with as many layers on the GPU as certainly fit; None if none does, or it fits."""
    run = setup.ggml
    if run is None or fit.fits == "yes" or setup.layout.cards > 1:
        return None
    placed = _most(setup, run, lambda placed: fits(needed(placed, fit.budget), fit.budget) == "yes")
    if placed is None or placed.ggml is None:
        return None
    en, zh = _placed(setup, placed.ggml)
    layers = placed.ggml.layers
    sets = ("host_experts", round(placed.ggml.host_experts)) if layers is None or layers == run.layers else ("gpu_layers", layers)
    there = judge_fit(placed, fit.budget)
    return Otherwise(
        assumption="gpu_layers", text=Text(f"with {en}", f"{zh}时"), sets=(sets,), needed=there.needed, fits=there.fits, turns=True
    )


def all_on_card(setup: Setup, budget: MemoryBudget) -> Iterator[Otherwise]:
    """Yield with which context and cache type more layers fit on the GPU, if not all of them do."""
    run = setup.ggml
    if run is None or not run.fits_itself or run.layers is None:
        return
    whole = replace(setup, ggml=replace(run, layers=None, host_experts=0.0))
    tokens = largest(lambda length: _leaves(replace(whole, length=length), budget), _CONTEXT_STEP, setup.length)
    if tokens is not None:
        text = Text(f"with a context of {tokens:,} tokens, all layers on the card,", f"上下文为 {tokens:,} 个 token、全部层在显卡上时")
        yield _with(replace(whole, length=tokens), budget, text, ("max_model_len", tokens))
    for kind in _CACHE_TYPES:
        width = type_bytes(kind) or setup.cache_bytes
        placed = (
            None
            if width >= setup.cache_bytes
            else _most(replace(whole, cache_bytes=width), whole.ggml or run, lambda at: _leaves(at, budget))
        )
        if placed is None or placed.ggml is None or (placed.ggml.layers or setup.shape.layers + 1) <= run.layers:
            continue
        number = placed.ggml.layers
        en = "all layers" if number is None else f"{number} layers"
        zh = "全部层" if number is None else f"{number} 层"
        yield _with(
            placed,
            budget,
            Text(f"with a cache of {kind}, {en} on the card,", f"缓存类型为 {kind}、{zh}在显卡上时"),
            ("kv_cache_dtype", kind),
        )


def _with(setup: Setup, budget: MemoryBudget, text: Text, sets: tuple[str, Scalar]) -> Otherwise:
    there = judge_fit(setup, budget)
    return Otherwise(assumption="gpu_layers", text=text, sets=(sets,), needed=there.needed, fits=there.fits, turns=True)


def _most(setup: Setup, run: GgmlRun, holds: Callable[[Setup], bool]) -> Setup | None:
    """Return the run with as much as possible on the GPU, or None if nothing fits."""
    if holds(setup):
        return setup
    layers, every = setup.shape.layers, setup.shape.layers + 1

    def with_run(**fields: float | int) -> Setup:
        return replace(setup, ggml=replace(run, **fields))

    if setup.shape.experts is not None and run.layers is None and holds(with_run(host_experts=float(layers))):
        kept = largest(lambda number: holds(with_run(host_experts=float(layers - number))), 1, layers) or 0
        return with_run(host_experts=float(layers - kept))
    number = largest(lambda count: holds(with_run(layers=count)), 1, min(run.layers or every, every))
    return None if number is None else with_run(layers=number)


def _leaves(setup: Setup, budget: MemoryBudget) -> bool:
    """Return whether a run certainly fits, and leaves free what the program wants to be free."""
    need = needed(setup, budget)
    return need.expected + _KEPT_FREE <= budget.total and fits(need, budget) == "yes"


def _placed(setup: Setup, run: GgmlRun) -> tuple[str, str]:
    layers = setup.shape.layers
    if run.layers is None:
        experts = round(run.host_experts)
        return f"all {layers} layers on the card except the experts of {experts}", f"{layers} 层都在显卡上，其中 {experts} 层的专家在主机"
    return (
        f"{run.layers} of {layers + 1} layers on the card ({run.layers_key} {run.layers})",
        f"{layers + 1} 层中有 {run.layers} 层在显卡上（{run.layers_key} {run.layers}）",
    )
