"""What can be changed of a server: for each subject the values to try, the nearest to the present one first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.plan import Measure, Risk
from oomdoctor.case.serving import Served, Server
from oomdoctor.case.settings import Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.memory.model.weights import weights
from oomdoctor.memory.servers.startup import serve
from oomdoctor.units import GIB

_SHARES = (0.97, 0.96, 0.95, 0.94, 0.92, 0.9, 0.88, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4, 0.3)
_STEPS = (4096, 2048, 1024, 512)
_REQUESTS = (256, 128, 64, 32, 16, 8)
_OFFLOADS = (2, 4, 8, 16, 32, 64)
_CHECKPOINTS = (("fp8", "fp8"), ("awq", "awq-int4"))
"""Quantised checkpoints by their option and their format."""
_SHORTEST = 1024
"""Tokens below which a limit serves hardly any chat."""
_ROUND = 256
"""A limit is a multiple of so many tokens, for a person to read."""


class Deployment(Struct, frozen=True):
    """A server, its model and its card."""

    setup: Setup
    server: Server
    total: int

    def served(self) -> Served:
        """What becomes of the card."""
        return serve(self.setup, self.server, self.total)

    def told(self, **changes: object) -> Deployment:
        """With other settings of the server."""
        return replace(self, server=replace(self.server, **changes))


class Way(Struct, frozen=True):
    """One value of one subject."""

    subject: str
    apply: Callable[[Deployment], Deployment | None]
    """The deployment with it; None where it makes no sense there."""
    setting: Callable[[Deployment], tuple[str, Scalar]]
    """How the result is written, by the name that all frameworks share."""

    def measure(self, after: Deployment) -> Measure:
        """What is changed, where `after` is the result."""
        return Measure(fix=harm(self.subject).fix, sets=(self.setting(after),))


class Harm(Struct, frozen=True):
    """What rules/tables/serving_measures.csv says of a subject."""

    fix: str
    risk: Risk
    effort: int


def ways(now: Deployment) -> tuple[tuple[Way, ...], ...]:
    """All subjects that can be changed; the length last, as it takes what the others leave."""
    subjects = (_shares, _batched, _requests, _graphs, _tensor, _cache, _weights, _offload, _length)
    return tuple(found for one in subjects if (found := tuple(one(now))))


def _shares(now: Deployment) -> Iterator[Way]:
    """Larger ones, then smaller ones."""
    own = now.server.share
    for share in (*(one for one in reversed(_SHARES) if one > own), *(one for one in _SHARES if one < own)):
        yield _way("share-up" if share > own else "share-down", "memory_share", share, share=share)


def _batched(now: Deployment) -> Iterator[Way]:
    yield from (_way("batched", "max_batched_tokens", size, batched=size) for size in _STEPS if size < now.server.batched)


def _requests(now: Deployment) -> Iterator[Way]:
    yield from (_way("requests", "max_num_seqs", number, requests=number) for number in _REQUESTS if number < now.server.requests)


def _graphs(now: Deployment) -> Iterator[Way]:
    if now.server.graphs:
        yield _way("graphs", "enforce_eager", True, graphs=False)


def _tensor(now: Deployment) -> Iterator[Way]:
    """Powers of two up to the cards that there are, as heads must divide evenly."""
    layout = now.setup.layout
    size = layout.tensor * 2
    while size * layout.pipeline <= layout.cards:
        if now.setup.shape.heads % size == 0:
            yield Way("tensor", _over(size), lambda after: ("tensor_parallel", after.setup.layout.tensor))
        size *= 2


def _over(cards: int) -> Callable[[Deployment], Deployment]:
    return lambda one: replace(one, setup=replace(one.setup, layout=replace(one.setup.layout, tensor=cards)))


def _cache(now: Deployment) -> Iterator[Way]:
    if now.setup.cache_bytes > 1:
        yield Way("cache", lambda one: replace(one, setup=replace(one.setup, cache_bytes=1.0)), lambda _: ("kv_cache_dtype", "fp8"))


def _weights(now: Deployment) -> Iterator[Way]:
    for written, name in _CHECKPOINTS:
        if known_format(name).bytes_per_param < now.setup.weights.bytes_per_param and not now.setup.weights.packed:
            yield Way("weights", _stored(name), _quantized(written))


def _stored(name: str) -> Callable[[Deployment], Deployment]:
    return lambda one: replace(one, setup=replace(one.setup, weights=known_format(name)))


def _quantized(written: str) -> Callable[[Deployment], tuple[str, Scalar]]:
    return lambda _: ("quantization", written)


def _offload(now: Deployment) -> Iterator[Way]:
    for size in _OFFLOADS:
        if size * GIB > now.server.offload:
            yield Way("offload", _moved(size * GIB), _gigabytes(size))


def _moved(size: int) -> Callable[[Deployment], Deployment | None]:
    """Half of the weights at most: with more of them on the bus nobody waits for an answer."""
    return lambda one: one.told(offload=size) if 2 * size <= weights(one.setup).bytes else None


def _gigabytes(size: int) -> Callable[[Deployment], tuple[str, Scalar]]:
    return lambda _: ("cpu_offload_gb", size)


def _length(now: Deployment) -> Iterator[Way]:
    if now.server.length is not None and now.server.length > _SHORTEST and now.server.program == "vllm":
        yield Way("length", _fitting, lambda after: ("max_model_len", after.server.length))


def _fitting(one: Deployment) -> Deployment | None:
    """With the longest request that the cache surely holds."""
    length = one.served().tokens.low // _ROUND * _ROUND
    return one.told(length=length) if _SHORTEST <= length < (one.server.length or 0) else None


def _way(subject: str, name: str, value: Scalar, **changes: object) -> Way:
    return Way(subject, lambda one: one.told(**changes), lambda _: (name, value))


@cache
def harm(subject: str) -> Harm:
    """What a subject costs."""
    row = next(row for row in table("serving_measures") if row["subject"] == subject)
    risks: dict[str, Risk] = {"none": "none", "slight": "slight", "data": "data"}
    return Harm(row["fix"], risks[row["risk"]], int(row["effort"]))
