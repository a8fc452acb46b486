"""Refused memory in the words of any program: what the words of a sentence mean, and the order they come in.

A sentence may say that memory is lacking, that it could not be allocated, that a limit was exceeded, or that more is needed than available.
Whose memory it was is given by those words, or otherwise by the nearest word for a place. Disk space, time and tokens run out too: a word
for one of them within the words of a form makes it a different failure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import FormName, Lexicon, LexiconNode, RefusalForm
from oomdoctor.reading.lexicon import Tag
from oomdoctor.reading.lines import TaggedLine, tagged

Whose = Literal["device", "host", "shared", "chip"]

MEMORY = ("memory", "device-memory", "host-memory", "shared-memory", "chip-memory")
_OWNERS: dict[str, Whose] = {
    "device-memory": "device", "host-memory": "host", "shared-memory": "shared", "chip-memory": "chip",
    "device": "device", "library": "device", "host": "host", "weak-host": "host",
}  # fmt: skip
_PLACES: Sequence[Collection[str]] = (
    ("chip-memory",),
    ("shared-memory",),
    ("device-memory", "device", "library", "host-memory", "host"),
    ("weak-host",),
)
"""Words for a place; those in a row count if there is no word from a row above."""
_BETWEEN = r"[,:|{}\[\]]\s"
"""What separates the word for what is lacking from the memory in another clause."""
_NAMED_ERROR = re.compile(r"(?:Error|Exception): ")
"""What separates the name of an error from its message."""
_COMPARED = r"\d\s?[KMGT]i?B\)?\s?>\s?(?:[a-z]{1,12}\s){0,3}\d[\d.]*\s?[KMGT]i?B"
_SIZE = r"(?<![\w.])\d[\d,.]*\s?(?:[KMGT]i?[Bb]|bytes?|[KMGT]\b|字节)|(?<![\w.])\d{8,20}(?![\w.])|0x[0-9a-f]{6,16}"


class MemoryRefusal(Struct, frozen=True):
    """A refusal stated by a sentence: its form, its location, and whose memory it names, if any."""

    form: FormName
    start: int
    end: int
    whose: Whose | None
    is_of_one: bool = False
    """Its sentence says that one process was terminated, or which of several it was."""


def find_refusals(text: str, tree: Lexicon) -> Iterator[MemoryRefusal]:
    """Yield the memory refusals that a line states: for each sentence, the first form that matches."""
    line = tagged(text, tree)
    if "other-resource" in line.concepts:
        return
    last = -1
    compared = re.search(_COMPARED, text)
    if compared is not None and not line.concepts.isdisjoint(MEMORY):
        yield MemoryRefusal("short", *compared.span(), whose_memory(text, tree))
    for form in tree.forms:
        if not all(map(line.concepts.intersection, form.sequence)):
            continue
        for chain in _chains(form, line):
            start, end = line.span(chain[0])[0], line.span(chain[-1])[1]
            within = line.sentence(start)
            if within[0] == last or not _holds(form, chain, line, within):
                continue
            last = within[0]
            whole = max((line.span(tag)[1] for tag in line.of(("limit",)) if tag.first == chain[-1].end), default=end)
            name: FormName = "fit" if _is_fit(chain, line) else form.id
            yield MemoryRefusal(name, start, whole, _whose(chain, line, within), _concerns_one_process(chain, line, within))


def whose_memory(text: str, tree: LexiconNode) -> Whose | None:
    """Return whose memory the words of a text name; None if they name none, or both."""
    line = tagged(text, tree)
    for row in _PLACES:
        owners = {_OWNERS[tag.concept] for tag in line.of(row)}
        if owners:
            return owners.pop() if len(owners) == 1 else "device"
    return None


def names_memory(text: str, tree: LexiconNode) -> bool:
    """Return whether a text mentions memory or a GPU."""
    return any(tagged(text, tree).of((*MEMORY, "device", "library", "out-of-memory")))


def _chains(form: RefusalForm, line: TaggedLine) -> Iterator[Sequence[Tag]]:
    """Yield the tags that follow each other in the order a form requires."""
    for first in line.of(form.sequence[0]):
        chain = [first]
        for concepts in form.sequence[1:]:
            at = line.span(chain[-1])[1]
            near = (tag for tag in line.of(concepts) if 0 <= line.span(tag)[0] - at <= form.gap and tag.first >= chain[-1].end)
            following = next(near, None)
            if following is None:
                break
            chain.append(following)
        if len(chain) == len(form.sequence):
            yield chain


def _holds(form: RefusalForm, chain: Sequence[Tag], line: TaggedLine, within: tuple[int, int]) -> bool:
    """Return whether the words of a form concern memory and are in one clause."""
    start, end = line.span(chain[0])[0], line.span(chain[-1])[1]
    if end > within[1] or any(line.within(("other-thing",), start, end)):
        return False
    if _NAMED_ERROR.search(line.text, start, end) or (form.id == "refused" and any(line.within(("succeeds",), end, within[1]))):
        return False
    if form.id == "lack" and len(chain) > 1 and re.search(_BETWEEN, line.text[line.span(chain[0])[1] : line.span(chain[1])[0]]):
        return False
    if not form.beside:
        return True
    inside = {at for tag in chain for at in range(tag.first, tag.end)}
    named = (tag for tag in line.within(form.beside, *within) if not inside.issuperset(range(tag.first, tag.end)))
    return next(named, None) is not None or (form.sized and re.search(_SIZE, line.text[within[0] : within[1]]) is not None)


def _is_fit(chain: Sequence[Tag], line: TaggedLine) -> bool:
    return any(line.words[tag.first].text.startswith("fit") for tag in chain if tag.concept == "allocate")


def _concerns_one_process(chain: Sequence[Tag], line: TaggedLine, within: tuple[int, int]) -> bool:
    """Return whether a sentence reports one particular process that exceeded its limit or was terminated for it, not any such process."""
    if any(line.within(("any-of-them", "would-do"), *within)):
        return False
    start, end = line.span(chain[0])[0], line.span(chain[-1])[1]
    is_past = any(line.within(("exceeded",), start, end))
    return any(line.within(("stopped",), *within)) or (is_past and any(line.within(("countable",), within[0], start)))


def _whose(chain: Sequence[Tag], line: TaggedLine, within: tuple[int, int]) -> Whose | None:
    """Return whose memory a sentence names: in the form itself, or otherwise the nearest place in the sentence, then in the line."""
    start, end = line.span(chain[0])[0], line.span(chain[-1])[1]
    of_the_form = list(line.within(MEMORY[1:], start, end))
    if of_the_form:
        return _OWNERS[max(of_the_form, key=lambda tag: tag.end - tag.first).concept]
    for concepts in _PLACES:
        for part in ((start, end), within, (0, len(line.text))):
            near = sorted(line.within(concepts, *part), key=lambda tag: (abs(line.span(tag)[0] - start), tag.first - tag.end))
            if near:
                return _OWNERS[near[0].concept]
    return None
