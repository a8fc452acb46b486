"""What a form can offer before Python has started: the names of models, cards, frameworks, servers and optimizers."""

from __future__ import annotations

from msgspec.json import encode

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.cards import sizes
from oomdoctor.knowledge.tables.memory import optimizer_names
from oomdoctor.knowledge.tables.models import model_rows


def choices() -> bytes:
    """Return the names as JSON."""
    pack = load_pack()
    cards = {card.name: card.bytes for card in sizes()}
    return encode(
        {
            "models": sorted({row.name for row in model_rows()}, key=str.lower),
            "cards": [{"name": name, "bytes": cards[name]} for name in sorted(cards)],
            "frameworks": [record.framework for record in pack.records(FRAMEWORKS)],
            "servers": [record.server for record in pack.records(SERVERS)],
            "optimizers": list(optimizer_names()),
        }
    )
