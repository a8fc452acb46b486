"""How much memory a card has, by any name that people give it."""

from __future__ import annotations

import re

from msgspec import Struct

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.units import GIB, MIB

_NOISE = re.compile(r"nvidia|geforce|tesla|quadro|generation|[\s_-]+")
_SIZE = re.compile(r"(\d{1,4})\s*(?:gib|gb|g)\b", re.IGNORECASE)
_HIDDEN = 1 / 40
"""Of the memory in a card's name the driver keeps some for itself: nvidia-smi shows 24,564 MiB of an RTX 4090, 81,559 MiB of an
H100, 15,360 MiB of a T4 (pytorch issues and nvidia-smi output, facts of `environment`); this is the middle."""


class Card(Struct, frozen=True):
    """A card and what of it a program can have at most."""

    name: str
    bytes: int
    capability: str = ""
    """Its compute capability; empty where that is not known."""


def card_named(written: str) -> Card | None:
    """Return a card by name (`RTX 4090`, `A100-80GB`) or by size alone (`24GB`); None where the name is unknown or means several sizes."""
    written = written.strip()
    size = _SIZE.search(written)
    if not _plain(_SIZE.sub("", written)):
        return Card(written, _usable(int(size[1]))) if size else None
    rows = _named(written)
    sizes = {gigabytes for row in rows for gigabytes in row.gigabytes if size is None or gigabytes == int(size[1])}
    if len(sizes) != 1:
        return None
    oldest = min((row.capability for row in rows), key=parse_capability)
    return Card(rows[0].names[0] if size is None else written, _usable(sizes.pop()), oldest)


def capability(written: str) -> str:
    """Return the compute capability of the cards of a name; empty where the name is unknown or they differ."""
    capabilities = {row.capability for row in _named(written.strip())}
    return capabilities.pop() if len(capabilities) == 1 else ""


def sizes() -> list[Card]:
    """Return one card of each size, the smallest first: the newest of that size, memory that is shared with the CPU left out."""
    newest: dict[int, tuple[tuple[int, ...], str]] = {}
    for row in table("cards"):
        made = parse_capability(row["compute_capability"])
        for size in row["memory_gb"].split("|") if row["unified"] == "no" and row["memory_gb"] else ():
            newest[int(float(size))] = max(newest.get(int(float(size)), ((), "")), (made, row["names"].split("|")[0]))
    return [Card(f"{name} ({size} GB)", _usable(size)) for size, (_, name) in sorted(newest.items())]


def parse_capability(text: str) -> tuple[int, ...]:
    """Return a compute capability of a table as its two numbers, which can be ordered; of an empty text none, which is the least."""
    return tuple(map(int, text.split("."))) if text else ()


def _named(written: str) -> list[_Row]:
    """Return the cards that are called so, else those of which it is a part of the name."""
    plain = _plain(_SIZE.sub("", written))
    if not plain:
        return []
    exact = [row for row in _cards() if any(_plain(name) == _plain(written) for name in row.names)]
    return exact or [row for row in _cards() if any(_matches(plain, name) for name in row.names)]


def _matches(plain: str, name: str) -> bool:
    """Return whether a short name (`a100`, `4090`) is the whole of one or more words of the long one."""
    parts = [_plain(word) for word in re.split(r"[\s-]+", _SIZE.sub("", name))]
    return any("".join(parts[start:end]) == plain for start in range(len(parts)) for end in range(start + 1, len(parts) + 1))


class _Row(Struct, frozen=True):
    names: list[str]
    gigabytes: list[int]
    capability: str


def _cards() -> list[_Row]:
    return [
        _Row(row["names"].split("|"), [int(float(gigabytes)) for gigabytes in row["memory_gb"].split("|")], row["compute_capability"])
        for row in table("cards")
        if row["memory_gb"]
    ]


def _plain(name: str) -> str:
    return _NOISE.sub("", name.lower())


def _usable(gigabytes: int) -> int:
    return int(gigabytes * GIB * (1 - _HIDDEN)) // MIB * MIB
