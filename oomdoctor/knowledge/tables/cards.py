"""How much memory a card has, by any name that people give it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.knowledge.tables.card_names import CardName, has_size, known_words, letters, read_card_name, words_left
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.likeness import nearest
from oomdoctor.units import GIB, MIB

_HIDDEN = 1 / 40
"""Of the memory in a card's name the driver keeps some for itself: nvidia-smi shows 24,564 MiB of an RTX 4090, 81,559 MiB of an
H100, 15,360 MiB of a T4 (pytorch issues and nvidia-smi output, facts of `environment`); this is the middle."""
_APPLE = "Apple "
_HIDDEN_OF_APPLE = ((36, 1 / 4), (0, 1 / 3))
"""What macOS keeps from the GPU, by the memory of the machine from GB on: Metal's recommendedMaxWorkingSetSize, as llama.cpp prints it,
is 49,152 MB of 64 GB and 21,845 MB of 32 GB."""
_ROUNDED = 0.07
"""Sizes of one card that differ by less are one: a B200 of 192 GB shows 180."""
_CLOUD = re.compile(r"\b(?:standard_|ml\.)")
_SHORT_SIZE = re.compile(r"(?<=[.\d])xl\b")
"""`g5.8xl` for g5.8xlarge."""
_PARTED = re.compile(r"[\s()（）,，:：]+")
_KNOWN_CHOICES = 2
"""Memory that is shared with the host is bought in any size; of more sizes than this none is the commonest."""


_SET_SIZES = (8, 16, 32)
"""What an owner may give to a card in the processor, in GB: how the size is to be said, never taken."""


class Card(Struct, frozen=True):
    """A card and what of it a program can have at most."""

    name: str
    bytes: int
    capability: str = ""
    """Its compute capability; empty where that is not known."""
    count: int | None = None
    """How many, where the written name says so (`2x4090`)."""
    gigabytes: int = 0
    others: tuple[int, ...] = ()
    """Sizes of other cards of the written name, which says no size."""


def card_named(written: str) -> Card | None:
    """Return a card by name (`RTX 4090`, `A100-80GB`) or by size alone (`24GB`); None where the name is unknown or means several sizes."""
    card = commonest_card(written)
    return None if card is None or card.others else card


def commonest_card(written: str) -> Card | None:
    """Return the card that a name means, of several sizes the commonest; None where it is unknown or that of different cards."""
    if rented := _rented(written):
        return rented
    for name in read_card_name(written):
        if not name.text:
            size = name.gigabytes
            return Card(name.written, _usable(size), count=name.cards, gigabytes=size) if size else None
        if card := _chosen(name, _named(name)):
            return card
    return None


def _rented(written: str) -> Card | None:
    """Return the cards of a type of machine that a cloud rents (`p4d.24xlarge`, `Standard_NC24ads_A100_v4`); None where none is named."""
    plain = _SHORT_SIZE.sub("xlarge", _CLOUD.sub("", written.lower()))
    row = next((row for words in (plain, *_PARTED.split(plain)) if (row := _instances().get(words))), None)
    card = None if row is None else commonest_card(row["card"])
    if row is None or card is None:
        return None
    # `2 x p4d.24xlarge` are two machines.
    machines = next((name.cards for name in read_card_name(written) if _instances().get(_CLOUD.sub("", name.written.lower())) is row), None)
    counts = [int(count) for count in (row["cards"], machines or "") if count]
    return replace(card, count=prod(counts) if counts else None)


def choices(written: str, most: int = 3) -> list[str]:
    """Return the names that somebody may have meant by one that is not known, or that several cards have; the likeliest first."""
    for name in read_card_name(written):
        rows = [row for _, row in sorted(_matching(CardName(name.written, name.text)), key=lambda match: match[0])]
        meant = [shown for row in rows for shown in _sized(name, row)]
        if meant:
            return list(dict.fromkeys(meant))[: max(most, len(rows[0].gigabytes))]
    return nearest(letters(written), [*map(_shown, _cards()), *_instances()], most, spelled=letters)


def capability(written: str) -> str:
    """Return the compute capability of the cards of a name; empty where the name is unknown or they differ."""
    rows = next((rows for name in read_card_name(written) if (rows := _named(CardName(written=name.written, text=name.text)))), [])
    capabilities = {row.capability for row in rows}
    return capabilities.pop() if len(capabilities) == 1 else ""


def sizes() -> list[Card]:
    """Return one card of each size, the smallest first: the newest of that size that runs CUDA and has memory of its own."""
    newest: dict[int, tuple[tuple[int, ...], str]] = {}
    for row in table("cards"):
        made = parse_capability(row["compute_capability"])
        for size in row["memory_gb"].split("|") if made and row["unified"] == "no" and row["memory_gb"] else ():
            newest[int(float(size))] = max(newest.get(int(float(size)), ((), "")), (made, row["names"].split("|")[0]))
    return [Card(f"{name} ({size} GB)", _usable(size)) for size, (_, name) in sorted(newest.items())]


def parse_capability(text: str) -> tuple[int, ...]:
    """Return a compute capability of a table as its two numbers, which can be ordered; of an empty text none, which is the least."""
    return tuple(map(int, text.split("."))) if text else ()


class _Row(Struct, frozen=True):
    names: list[str]
    gigabytes: list[int]
    """The commonest first; none where it has what the owner of the machine gives it."""
    capability: str
    unified: bool

    letters: frozenset[str] = frozenset()
    """Every letter of its names; a name with another one is not its."""

    @property
    def is_carved(self) -> bool:
        """Whether it has a part of the machine's memory, which the owner sets: then the size that is said is right."""
        return self.unified and not self.names[0].startswith(_APPLE)

    @property
    def commonest_is_known(self) -> bool:
        return not self.unified or len(self.gigabytes) <= _KNOWN_CHOICES


def _chosen(name: CardName, rows: list[_Row]) -> Card | None:
    """Return the commonest of cards that differ in size only; None where they are different cards, or nobody knows which is common."""
    gigabytes = list(dict.fromkeys(size for row in rows for size in row.gigabytes))
    if not gigabytes:
        return None
    one_card = len({known_words(row.names[0]) for row in rows}) == 1
    if len(gigabytes) > 1 and not (one_card and rows[0].commonest_is_known):
        return None
    size, *others = gigabytes
    oldest = min((row.capability for row in rows), key=parse_capability)
    shown = name.written if name.gigabytes else f"{name.text} {size}GB" if others or len(rows) > 1 else _spelling(name, rows[0])
    usable = _totals().get((rows[0].names[0], size)) or _usable(size, is_apple=rows[0].names[0].startswith(_APPLE))
    return Card(shown, usable, oldest, count=name.cards, gigabytes=size, others=tuple(others))


def _sized(name: CardName, row: _Row) -> list[str]:
    """Return the names of a card in each of its sizes; one of a size that the owner sets as it was written."""
    if row.gigabytes:
        return [_shown(row, size) for size in row.gigabytes]
    return [f"{_spelling(name, row)} {size}GB" for size in _SET_SIZES]


def _spelling(name: CardName, row: _Row) -> str:
    """Return which name of a card was meant."""
    meant = [(len(left), known) for known in row.names if (left := _left(name, known)) is not None]
    return min(meant, key=lambda pair: pair[0])[1] if meant else name.written


def _shown(row: _Row, gigabytes: int | None = None) -> str:
    """Return the name of a card as people write it, with its size."""
    name = row.names[0].removeprefix("NVIDIA ").removeprefix("GeForce ")
    return name if gigabytes is None or f"{gigabytes}G" in name else f"{name} {gigabytes}GB"


def _named(name: CardName) -> list[_Row]:
    """Return the cards that are called so, else those with the fewest words beside the written ones; of the written size only."""
    plain = letters(name.written)
    exact = [row for row in _cards() if set(plain) <= row.letters and any(letters(known) == plain for known in row.names)]
    if exact:
        return [_of_size(row, name.gigabytes) or row for row in exact]
    sized = [
        (left, fitting)
        for left, row in _matching(name)
        if (fitting := _of_size(row, name.gigabytes, is_whole=not left, is_modded=name.is_modded)) is not None
    ]
    fewest = min((left for left, _ in sized), default=0)
    return [row for left, row in sized if left == fewest]


def _matching(name: CardName) -> list[tuple[int, _Row]]:
    """Return the cards of which this may be the name, each with how many words were left away."""
    plain = set(letters(name.text))
    return [(left, row) for row in _cards() if plain <= row.letters and (left := _missing(name, row)) is not None]


def _missing(name: CardName, row: _Row) -> int | None:
    """Return how many words of a card's name were left away; None where the written one is not its name."""
    counts = [len(left) + (name.gigabytes is None and has_size(known)) for known in row.names if (left := _left(name, known)) is not None]
    return min(counts, default=None)


def _left(name: CardName, known: str) -> list[str] | None:
    return words_left(name.text, known_words(known))


def _of_size(row: _Row, gigabytes: int | None, *, is_whole: bool = True, is_modded: bool = False) -> _Row | None:
    """Return a card in this size only; None where it does not come in it. A size may be rounded where the name is the whole one."""
    if gigabytes is None:
        return row
    if is_modded or (row.is_carved and gigabytes <= max(row.gigabytes, default=gigabytes)):
        return _Row(row.names, [gigabytes], row.capability, row.unified)
    same = [size for size in row.gigabytes if size == gigabytes]
    near = same or [size for size in row.gigabytes if is_whole and abs(size - gigabytes) <= _ROUNDED * gigabytes]
    return _Row(row.names, near[:1], row.capability, row.unified) if near else None


@cache
def _cards() -> list[_Row]:
    return [
        _Row(
            row["names"].split("|"),
            [int(float(gigabytes)) for gigabytes in row["memory_gb"].split("|") if gigabytes],
            row["compute_capability"],
            row["unified"] == "yes",
            frozenset(row["names"].lower().replace("mobile", "laptop")),
        )
        for row in table("cards")
        if row["memory_gb"] or row["unified"] == "yes"
    ]


@cache
def _instances() -> Mapping[str, Mapping[str, str]]:
    return {name: row for row in table("instances") for name in row["names"].split("|")}


@cache
def _totals() -> dict[tuple[str, int], int]:
    """By card and size the bytes that programs see."""
    return {(row["card"], int(row["memory_gb"])): int(float(row["total_gib"]) * GIB) // MIB * MIB for row in table("card_totals")}


def _usable(gigabytes: int, *, is_apple: bool = False) -> int:
    hidden = next(share for least, share in _HIDDEN_OF_APPLE if gigabytes >= least) if is_apple else _HIDDEN
    return int(gigabytes * GIB * (1 - hidden)) // MIB * MIB
