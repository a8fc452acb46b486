"""The names of cards as people write them, in parts: what it is called, its size, how many there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from msgspec import Struct

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.likeness import likeness, nearest
from oomdoctor.knowledge.tables.name_words import any_word, name_words

_SIZE = re.compile(r"(?<![a-z\d.])(\d{1,4})\s*(?:gib|gb|g)(?![a-z0-9])", re.IGNORECASE)
# Forms that few names need; re compiles them where one does.
_GLUED_SIZE = r"(?<=\d)(ti|tis|super|xtx?|gre|d)(?=\d{1,3}\s*g(?:i?b)?(?![a-z\d]))"
_MEBIBYTES = r"(?<![\w.])(\d{4,6})\s*mi?b?(?![a-z\d])"
_PARALLEL = r"(?i)(?<![a-z\d])(?:tp|tensor[\s_-]parallel(?:[\s_-]size)?)\s*[=:]?\s*(\d{1,3})(?![\w.])"
_BUILT_AS = r"(?<![a-z\d])sm[\s_-]?\d{2,3}[a-z]?(?![a-z\d])"
"""The compute capability beside a name (`SM120`, `sm_89`, `SM12x`)."""
_NOT_ITS_OWN = (
    r"(?<![a-z\d])gfx\d{3,4}[a-z]?(?![a-z\d])"
    r"|[\s+,，、]*(?<![\w.])(?:(?:6[4-9]|[7-9]\d|\d{3,4})\s*g(?:i?b)?|\d\s*tb?)\s*(?:内存|(?:system |host )?(?:ram|memory)(?![a-z]))"
)
"""What LLVM calls a card beside its name (`gfx1100`), and memory of the machine (`5090+64g内存`); read where the whole names none."""
_THIN = r"(?<![a-z])max-?q(?![a-z])"
"""NVIDIA's word for thin laptops, which is in the names of some cards; the others are called laptop GPUs."""
_INSIDE = r"[(（]([^()（）]+)[)）]"
_OF_LSPCI = r"^(\d{1,2}\s*[x×*])?.*\[([^\[\]]+)\]([^\[\]]*)$"
"""What lspci prints: maker and chip, the card's name in square brackets (`GA102 [GeForce RTX 3090] (rev a1)`)."""
_REVISION = r"\(rev [\da-f]{2}\)"
_MACHINES_TIMES_CARDS = r"^(\d{1,2})\s*[x×*]\s*(\d{1,2})(?=[\s张块卡x×*]+[a-z])(?!\s*g(?:i?b)?(?![a-z]))"
"""`2*8 A800`; a size behind the first number is none of cards (`2 x 16 GB`)."""
_CHINESE = "[\u3400-\u9fff]+"
_WORD = r"[a-z]{3,}"
_LIKE = 0.5
"""A word that is so like one of a card's name is that word mistyped; it must not be passed over."""
_BETWEEN = re.compile(r"[\s_+/()（）,，-]+")
_COUNTS = (
    re.compile(r"(\d{1,4})\s*[x×*]\s*(?=\S)(.+)", re.IGNORECASE),
    re.compile(r"(.+?)\s*[x×*]\s*(\d{1,4})", re.IGNORECASE),
    re.compile(r"(\d{1,4}|[单一双两二三四八])\s*(?:张|块|卡|路)\s*(.+)"),
    re.compile(r"(单|双|one|two|three|four|eight|\d{1,2}(?= +[a-z]))\s*(.+?)", re.IGNORECASE),
)
# Forms that only a sentence needs; re compiles them with the first.
_TIMES = r"(?i)(?<![\w.])(\d{1,3})\s*[x×*]\s*(?=\S)|[x×*]\s*(\d{1,3})(?![\w.])"
_NUMBER = r"(\d{1,3}|[单一双两二三四六八]|(?:single|one|two|dual|three|four|six|eight)(?=[\s-]))"
_OF_UNITS = (
    rf"(?i)(?<![a-z\d.]){_NUMBER}\s*-?\s*(?:(?:gpus?|cards?)(?![a-z])|张|块|卡|路)|(?<![\w.])(\d{{1,2}})-(?=[a-z])"
    rf"|^{_NUMBER}\s+(?=\S)(?!g(?:i?b)?(?![a-z]))|(?<![a-z])with\s+{_NUMBER}\s+(?=(?:[a-z]+\s)?[a-z]?\d)"
)
_MACHINES = rf"(?i)(?<![\w.]){_NUMBER}\s*(?:台|机|(?:nodes?|machines?|servers?|systems?)(?![a-z]))"
_MOST_IN_A_MACHINE = 8
"""Of more cards in one number the machines are counted already (`4台910B 64G×32`)."""
_PAIR = r"(?i)\bpair\s+of\b"
_SLICE = r"(?i)\bmig\b.*?\b\dg\.(\d{1,3})gb\b|[a-z]\d{1,4}[a-z]*-(\d{1,3})[cq]$"
"""A part of a card that counts as one (nvidia-smi mig -lgip), or of NVIDIA's vGPU (`A100-10C`)."""
_MOST = 100
_LEAST = 2


class CardName(Struct, frozen=True):
    """A name of a card, in parts."""

    written: str
    """The name as it was written, without a count."""
    text: str
    """The name without size and count."""
    gigabytes: int | None = None
    cards: int | None = None
    is_modded: bool = False
    """Whether it says that somebody has changed the memory."""


def read_card_name(written: str) -> Iterator[CardName]:
    """Yield what a name may say: all of it a name, then a part of it a count, then a plural."""
    whole = _multiplied(written[:_MOST])
    written = _bounded(whole)
    is_modded = False
    if any(word in written.lower() for word in name_words("card", "modded")):
        unmodded = any_word("card", "modded").sub(" ", written)
        is_modded, written = unmodded != written, " ".join(unmodded.split())
    readings = [(written, None), *_counted(written)]
    for text, cards in [*readings, *((text[:-1], cards) for text, cards in readings if re.search(r"\ds$", text))]:
        size = _SIZE.search(text)
        yield CardName(text, _SIZE.sub(" ", text).strip(" -_()（）"), int(size[1]) if size else None, cards, is_modded)
    yield from _in_a_sentence(whole)
    yield from _among_other_words(whole)
    left = whole.partition("=")[0]
    if left != whole and _without_counts(left)[1]:
        yield from _in_a_sentence(left)
    if (named := _named_by_lspci(whole)) != whole:
        yield from read_card_name(named)


def _named_by_lspci(written: str) -> str:
    """Return the name of the card in a line of lspci, with a count before it; else what was written."""
    match = re.match(_OF_LSPCI, written) if "[" in written else None
    if match is not None and not letters(_SIZE.sub(" ", match[2])):
        return written.replace("[", "(").replace("]", ")")
    return " ".join(re.sub(_REVISION, " ", part or "") for part in match.groups()) if match else written


def _multiplied(written: str) -> str:
    """Return a name with the cards of all machines in one number."""
    match = re.match(_MACHINES_TIMES_CARDS, written, re.IGNORECASE) if written[:1].isdecimal() else None
    return f"{int(match[1]) * int(match[2])} {written[match.end() :].lstrip('张块卡x×* ')}" if match else written


def _in_a_sentence(written: str) -> Iterator[CardName]:
    """Yield what words around a name say of number and size (`4 A10 GPUs with 24 GB each`, `2台 H100*8`); a size may be that of all."""
    part = re.search(_SLICE, written)
    if part is not None:
        yield CardName(written, "", int(part[1] or part[2]))
    text, cards = _without_counts(written)
    sizes = [int(size) for size in _SIZE.findall(text)]
    name = re.sub(r"(?<=\d)s\b", "", any_word("card", "beside").sub(" ", _SIZE.sub(" ", text)))
    name = _bounded(name).strip(" -_,，*()（）")
    if not name or name == written:
        return
    written_sizes: list[int | None] = [*sizes] or [None]
    for size in written_sizes:
        yield CardName(f"{name} {size}GB" if size else name, name, size, cards)
    if sizes and cards and sizes[0] % cards == 0:
        yield CardName(f"{name} {sizes[0] // cards}GB", name, sizes[0] // cards, cards)


def _among_other_words(written: str) -> Iterator[CardName]:
    """Yield what is left without the words that are in no card's name, then what stands in brackets (`a workstation (A6000 48GB)`)."""
    written = re.sub(_MEBIBYTES, _gigabytes, re.sub(_GLUED_SIZE, r"\1 ", written, flags=re.IGNORECASE), flags=re.IGNORECASE)
    inside = [name for name in re.findall(_INSIDE, written) if letters(_SIZE.sub(" ", name))]
    beside = re.sub(_NOT_ITS_OWN, " ", written, flags=re.IGNORECASE)
    for text in dict.fromkeys((written, *inside, beside, re.sub(_THIN, "laptop", beside, flags=re.IGNORECASE))):
        known = _known_only(text)
        if known and letters(_SIZE.sub(" ", known)):
            size = _SIZE.search(known)
            cards = _without_counts(re.sub(_INSIDE, " ", written))[1] if text in inside else None
            yield CardName(known, _SIZE.sub(" ", known).strip(" -_,，*()（）"), int(size[1]) if size else None, cards)
            yield from _in_a_sentence(known)


def _known_only(text: str) -> str:
    """Return a text without Chinese, and without words of letters alone that no card has in its name; one mistyped stays."""
    plain = re.sub(_CHINESE, " ", re.sub(_BUILT_AS, " ", _as_laptop(text), flags=re.IGNORECASE))
    return " ".join(re.sub(_WORD, _kept, plain, flags=re.IGNORECASE).split())


def _kept(word: re.Match[str]) -> str:
    return word[0] if _means_something(word[0].lower()) else " "


@lru_cache(maxsize=256)
def _means_something(word: str) -> bool:
    words = {*_all_words(), *name_words("card", "count"), "mig"}
    if word in words or any_word("card", "maker", "build", "place", "beside", "modded").fullmatch(word):
        return True
    like = next(iter(nearest(word, words, 1)), "")
    return likeness(word, like) >= _LIKE


@cache
def _all_words() -> frozenset[str]:
    return frozenset(word for row in table("cards") for word in re.findall(_WORD, row["names"].lower()))


def _gigabytes(size: re.Match[str]) -> str:
    """Return mebibytes as gigabytes; what nvidia-smi shows is less than what a card is sold with."""
    return f"{-(-int(size[1]) // 1024)}GB"


def _as_laptop(name: str) -> str:
    return any_word("card", "laptop").sub("laptop", name)


def _without_counts(written: str) -> tuple[str, int | None]:
    """Return a text without what counts cards and machines in it, and how many cards that makes."""
    text, machines = _taken(_MACHINES, written)
    text, times = _taken(_TIMES, text)
    if times is None:
        text, times = _taken(_PARALLEL, text)
    text, cards = (text, None) if times else _taken(_OF_UNITS, text)
    text, pairs = re.subn(_PAIR, " ", text)
    cards = times or cards
    if cards is not None and machines is not None:
        return text, cards * machines if cards <= _MOST_IN_A_MACHINE else cards
    return text, cards or (2 if pairs else machines)


def _taken(form: str, text: str) -> tuple[str, int | None]:
    """Return a text without the first match of a form, and the number in it."""
    match = re.search(form, text)
    if match is None:
        return text, None
    count = next(group for group in match.groups() if group)
    number = int(count if count.isdecimal() else name_words("card", "count")[count.lower()])
    return f"{text[: match.start()]} {text[match.end() :]}", number or None


@lru_cache(maxsize=2048)
def letters(name: str) -> str:
    """Return a name without makers, separators and capitals: names that agree in it are the same."""
    return "".join(_words(name))


@lru_cache(maxsize=1024)
def known_words(known: str) -> tuple[str, ...]:
    """Return the words of a card's name without its size."""
    return tuple(_words(_SIZE.sub(" ", known)))


def has_size(known: str) -> bool:
    """Return whether a card's name holds its size."""
    return _SIZE.search(known) is not None


def words_left(text: str, words: tuple[str, ...]) -> list[str] | None:
    """Return which words of a card's name a written one leaves away; None where the written name is not that card's.

    Every letter of it must be in these words, which may be joined and stand in any order (`rtx4060ti`, `RTX 6000 Pro`).
    """
    left = _left(letters(text), words) if text else None
    return None if left is None or any(word in left for word in _identity(words)) else left


def _counted(written: str) -> Iterator[tuple[str, int | None]]:
    for form in _COUNTS:
        match = form.fullmatch(written)
        if match is not None:
            count, name = (match[2], match[1]) if form is _COUNTS[1] else (match[1], match[2])
            number = int(count if count.isdecimal() else name_words("card", "count")[count.lower()])
            if number:
                yield name.strip(), number


def _words(name: str) -> list[str]:
    return [word for word in _BETWEEN.split(any_word("card", "maker", "build").sub(" ", _as_laptop(name.lower()))) if word]


def _identity(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that must be written: the first with a digit, with what is before it where it is a digit alone; else all."""
    number = next((at for at, word in enumerate(words) if any(letter.isdigit() for letter in word)), None)
    if number is None:
        return words
    return words[: number + 1] if len(words[number]) < _LEAST else words[number : number + 1]


def _left(joined: str, words: tuple[str, ...]) -> list[str] | None:
    """Return the words that are not needed to spell `joined`; None where they do not spell it."""
    if not joined:
        return list(words)
    for at, word in enumerate(words):
        if joined.startswith(word):
            left = _left(joined[len(word) :], words[:at] + words[at + 1 :])
            if left is not None:
                return left
    return None


def _bounded(written: str) -> str:
    return " ".join(any_word("card", "place").sub(" ", written[:_MOST]).split())
