"""What people write about a run in short texts without a program's message: that it ran out of memory, or that something killed it.

A person's words are not a program's message: they make a failure possible and no more. Their vocabulary is in rules/lexicon/testimony.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from oomdoctor.knowledge.records.lexicon import Lexicon
from oomdoctor.reading.feature_requests import is_wish
from oomdoctor.reading.lexicon import Tag
from oomdoctor.reading.lines import TaggedLine, tagged
from oomdoctor.reading.mood import is_quoted, is_told, says_it_goes_on
from oomdoctor.reading.refusals import MEMORY, Whose, find_refusals, whose_memory

_MOST = 32 << 10
"""A longer text is a log."""
_PLAIN = ("refused", "shortage", "too-little")
_NEAR = 30
"""At most this many characters may separate memory from the word for its growth."""
_HEAD = r"\W{0,8}"
"""What may precede a heading on its line."""
_PREFIX = re.compile(r"\s{0,8}(?:[\[({<|]|[\w./-]{1,40}(?: \w{1,20})?:\s|[\w.]{1,60}(?:Error|Exception|Warning)\b|\S{1,40}=)")
"""How a program's message begins."""
_WORDS, _SMALL, _CHINESE = 8, 0.2, 10
"""A sentence has at least this many words, and this share of small ones; in Chinese, this many characters."""
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
"""What only a binary file contains."""
_PHASE = "while-"
_ANYBODY = ("person", "reports", "asks")
"""What shows that a person is writing; the last one counts only in short texts."""
_SHORT = 2000
"""In a text up to this length, a person may be evident in one line and report the failure in another."""
_LONGEST = 1500
_BY_A_PROGRAM = re.compile(
    r"\s{0,8}(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d|\[?\d\d:\d\d:\d\d|\W{0,4}(?:INFO|DEBUG|WARN(?:ING)?|TRACE)\b|level=|time=|(?:[$|<]|sed |grep )\s?\S)|.{0,60}\b(?:INFO|DEBUG|WARNING)\b"
)
"""How a program's line begins if it is not a failure."""


class Testimony(Struct, frozen=True):
    """The line in which someone reports a failure."""

    line: str
    start: int
    """Its start in the text, in characters."""
    whose: Whose | None
    """Whose memory it names."""
    is_killed: bool
    """It reports that something killed the run, which points to host memory."""
    grows: bool
    """It reports that memory kept rising."""
    is_plain: bool
    """It says explicitly that there was not enough memory, rather than only describing the symptoms."""
    phase: str | None
    """What the run was doing at the time; None if the line names nothing, or several things."""


def find_testimony(text: str, tree: Lexicon, *, describes_a_run: bool = False) -> Testimony | None:
    """Return the line in which someone says there was not enough memory; None if nobody does, or if the text is a feature request.

    If the text `describes_a_run`, with a model and a GPU, nothing else is needed to show that a person wrote it.
    """
    if len(text) > _MOST or is_wish(text):
        return None
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]*[^\s][^\n]*", text)]
    anybody = describes_a_run or (len(text) <= _SHORT and any(is_by_a_person(tagged(line[:_LONGEST], tree), _ANYBODY) for _, line in lines))
    for start, line in lines:
        short = tagged(line[:_LONGEST], tree)
        if (
            _NO_TEXT.search(line)
            or _BY_A_PROGRAM.match(line)
            or not (anybody or is_by_a_person(short) or (len(text) <= _SHORT and _is_narrative(short)))
        ):
            continue
        tag = next(_failure_words(short, tree), None)
        if tag is not None:
            whose = _whose(short, tree)
            is_killed = whose != "device" and any(short.of(("kills",)))
            grows = any(_grows(tag, short) for tag in short.of(("grows",)))
            return Testimony(line.strip(), start, whose, is_killed, grows, tag.concept in _PLAIN, _phase(short))
    return None


def is_by_a_person(line: TaggedLine, signs: Collection[str] = _ANYBODY[:2]) -> bool:
    """Return whether a line was written by a person rather than printed by a program."""
    signed = any(tag.concept != "reports" or re.fullmatch(_HEAD, line.text[: line.span(tag)[0]]) for tag in line.of(signs))
    return signed and not _BY_A_PROGRAM.match(line.text)


def _is_narrative(line: TaggedLine) -> bool:
    """Return whether a line is a sentence about a run: it has the small words of one, or is written in Chinese."""
    if _PREFIX.match(line.text) or not any(line.of(("run",))) or any(line.of(("advises",))):
        return False
    chinese = sum("\u4e00" <= word.text[0] <= "\u9fff" for word in line.words)
    if chinese >= _CHINESE:
        return True
    small = {at for tag in line.of(("small-word",)) for at in range(tag.first, tag.end)}
    return len(line.words) >= _WORDS and len(small) >= _SMALL * len(line.words)


def _whose(line: TaggedLine, tree: Lexicon) -> Whose | None:
    """Return whose memory a line names; in Chinese the plain word means host memory."""
    named = next((refusal.whose for refusal in find_refusals(line.text, tree) if refusal.whose == "shared"), None)
    whose = named or whose_memory(line.text, tree)
    return "host" if whose is None and any(line.of(("plain-ram",))) else whose


def _phase(line: TaggedLine) -> str | None:
    phases = {tag.concept.removeprefix(_PHASE) for tag in line.starting(_PHASE)}
    return phases.pop() if len(phases) == 1 else None


def _failure_words(line: TaggedLine, tree: Lexicon) -> Iterator[Tag]:
    """Yield the words in a line that report a failure."""
    for tag, end in (
        *_refused(line, tree),
        *_shortage_words(line),
        *_full_memory(line),
        *((tag, line.span(tag)[1]) for tag in line.of(("kills",))),
    ):
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


def _shortage_words(line: TaggedLine) -> Iterator[tuple[Tag, int]]:
    """Yield the words people use to say there is not enough memory; some of them refer to other things unless memory is named."""
    for tag in line.of(("shortage", "too-little")):
        start, end = line.span(tag)
        if tag.concept == "shortage" or any(line.within((*MEMORY, "device", "sized-by-people"), *line.sentence(start))):
            yield tag, end


def _full_memory(line: TaggedLine) -> Iterator[tuple[Tag, int]]:
    """Yield memory that fills up in a line that also reports a bad end."""
    for tag in line.of(("fills", "grows")):
        start, end = line.span(tag)
        first, last = line.sentence(start)
        told = any(line.within(MEMORY, first, last)) if tag.concept == "fills" else _grows(tag, line)
        if told and any(line.within(("dies", "kills"), end, len(line.text))):
            yield tag, end


def _grows(tag: Tag, line: TaggedLine) -> bool:
    """Return whether it is memory that grows, that is, a word for it comes shortly before."""
    start = line.span(tag)[0]
    return any(start - line.span(memory)[1] <= _NEAR for memory in line.within(MEMORY, line.sentence(start)[0], start))
