"""A served run as its command says it, as a setup and a server; what is not said is the server's default, and named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.event import Value
from oomdoctor.case.serving import Served, Server
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Setup, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.memory import weight_format
from oomdoctor.knowledge.tables.serving_defaults import serving_default
from oomdoctor.memory.servers.engines import DEFAULT_ENGINE, ENGINES, serve
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.from_log import LoggedRun
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.units import GIB

_QUANTIZED = re.compile(r"awq|gptq|fp8|bitsandbytes|mxfp4|w8a8|w4a16|int-?[48]|[48]-?bit|gguf", re.IGNORECASE)
_EIGHT = re.compile(r"int-?8|8-?bit|w8a", re.IGNORECASE)
_FORMATS = {
    "awq": "awq-int4",
    "gptq": "gptq-int4",
    "fp8": "fp8",
    "bitsandbytes": "nf4",
    "mxfp4": "mxfp4",
    "w8a8": "gptq-int8",
    "w4a16": "gptq-int4",
}


class CardLookup(Struct, frozen=True):
    """The card of a server: its size decides defaults."""

    name: str
    bytes: int


def server_program(settings: RunSettings, framework: str | None) -> str | None:
    """Return which server it is, as far as its budget is known here; `estimate --serve` alone means vLLM."""
    if framework is None and settings.method == "serve":
        return DEFAULT_ENGINE
    return framework if framework in ENGINES else None


def serve_run(known: LoggedRun, log: Mapping[str, Value], shape: Shape, card: CardLookup) -> Served | None:
    """Return what a run that configs and logs tell of makes of its card; None where it is no server."""
    of = server_program(known.settings, known.framework)
    if of is None:
        return None
    version = log.get(f"log.{of}_version")
    named = known.settings.model or log.get("log.model_name_or_path")
    settings = replace(known.settings, model=str(named or ""))
    return serve_settings(settings, shape, of, card, cards=known.cards, version=str(version) if version else None)


def serve_settings(settings: RunSettings, shape: Shape, of: str, card: CardLookup, *, cards: int = 1, version: str | None = None) -> Served:
    """Return what the server makes of each card."""
    setup, server, assumptions = _deployment(settings, shape, of, card, cards=cards, version=version)
    return replace(serve(setup, server, card.bytes), card=card.name, assumptions=assumptions)


def _deployment(
    settings: RunSettings, shape: Shape, of: str, card: CardLookup, *, cards: int = 1, version: str | None = None
) -> tuple[Setup, Server, tuple[Assumption, ...]]:
    """Return the setup, the server, and what had to be assumed."""
    tensor, pipeline = positive(settings.tensor_parallel) or 1, positive(settings.pipeline_parallel) or 1
    made, _ = setup_from_settings(replace(settings, method="serve"), shape, of, max(cards, tensor * pipeline))
    names = ("max_batched_tokens", "max_num_seqs")
    usual = {name: int(serving_default(of, name, card=card.bytes, card_name=card.name, version=version, tensor=tensor)) for name in names}
    batched = positive(settings.max_batched_tokens) or usual["max_batched_tokens"]
    length = positive(settings.max_model_len) or positive(settings.sequence_length)
    requests = min(positive(settings.max_num_seqs) or usual["max_num_seqs"], batched)
    graphs = settings.enforce_eager is not True
    engine, fraction = ENGINES[of], settings.memory_share
    if fraction is None or not 0 < fraction <= 1:
        fraction = _default_fraction(of, card, version, batched, requests if graphs else 0, tensor * pipeline)
    server = Server(
        program=of,
        memory_fraction=float(fraction),
        batched=batched,
        requests=requests,
        length=length,
        graphs=graphs,
        graphs_inside=engine.graphs_by_version and serving_default(of, "graphs_inside", card=card.bytes, version=version) == "yes",
        offload=_offload(settings),
    )
    setup = replace(made, weights=_weights(settings, made.weights), length=length or made.length, batch=1)
    return setup, server, tuple(_assumptions(settings, setup, server))


def _default_fraction(of: str, card: CardLookup, version: str | None, batched: int, graphs: int, cards: int) -> float:
    default = ENGINES[of].default_fraction
    if default is not None:
        return default(card.bytes, batched, graphs, cards)
    return float(serving_default(of, "memory_share", card=card.bytes, card_name=card.name, version=version))


def _weights(settings: RunSettings, otherwise: WeightFormat) -> WeightFormat:
    """Return the format that an option or the name of the checkpoint says."""
    for stated in (settings.quantization or "", settings.model or ""):
        match = _QUANTIZED.search(stated)
        if match is not None:
            word = match[0].lower()
            if word == "gptq" and _EIGHT.search(stated):
                return weight_format("gptq-int8") or otherwise
            name = _FORMATS.get(word, "gptq-int8" if _EIGHT.search(word) else "gptq-int4")
            return weight_format(name) or otherwise
    return otherwise


def _offload(settings: RunSettings) -> int:
    """cpu_offload_gb is GiB of each card (vllm/config/cache.py)."""
    size = settings.cpu_offload_gb
    return round(size * GIB) if size is not None and 0 < size < 1 << 20 else 0


def _assumptions(settings: RunSettings, setup: Setup, server: Server) -> Iterator[Assumption]:
    if setup.shape.guessed:
        yield assumed(
            "shape",
            f"only the size of {setup.shape.name} is known; its layers are a neighbour's",
            f"只知道 {setup.shape.name} 的参数量，层结构取自相近的模型",
        )
    if settings.memory_share is None:
        fraction = f"{server.memory_fraction:g}"
        yield assumed("memory_share", f"{fraction} of the card, the server's default", f"占用显卡的 {fraction}，即该服务的默认值")
    if server.length is None:
        yield assumed(
            "max_model_len",
            "no longest request is given; the server takes the model's own limit, which is not known here",
            "没有指定最大长度；服务会采用模型自身的上限，而这里并不知道它是多少",
        )
    if settings.max_batched_tokens is None:
        yield assumed(
            "max_batched_tokens",
            f"{server.batched} tokens in one step, the server's default on this card",
            f"单步最多 {server.batched} 个 token，即该服务在这张卡上的默认值",
        )
    engine = ENGINES[server.program]
    if engine.limits_requests and settings.max_num_seqs is None:
        yield assumed(
            "max_num_seqs",
            f"{server.requests} requests at a time, the server's default on this card",
            f"最多并发 {server.requests} 个请求，即该服务在这张卡上的默认值",
        )
    if draft := settings.draft_model:
        yield assumed(
            "draft_model",
            f"the draft model {draft} takes weights and cache of its own, which are not counted",
            f"草稿模型 {draft} 自己的权重和缓存没有计入",
        )
    if server.graphs and engine.graphs_by_version:
        where = (
            ("comes out of the share (vLLM 0.20 and newer)", "从份额里扣除（vLLM 0.20 及以后）")
            if server.graphs_inside
            else ("comes on top of the share (vLLM before 0.20)", "在份额之外另占（vLLM 0.20 以前）")
        )
        yield Assumption(id="cuda_graphs", text=Text(f"what CUDA graphs take {where[0]}", f"CUDA 图占用的显存{where[1]}"))
