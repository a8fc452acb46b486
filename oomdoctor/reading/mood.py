"""How a line speaks of a failure: whether it states, denies, supposes, counts, names or quotes one. A word alone is not a crash.

rules/lexicon/modality.yaml defines what each word means; this module defines where it has to be.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.reading.lexicon import Tag
from oomdoctor.reading.lines import TaggedLine, tagged

_COUNTED = r"[\w ()/\"'-]{0,40}[\"']?\s{0,3}[:=|]\s{0,3}[\"']?"
"""Between the words and their value: OOM count: 0, oom_retry=true."""
_ZERO_COUNT = r"\w{0,16}\s{1,3}(?=0(?:\s|$)(?!\s?of\b))"
"""Between the words and a count of zero: OOMs 0."""
_OF_A_SIZE = r"(?i)\s?(?:b(?:ytes)?|[kmgt]i?b)\b"
"""A zero with a unit is a size."""
_MARK = r"\s{0,12}(?:[-*+•]\s{1,3}|\d{1,3}[.)]\s|[0-9a-f]{7,40}\s|#\d{1,6}:?\s|\[[ x\w.#-]{1,12}\]:?\s|#{1,6}\s|>\s){0,3}\**$"
"""What may precede a title: a bullet, a number, a commit, an issue."""
_LISTED = (
    r"\s{0,12}--?[A-Za-z][\w-]{1,60}(?:[ =][A-Z_]{1,30})?\s{2,}\S|\s{0,12}[-*+•]\s{1,3}\S|\s{0,4}(?=[0-9a-f]{0,39}[a-f])(?=[a-f]{0,39}[0-9])[0-9a-f]{7,40}\s|\s{0,8}(?:\d{1,3}\s{1,8})?ENOMEM\s{1,8}[A-Z]"
    r"|[\w.%-]{0,30}(?:[,;\t][\w.%-]{0,30}){2,30}$|\s{0,8}\|[^|\n]{1,80}\|[^|\n]{1,80}\|"
)
"""Lines of a list, a change log, a table of error numbers, or bare cells."""
_ARGUMENT = r"^\s{0,12}(?:\$ )?[a-z][\w.-]{1,20}(?: -{1,2}[\w-]{1,30}){0,6} [\"'][^\"'\n]{0,200}$|(?<![\w.])[a-z_][\w.]{0,40}\((?:\w{1,30},\s?)?[rbfu]?[\"'][^\"'\n]{0,200}$|\S\s{1,4}#\s[^#\"'\n]{0,80}$"
"""Before the words: the text printed by a call in source code, or the comment sign after a setting."""
_CODE = (
    r"\s{0,40}(?:(?:-{1,4}> ?)?\d{1,6}\s{1,40})?(?:[+-]\s{0,40})?(?:except|raise|with pytest\.raises|return(?! (?:code|value|status))|if|elif|assert|throw|catch|print|printf|echo|def|self\.|logg?(?:er|ing)?\.\w+|warnings?\.warn)\b[^\n]{0,200}[(\[\"'`:{]"
    r"|\s{0,40}(?:#(?!#)|//|/\*|\*\s|<!--)|\s{0,40}\w{3,60}\s{0,4}=\s{0,4}(?:0x)?[\da-fA-F]{1,10},|\s{0,40}[\w.]{1,60} = (?:[rbf]{0,2}[\"']|[(\[{])"
)
"""Source code, including the line numbers that a notebook adds."""
_TESTED = r"::test_|\b(?:PASSED|SKIPPED|XFAIL|CLOSED|MERGED|WONTFIX)\b|\.{3}\s?ok$|^\s{0,4}[✓✔√]|^\s{0,4}ok \d"
"""What test runners and issue lists print."""
_FAILED = r"[^\n]{0,80}\b(?:failed|failure|error:)"
_FEW = 3
"""At most this many words may separate a negation from what it negates."""
_PROMPT = re.compile(
    r"(?i)\b(?:prompt|inputs?|question|instruction|query|completion|conversation|caption|user_message|messages|chat_history|generated_text|output_text)"
    r"[\"']?\s{0,3}[:=]\s{0,3}(?:\[\s{0,3})?(?:\{[^{}\n]{0,80}:\s{0,3})?[rbuf]{0,2}(?P<quote>[\"'])"
    r"|\btext=(?P<quote3>[\"'])|\"role\"\s?:\s?\"\w{1,20}\",\s{0,3}\"content\"\s?:\s?(?P<quote2>\")"
)
"""The start of someone's text that a program received or returned."""
_ASKED = re.compile(
    r"(?:\[\d{1,4}\] |\d{1,4}[.)] )?(?:How (?:to|do|can|should)|Why (?:is|was|does|did|do|am)|What (?:is|does|to|causes))\b|(?i:user|human|assistant|question): "
)
"""How the title of a question, or a turn in a conversation, begins."""


def is_stated(line: TaggedLine, start: int, end: int) -> bool:
    """Return whether the words `line.text[start:end]` state a failure rather than just name one."""
    text = line.text
    first, _ = line.sentence(start)
    return not (
        _is_denied(line, first, start)
        or _is_supposed(line, first, start)
        or _is_counted(line, end)
        or _is_followed(line, end)
        or (text[:start].endswith("/") and text[end:].startswith("/"))  # one of several cases
        or _is_written(line)
        or re.match(_LISTED, text) is not None
        or re.search(_ARGUMENT, text[:start]) is not None
        or re.match(_CODE, text) is not None
        or re.search(_TESTED, text) is not None
    )


def is_told(line: TaggedLine, start: int, end: int) -> bool:
    """Return whether the words `line.text[start:end]` are someone's report of a failure they encountered.

    People report failures in a list, below a heading, and say when they happen: `if I use two, it runs out of memory`.
    """
    first, last = line.sentence(start)
    return not (
        _is_denied(line, first, start)
        or _is_supposed(line, first, start, ("supposes-nothing", "told-states"))
        or any(line.within(("solved",), first, last))
        or (line.text[:start].endswith("/") and line.text[end:].startswith("/"))  # one of several cases
        or _is_counted(line, end)
        or _is_followed(line, end, ("names-nothing", "told-names"))
        or (_is_written(line) and any(line.of(("writes",))))
        or re.match(_CODE, line.text) is not None
        or re.search(_TESTED, line.text) is not None
    )


def states(text: str, start: int, end: int, tree: LexiconNode) -> bool:
    """Return whether the words `text[start:end]` of a line state a failure."""
    return is_stated(tagged(text, tree), start, end)


def says_it_goes_on(text: str, tree: LexiconNode) -> bool:
    """Return whether a line says the program continues in another way: again, with less, or without this sample. Advice does not count."""
    line = tagged(text, tree)
    if any(line.of(("no-failure",))):
        return True
    for tag in line.of(("goes-on", "drops")):
        start, end = line.span(tag)
        first, last = line.sentence(start)
        is_proposed = any(other.end == tag.first for other in line.of(("proposes",)))
        is_denied = any(line.span(other)[1] == start for other in line.of(("fail", "denies")))  # 无法继续训练
        told = any(line.span(other)[0] - end <= 60 for other in line.within(("would-do",), end, last))
        if not (is_proposed or is_denied) and not told and not any(line.within(("advises",), first, last)):
            return True
    return False


def says_it_drops(text: str, tree: LexiconNode) -> bool:
    """Return whether a line says that one of several attempts is given up."""
    return any(tagged(text, tree).of(("drops",)))


def is_quoted(text: str, start: int) -> bool:
    """Return whether a position in a text is inside a prompt, a request or an answer printed by a program: someone's quoted words."""
    if _ASKED.match(text, text.rfind("\n", 0, start) + 1):
        return True
    opened = None
    for match in _PROMPT.finditer(text, 0, start):
        opened = match
    if opened is None:
        return False
    quote = opened["quote"] or opened["quote2"] or opened["quote3"]
    closed = re.compile(rf"(?<!\\){quote}\s{{0,3}}(?:[,)}}\]]|$)", re.MULTILINE)
    return closed.search(text, opened.end(), start) is None


def _is_counted(line: TaggedLine, end: int) -> bool:
    """Return whether what follows some words makes them a counter or a switch."""
    after = line.text[end:]
    for between in (_COUNTED, _ZERO_COUNT):
        head = re.match(between, after)
        if head is None:
            continue
        for tag in line.of(("value-of-a-counter",)):
            first, last = line.span(tag)
            if first == end + head.end() and not re.match(_OF_A_SIZE, line.text[last:]):
                return True
    return False


def _is_denied(line: TaggedLine, first: int, start: int) -> bool:
    others = {tag.first for tag in line.of(("denies-another",))}
    numbers = {tag.end for tag in line.of(("countable",))}
    if any(tag.first not in numbers and line.text[line.span(tag)[1] : start] == " " for tag in line.within(("counts-none",), first, start)):
        return True
    if any("," not in line.text[line.span(tag)[1] : start] for tag in line.within(("none-of-them",), first, start)):
        return True
    for tag in line.within(("denies",), first, start):
        end = line.span(tag)[1]
        between = line.text[end:start]
        words = [word for word in line.words if end <= word.start and word.end <= start]
        is_near = len(words) <= _FEW or (len(words) <= 2 * _FEW and all("\u4e00" <= word.text[0] <= "\u9fff" for word in words))
        if tag.first not in others and is_near and not re.search(r"[,;:=()\[\]{}|/]", between):
            return True
    return False


def _is_supposed(line: TaggedLine, first: int, start: int, stating: Collection[str] = ("supposes-nothing",)) -> bool:
    stated = {tag.first for tag in line.of(stating)}
    if any(tag.first not in stated and not _is_month(line, tag) for tag in line.within(("supposes",), first, start)):
        return True
    if any(line.within(("explains",), first, start)):
        return True
    head = next(iter(line.of(("headed",))), None)
    return (
        head is not None
        and re.fullmatch(r"\W{0,8}", line.text[: line.span(head)[0]]) is not None
        and line.text[line.span(head)[1] :].lstrip()[:1] in (":", "：")
    )


def _is_month(line: TaggedLine, tag: Tag) -> bool:
    """Return whether `May` is part of a date."""
    start, end = line.span(tag)
    return line.text[start:end] == "May" and re.match(r"\d[-/ ]May|.?.?May[-/ ]{1,2}\d", line.text[max(0, start - 2) : end + 3]) is not None


def _is_followed(line: TaggedLine, end: int, nameless: Collection[str] = ("names-nothing",)) -> bool:
    """Return whether what directly follows the words makes them a name, or says that it does not happen."""
    short = re.match(r"\s?\([A-Z]{2,6}\)", line.text[end:])
    end += short.end() if short else 0
    behind = next((number for number, word in enumerate(line.words) if word.start >= end), None)
    if behind is None:
        return False
    between = line.text[end : line.words[behind].start]
    stated = {tag.first for tag in line.of(nameless)}
    named = re.fullmatch(r"[-_ )]{0,2}", between) and behind not in stated and _begins(line, "names-a-thing", behind)
    return bool(named) or (between == " " and _begins(line, "undoes", behind))


def _begins(line: TaggedLine, concept: str, word: int) -> bool:
    return any(tag.first == word for tag in line.of((concept,)))


def _is_written(line: TaggedLine) -> bool:
    if any(line.of(("document",))):
        return True
    title: Tag | None = next(iter(line.of(("writes",))), None)
    if title is None:
        return False
    start, end = line.span(title)
    return re.match(_MARK, line.text[:start]) is not None and not re.match(_FAILED, line.text[end:])
