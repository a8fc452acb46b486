"""What people write of a run in short texts without a program's message: that its memory was not enough, or that something killed it.

A person's word is no message of a program: it makes a failure possible and no more. Its words stand in rules/lexicon/testimony.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import Lexicon
from oomdoctor.reading.lexicon import Tag
from oomdoctor.reading.lines import TaggedLine, tagged
from oomdoctor.reading.mood import is_quoted, is_told, says_it_goes_on
from oomdoctor.reading.refusals import MEMORY, Whose, find_refusals, whose_memory
from oomdoctor.reading.requests import is_wish

_MOST = 32 << 10
"""A longer text is a log."""
_PLAIN = ("refused", "bursts")
_NEAR = 30
"""So many characters may stand between memory and that it grows."""
_HEAD = r"\W{0,8}"
"""What may stand before a heading on its line."""
_PREFIX = re.compile(r"\s{0,8}(?:[\[({<|]|[\w./-]{1,40}(?: \w{1,20})?:\s|[\w.]{1,60}(?:Error|Exception|Warning)\b|\S{1,40}=)")
"""How a program's message begins."""
_WORDS, _SMALL, _CHINESE = 8, 0.2, 10
"""A sentence has so many words, and such a part of small ones; in Chinese so many signs."""
_PHASE = "while-"
_ANYBODY = ("person", "reports", "asks")
"""What shows that somebody writes; the last counts in short texts alone."""
_SHORT = 2000
"""In a text of this length a person may speak in one line and tell of the failure in another."""
_LONGEST = 1500
_BY_A_PROGRAM = re.compile(
    r"\s{0,8}(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d|\[?\d\d:\d\d:\d\d|\W{0,4}(?:INFO|DEBUG|WARN(?:ING)?|TRACE)\b|level=|time=|(?:[$|<]|sed |grep )\s?\S)|.{0,60}\b(?:INFO|DEBUG|WARNING)\b"
)
"""How a program's line begins that is no failure."""


class Testimony(Struct, frozen=True):
    """The line in which somebody tells of a failure."""

    line: str
    start: int
    """Where it begins in the text, in characters."""
    whose: Whose | None
    """Whose memory it names."""
    is_killed: bool
    """It tells that something killed the run, which is a matter of the host's memory."""
    grows: bool
    """It tells that memory rose and rose."""
    is_plain: bool
    """It says in plain words that memory was not enough, and not only what that looked like."""
    phase: str | None
    """What the run did then; None where the line names nothing, or several."""


def find_testimony(text: str, tree: Lexicon, *, describes_a_run: bool = False) -> Testimony | None:
    """Return the line in which somebody says that memory was not enough; None where nobody does, or the text is a wish.

    Where the text `describes_a_run`, with a model and a card, nothing else need show that a person wrote it.
    """
    if len(text) > _MOST or is_wish(text):
        return None
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]*[^\s][^\n]*", text)]
    anybody = describes_a_run or (len(text) <= _SHORT and any(is_a_persons(tagged(line[:_LONGEST], tree), _ANYBODY) for _, line in lines))
    for start, line in lines:
        short = tagged(line[:_LONGEST], tree)
        if _BY_A_PROGRAM.match(line) or not (anybody or is_a_persons(short) or (len(text) <= _SHORT and _is_a_tale(short))):
            continue
        tag = next(_told(short, tree), None)
        if tag is not None:
            whose = _whose(short, tree)
            is_killed = whose != "device" and any(short.of(("kills",)))
            grows = any(_grows(tag, short) for tag in short.of(("grows",)))
            return Testimony(line.strip(), start, whose, is_killed, grows, tag.concept in _PLAIN, _phase(short))
    return None


def is_a_persons(line: TaggedLine, signs: Collection[str] = _ANYBODY[:2]) -> bool:
    """Return whether somebody wrote a line, and no program printed it."""
    signed = any(tag.concept != "reports" or re.fullmatch(_HEAD, line.text[: line.span(tag)[0]]) for tag in line.of(signs))
    return signed and not _BY_A_PROGRAM.match(line.text)


def _is_a_tale(line: TaggedLine) -> bool:
    """Return whether a line is a sentence about a run, with the small words of one; in Chinese, that it is written in Chinese."""
    if _PREFIX.match(line.text) or not any(line.of(("run",))) or any(line.of(("advises",))):
        return False
    chinese = sum("\u4e00" <= word.text[0] <= "\u9fff" for word in line.words)
    if chinese >= _CHINESE:
        return True
    small = {at for tag in line.of(("small-word",)) for at in range(tag.first, tag.end)}
    return len(line.words) >= _WORDS and len(small) >= _SMALL * len(line.words)


def _whose(line: TaggedLine, tree: Lexicon) -> Whose | None:
    """Return whose memory a line names; in Chinese the plain word means that of the machine."""
    named = next((refusal.whose for refusal in find_refusals(line.text, tree) if refusal.whose == "shared"), None)
    whose = named or whose_memory(line.text, tree)
    return "host" if whose is None and any(line.of(("plain-ram",))) else whose


def _phase(line: TaggedLine) -> str | None:
    phases = {tag.concept.removeprefix(_PHASE) for tag in line.starting(_PHASE)}
    return phases.pop() if len(phases) == 1 else None


def _told(line: TaggedLine, tree: Lexicon) -> Iterator[Tag]:
    """Yield the words of a line that tell of a failure."""
    for tag, end in (*_refused(line, tree), *_burst(line), *_filled(line), *((tag, line.span(tag)[1]) for tag in line.of(("kills",)))):
        start = line.span(tag)[0]
        if is_told(line, start, end) and not says_it_goes_on(line.text[start:], tree) and not is_quoted(line.text, start):
            yield tag


def _refused(line: TaggedLine, tree: Lexicon) -> Iterator[tuple[Tag, int]]:
    """Yield what the grammar of refusals finds."""
    for refusal in find_refusals(line.text, tree):
        if refusal.form == "short" and not any(line.within(("capped",), *line.sentence(refusal.start))):
            continue
        if refusal.whose != "chip":
            first = next(number for number, word in enumerate(line.words) if word.end > refusal.start)
            yield Tag("capped" if refusal.form == "short" else "refused", first, first + 1), refusal.end


def _burst(line: TaggedLine) -> Iterator[tuple[Tag, int]]:
    """Yield the words by which people say that memory is not enough; some of them speak of other things where no memory is named."""
    for tag in line.of(("bursts",)):
        start, end = line.span(tag)
        if any(line.within((*MEMORY, "device", "sized-by-people"), *line.sentence(start))) or "out" in line.text[start:end].lower():
            yield tag, end


def _filled(line: TaggedLine) -> Iterator[tuple[Tag, int]]:
    """Yield memory that gets full in a line that also tells of a bad end."""
    for tag in line.of(("fills", "grows")):
        start, end = line.span(tag)
        first, last = line.sentence(start)
        told = any(line.within(MEMORY, first, last)) if tag.concept == "fills" else _grows(tag, line)
        if told and any(line.within(("dies", "kills"), end, len(line.text))):
            yield tag, end


def _grows(tag: Tag, line: TaggedLine) -> bool:
    """Return whether it is memory that grows: its word stands shortly before."""
    start = line.span(tag)[0]
    return any(start - line.span(memory)[1] <= _NEAR for memory in line.within(MEMORY, line.sentence(start)[0], start))
