"""Add up what servers printed about the memory of each GPU during startup.

Messages with the topic `memory-ledger` are used (rules/signatures/*-memory.yaml); the name of a field says what its figure is. If a server
prints one part for each pool, draft or file, these are added up; others print the same figure again, and the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from oomdoctor.case.event import Event, Kind, Value
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.knowledge.records.signature import LEDGER, LEDGER_BEGINS

_NO_TOPICS: Sequence[str] = ()
_ADDED: Mapping[str, frozenset[str]] = {
    "sglang": frozenset({
        "weights_bytes", "kv_cache_bytes", "k_bytes", "v_bytes", "cuda_graph_bytes", "conv_state_bytes", "ssm_state_bytes",
        "draft_conv_state_bytes", "draft_ssm_state_bytes", "kv_final_bytes",
    }),
    "llama.cpp": frozenset({"model_buffer_bytes", "kv_buffer_bytes", "state_buffer_bytes"}),
}  # fmt: skip
"""Figures for which each line is one of several: a pool, a draft, a weight file."""
_STATES = ("state_buffer_bytes", "conv_state_bytes", "ssm_state_bytes", "draft_conv_state_bytes", "draft_ssm_state_bytes")
_TABLE = frozenset({"total_bytes", "free_bytes", "self_bytes", "model_buffer_bytes", "kv_buffer_bytes", "compute_buffer_bytes"})
"""The figures in a row of llama.cpp's table at the end of a run, which restates earlier single lines."""
_BEFORE = "initial_free_bytes"
"""What was free before anything was loaded: of several loads, the first reports it."""
_DEVICES = ("device", "cache_device", "graph_device")
_NUMBERED = re.compile(r"(?:CUDA|ROCm|Vulkan|SYCL|MUSA|CANN|HIP)_?(\d{1,3})")
_ON_HOST = re.compile(r"CPU|Host|BLAS|AMX|REPACK")
_WORKER_RANK = re.compile(r"_(?:DP\d{1,4}_)?(?:PP\d{1,4}_)?TP(\d{1,4})\b")


class _Card(Struct):
    program: str
    source: str
    of: str
    rank: int | None
    gpu: int | None
    figures: dict[str, int] = field(default_factory=dict)
    table: dict[str, int] = field(default_factory=dict)
    requests: float | None = None

    def add(self, event: Event, program: str) -> None:
        sizes = {name: size for name, value in event.fields.items() if (size := _whole(value)) is not None}
        if "self_bytes" in sizes:
            self.table = {name: size for name, size in sizes.items() if name in _TABLE}
            return
        added = _ADDED.get(program, frozenset())
        for name, size in sizes.items():
            if name in added:
                self.figures[name] = self.figures.get(name, 0) + size
            elif name != _BEFORE or name not in self.figures:
                self.figures[name] = size
        concurrency = event.fields.get("concurrency")
        if concurrency is not None:
            self.requests = float(str(concurrency))


def server_ledgers(events: Sequence[Event], topics: Mapping[str, Sequence[str]], programs: Mapping[str, str]) -> tuple[ServerLedger, ...]:
    """Return the ledgers of the last startup shown by each log, one for each GPU; `programs`: signature -> program."""
    cards: dict[tuple[str, str, str], _Card] = {}
    for event in events:
        told = topics.get(event.signature, _NO_TOPICS) if event.kind is Kind.CONTEXT else _NO_TOPICS
        if LEDGER_BEGINS in told:
            cards = {key: card for key, card in cards.items() if key[0] != event.place.source}
        elif LEDGER in told:
            program = programs.get(event.signature, "")
            of, gpu = _card_of(event)
            key = (event.place.source, program, of)
            if key not in cards:
                cards[key] = _Card(program, event.place.source, of, _rank(event), gpu)
            cards[key].add(event, program)
    return tuple(ledger for card in _with_shared(cards) if (ledger := _ledger(card)).taken)


def ledger_of(root: Event, ledgers: Sequence[ServerLedger]) -> ServerLedger | None:
    """Return the ledger of the GPU that a message concerns; None if it is unknown which one."""
    of_log = [ledger for ledger in ledgers if ledger.source == root.place.source and ledger.of != "host"]
    rank, gpu = root.rank if root.rank is not None else _rank(root), root.fields.get("gpu_index")
    for ledger in of_log:
        if rank is not None and ledger.rank is not None:
            if ledger.rank == rank:
                return ledger
        elif isinstance(gpu, int) and ledger.gpu is not None:
            if ledger.gpu == gpu:
                return ledger
        elif len(of_log) == 1:
            return ledger
    return None


def first_card(ledgers: Sequence[ServerLedger]) -> ServerLedger | None:
    """Return the ledger of the first GPU; of several logs, that of the first."""
    return next((ledger for ledger in ledgers if ledger.of != "host"), None)


def _card_of(event: Event) -> tuple[str, int | None]:
    """Return the GPU that a message is about, as named, and its number if given."""
    device = next((str(event.fields[name]) for name in _DEVICES if name in event.fields), None)
    if device is not None:
        if _ON_HOST.search(device):
            return "host", None
        numbered = _NUMBERED.match(device)
        return device, int(numbered[1]) if numbered else None
    rank, gpu = _rank(event), event.fields.get("gpu_index")
    if rank is not None:
        return f"rank {rank}", None
    return (f"gpu {gpu}", gpu) if isinstance(gpu, int) else ("", None)


def _rank(event: Event) -> int | None:
    if event.rank is not None:
        return event.rank
    worker = _WORKER_RANK.search(event.worker or "")
    return int(worker[1]) if worker else None


def _with_shared(cards: Mapping[tuple[str, str, str], _Card]) -> Iterator[_Card]:
    """Yield the GPUs; what a server printed once for all of them counts for each that is named.

    If Ollama loads through llama.cpp, llama.cpp's buffers are the exact figures.
    """
    for (source, program, of), card in sorted(cards.items(), key=_place):
        if program == "ollama" and (source, "llama.cpp", of) in cards:
            continue
        named = [key for key in cards if key[:2] == (source, program) and key[2] not in ("", "host")]
        if not of and named:
            continue
        shared = cards.get((source, program, "")) if of != "host" else None
        if shared is not None and shared is not card:
            card.figures = {**shared.figures, **card.figures}
            card.requests = card.requests if card.requests is not None else shared.requests
        yield card


def _place(entry: tuple[tuple[str, str, str], _Card]) -> tuple[str, str, int, int, str]:
    """Return the sort key of a GPU: by log and program, the host last."""
    (source, program, of), card = entry
    return source, program, of == "host", card.rank if card.rank is not None else card.gpu or 0, of


def _ledger(card: _Card) -> ServerLedger:
    sizes = (
        {**card.table, **card.figures}
        if card.figures.keys() & {"model_buffer_bytes", "kv_buffer_bytes"}
        else {**card.figures, **card.table}
    )
    return ServerLedger(
        program=card.program,
        source=card.source,
        of=card.of,
        rank=card.rank,
        gpu=card.gpu,
        total=sizes.get("total_bytes"),
        initial_free=sizes.get("initial_free_bytes"),
        budget=sizes.get("budget_bytes"),
        weights=_first(sizes, "weights_bytes", "model_buffer_bytes"),
        activations=_first(sizes, "activation_peak_bytes")
        if "activation_peak_bytes" in sizes
        else _sum(sizes, "compute_buffer_bytes", "output_buffer_bytes"),
        graphs=_first(sizes, "cuda_graph_bytes", "cuda_graph_estimate_bytes"),
        outside=sizes.get("non_torch_bytes"),
        consumed=sizes.get("consumed_bytes"),
        cache=_cache(sizes),
        free=sizes.get("free_bytes"),
        tokens=_tokens(sizes),
        requests=card.requests,
        length=sizes.get("max_model_len"),
    )


def _cache(sizes: Mapping[str, int]) -> int | None:
    """Return the size of the cache, including states, or otherwise what it is given."""
    if "block_bytes" in sizes and "gpu_blocks" in sizes:
        return sizes["block_bytes"] * sizes["gpu_blocks"]
    taken = _first(sizes, "kv_final_bytes", "kv_cache_bytes", "kv_buffer_bytes")
    pair = None if "kv_final_bytes" in sizes else _sum(sizes, "k_bytes", "v_bytes")
    taken = pair if taken is None else taken if "kv_buffer_bytes" in sizes else taken + (pair or 0)
    states = _sum(sizes, *_STATES)
    if taken is None and states is None:
        return sizes.get("kv_available_bytes")
    return (taken or 0) + (states or 0)


def _tokens(sizes: Mapping[str, int]) -> int | None:
    if "block_tokens" in sizes and "gpu_blocks" in sizes:
        return sizes["block_tokens"] * sizes["gpu_blocks"]
    return _first(sizes, "kv_capacity_tokens", "cells")


def _first(sizes: Mapping[str, int], *names: str) -> int | None:
    return next((sizes[name] for name in names if name in sizes), None)


def _sum(sizes: Mapping[str, int], *names: str) -> int | None:
    known = [sizes[name] for name in names if name in sizes]
    return sum(known) if known else None


def _whole(value: Value) -> int | None:
    """Return a whole number as messages print it: a size, or tokens as `98,304`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value).replace(",", "")
    return int(text) if isinstance(value, str) and text.isascii() and text.isdigit() and len(text) < 16 else None
