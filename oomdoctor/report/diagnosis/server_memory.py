"""What a server printed of the memory of its cards, folded; where the arithmetic knows the server, what was expected beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.case import Case
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.case.serving import ServedRun
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Facts, Folded, Heading, Row
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_TITLE = Text("Memory figures printed by the server", "服务自己打印的显存明细")
_EXPECTED = Text("expected {}", "预计 {}")
_TOKENS = Text("{:,} tokens", "{:,} 个 token")
_HOLDS = Text("tokens in the cache", "缓存可容纳")
_REQUESTS = Text("concurrent requests of {:,} tokens", "{:,} token 的请求可并发")
_HOST = Text("host memory", "主机内存")
_CARDS = 8
_PARTS = {
    "total": Text("card", "显卡"),
    "initial_free": Text("free before startup", "启动前空闲"),
    "budget": Text("server's share", "服务的份额"),
    "weights": Text("weights", "权重"),
    "consumed": Text("weights and non-torch memory", "权重与 torch 之外"),
    "activations": Text("working memory", "计算用的临时显存"),
    "graphs": Text("CUDA graphs", "CUDA 图"),
    "outside": Text("outside torch", "torch 之外"),
    "cache": Text("KV cache", "KV 缓存"),
    "free": Text("free after startup", "启动后空闲"),
}
_TERMS: Mapping[str, tuple[str, ...]] = {
    "weights": ("weights",),
    "activations": ("working set", "sampler", "encoder"),
    "graphs": ("cuda graphs",),
    "outside": ("outside torch",),
}
"""The parts by the terms of the memory model."""


def server_memory(case: Case, wording: Wording) -> Iterator[Block]:
    """Yield the parts that were printed; nothing where the budget of a failed server shows them already."""
    cards = case.ledgers[:_CARDS]
    if not cards or (case.served is not None and case.incidents):
        return
    blocks: list[Block] = []
    for card in cards:
        if len(cards) > 1:
            blocks.append(Heading(wording.say(_HOST) if card.of == "host" else clean_line(card.of or card.program, 80)))
        blocks.append(Facts(tuple(_rows(card, case.served, wording))))
    yield Folded(wording.say(_TITLE), tuple(blocks), _gist(cards[0], wording))


def _rows(card: ServerLedger, served: ServedRun | None, wording: Wording) -> Iterator[Row]:
    expected = {} if served is None or card.of == "host" else _expected(served)
    for name, label in _PARTS.items():
        size = getattr(card, name)
        if size is not None:
            note = wording.say(_EXPECTED).format(format_size(expected[name])) if name in expected else ""
            yield Row(wording.say(label), format_size(size), note)
    if card.tokens is not None:
        holds = None if served is None or card.of == "host" or not served.total_is_known else served.expected.full_tokens
        note = wording.say(_EXPECTED).format(wording.say(_TOKENS).format(holds)) if holds else ""
        yield Row(wording.say(_HOLDS), wording.say(_TOKENS).format(card.tokens), note)
    if card.requests is not None and card.length is not None:
        yield Row(wording.say(_REQUESTS).format(card.length), f"{card.requests:g}")


def _expected(served: ServedRun) -> dict[str, int]:
    """Return what the arithmetic expects of the parts that have terms; of a card that was worked out from the cache, not the cache."""
    terms = {term.name: term.bytes for term in (*served.expected.terms, *served.expected.beside)}
    sums = {part: [terms[name] for name in names if name in terms] for part, names in _TERMS.items()}
    parts = {part: sum(sizes) for part, sizes in sums.items() if sizes}
    return {**parts, "cache": served.expected.cache.expected, "budget": served.expected.taken} if served.total_is_known else parts


def _gist(card: ServerLedger, wording: Wording) -> str:
    parts = ("weights", "consumed", "cache", "free")
    shown = [f"{wording.say(_PARTS[name])} {format_size(size)}" for name in parts if (size := getattr(card, name)) is not None]
    if card.tokens is not None:
        shown.append(wording.say(_TOKENS).format(card.tokens))
    return wording.semicolon.join(shown)
