"""The options of a server: for each subject the values to try, the nearest to the current one first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from oomdoctor.case.serving import Server
from oomdoctor.case.settings import Scalar
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.memory.model.weights import weights
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.memory.servers.engines import LEAST_WHOLE
from oomdoctor.planning.options import CostedMeasure, Option, available, measure, option
from oomdoctor.units import GIB

_FRACTIONS = (0.97, 0.96, 0.95, 0.94, 0.92, 0.9, 0.88, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4, 0.3)
_BATCHED = (4096, 2048, 1024, 512)
_REQUESTS = (256, 128, 64, 32, 16, 8)
_OFFLOADS = (2, 4, 8, 16, 32, 64)
"""GiB on each GPU."""
_CHECKPOINTS = (("fp8", "fp8"), ("awq", "awq-int4"))
"""Quantized checkpoints by their option and their format."""
_SHORTEST = 1024
"""Tokens below which a limit is too short for nearly any chat."""
_USUAL = 32768
"""The token limit if the maximum request length of a model is unknown."""
_ROUND = 256
"""A limit is a multiple of this many tokens, for readability."""


ServerOption = Option[Deployment]


def subjects(now: Deployment, capability: tuple[int, ...], can: Callable[[str], bool]) -> tuple[tuple[ServerOption, ...], ...]:
    """Return the options of all subjects; the length last, since it uses what the others leave."""
    every = (_fractions, _batched, _requests, _graphs, _tensor, _cache, _weights, _offload, _length)
    return available((subject(now) for subject in every), capability, can)


def _fractions(now: Deployment) -> Iterator[ServerOption]:
    """Yield larger ones, then smaller ones."""
    present = now.server.memory_fraction
    for fraction in (*(share for share in reversed(_FRACTIONS) if share > present), *(share for share in _FRACTIONS if share < present)):
        name = "server-share-up" if fraction > present else "server-share-down"
        yield _server_option("share", name, "memory_share", fraction, memory_fraction=fraction)


def _batched(now: Deployment) -> Iterator[ServerOption]:
    """Yield fewer tokens; none if a step must hold the longest request, since such a server refuses to start with less."""
    if now.server.takes_whole:
        return
    for size in _BATCHED:
        if size < now.server.batched:
            yield _server_option("batched", "server-batched", "max_batched_tokens", size, batched=size)


def _requests(now: Deployment) -> Iterator[ServerOption]:
    for number in _REQUESTS:
        if number < now.server.requests:
            yield _server_option("requests", "server-requests", "max_num_seqs", number, requests=number)


def _graphs(now: Deployment) -> Iterator[ServerOption]:
    if now.server.graphs:
        yield _server_option("graphs", "server-graphs", "enforce_eager", True, graphs=False)


def _tensor(now: Deployment) -> Iterator[ServerOption]:
    """Yield powers of two up to the number of GPUs, since heads must divide evenly."""
    layout = now.setup.layout
    size = layout.tensor * 2
    while size * layout.pipeline <= layout.cards:
        if now.setup.shape.heads % size == 0:
            yield option(measure("server-tensor", tensor_parallel=size), apply=_on_cards(size), subject="tensor")
        size *= 2


def _on_cards(tensor: int) -> Callable[[Deployment], Deployment]:
    return lambda now: replace(now, setup=replace(now.setup, layout=replace(now.setup.layout, tensor=tensor)))


def _cache(now: Deployment) -> Iterator[ServerOption]:
    if now.setup.cache_bytes > 1:
        yield _setup_option("cache", measure("server-cache", kv_cache_dtype="fp8"), cache_bytes=1.0)


def _weights(now: Deployment) -> Iterator[ServerOption]:
    for setting, name in _CHECKPOINTS:
        if known_format(name).bytes_per_param < now.setup.weights.bytes_per_param and not now.setup.weights.packed:
            yield _setup_option("weights", measure("server-weights", quantization=setting), weights=known_format(name))


def _offload(now: Deployment) -> Iterator[ServerOption]:
    for size in _OFFLOADS:
        if size * GIB > now.server.offload:
            yield option(measure("server-offload", cpu_offload_gb=size), apply=_offloaded(size * GIB), subject="offload")


def _offloaded(size: int) -> Callable[[Deployment], Deployment | None]:
    """Offload at most half of the weights: with more of them on the bus, answers are unacceptably slow."""
    return lambda now: _with_server(now, offload=size) if 2 * size <= weights(now.setup).bytes else None


def _length(now: Deployment) -> Iterator[ServerOption]:
    length = now.server.length
    if (length is None or length > _SHORTEST) and now.server.program.checks_request:
        yield option(measure("server-length", max_model_len=length or 0), apply=_longest_request, subject="length")


def _longest_request(now: Deployment) -> Deployment | None:
    """Return the deployment with the longest request that the cache certainly holds, and with the matching step."""
    newest, present = now.newest(), now.server.length
    held = max(0, int(newest.cache.low / newest.full_token)) // _ROUND * _ROUND if newest.full_token else 0
    length = min(held, _USUAL) if present is None else min(held, newest.setup.shape.longest or held)

    def limited(server: Server) -> Server:
        return replace(server, length=length, batched=max(length, LEAST_WHOLE) if server.takes_whole else server.batched)

    return now.with_server(limited) if _SHORTEST <= length < (present or length + 1) else None


def _server_option(subject: str, name: str, setting: str, value: Scalar, **fields: object) -> ServerOption:
    return option(measure(name, **{setting: value}), apply=lambda now: _with_server(now, **fields), subject=subject)


def _setup_option(subject: str, change: CostedMeasure, **fields: object) -> ServerOption:
    return option(change, apply=lambda now: replace(now, setup=replace(now.setup, **fields)), subject=subject)


def _with_server(now: Deployment, **fields: object) -> Deployment:
    return now.with_server(lambda server: replace(server, **fields))
