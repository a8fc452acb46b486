"""Memory refusals stated by the lines of a text, and how certain each one is.

A sentence is a failure if the program marks it as an error, if its own figures show that more was requested than available, or if
it is the last statement in a log. At warning level it is pressure, and below that it is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.event import Value
from oomdoctor.knowledge.records.lexicon import Lexicon
from oomdoctor.reading.figures import figures_of, is_shown
from oomdoctor.reading.lexicon import rarest_words, signs_of
from oomdoctor.reading.lines import tagged
from oomdoctor.reading.mood import says_it_goes_on, states
from oomdoctor.reading.refusals import MemoryRefusal, Whose, find_refusals, names_memory, whose_memory
from oomdoctor.reading.survival import goes_on
from oomdoctor.reading.testimony import is_by_a_person

Weight = Literal["stated", "warned", "named"]
"""A failure, pressure, or words that may be a failure if a log ends with them."""

_REFUSING = ("lack", "lacking", "out-of-memory", "fail", "failed", "exceed", "need")
"""Every refusal except a comparison of sizes contains one of these concepts."""
_COMPARED = r"b\)?\s?>"
_ERROR = re.compile(
    r"(?:^|[\s\[(|:\"'=<.*])(?:ERROR|Error|error|FATAL|Fatal|fatal|CRITICAL|Critical|SEVERE|PANIC|panic(?:ked)?|E\d{3,8}|ERR|\[E\]|E|F\d{3,8})(?=[\s:\])|,\"'>*])"
    r"|\b[A-Za-z_]\w{0,60}(?:Error|Exception|Fault|Failure)\b(?=[:(\s]|$)|\bException\b|\b[Ff]ailed\b|TT_FATAL|_ASSERT\b|[Aa]ssertion\b|\w_ERROR\s|what\(\):|\bAborted\b|\bterminat(?:ed|ing)\b|\bexiting\b|\bEXITING\b|\b[Cc]heck failed|\b_exception: |CCL WARN\s"
)
"""What a program labels an error; NCCL has no level above warning."""
_WARNING = re.compile(r"(?:^|[\s\[(|:\"'=<_])(?:WARN(?:ING)?|[Ww]arn(?:ing)?|W\d{3,8}|\[W\]|\w{2,40}Warning|W)(?=[\s:\])|,\"'>])")
_REMARK = re.compile(
    r"(?:^|[\s\[(|:\"'=<])(?:INFO|[Ii]nfo|DEBUG|[Dd]ebug|TRACE|NOTE|[Nn]ote|[Tt]ip|[Hh]int|I\d{3,8}|\[I\]|I)(?=[\s:\])|,\"'>])"
    r"|^oomdoctor run: "
)
"""Anything below warning level, and quotations of this program: a log is no evidence for it."""
_RETURNED = re.compile(r"\b[A-Za-z_]\w{2,60}\(\)(?: failed)?:\s$|\brefused:\s$")
"""A function before what it reports, or what was refused before the reason."""
_PROGRAM = re.compile(r"(?:^|[\s\])])[\w./+'-]{1,60}(?: [\w./+'-]{1,40}){0,8}:\s{1,3}$")
"""A program, or what it was working on, before perror's output."""
_ONLY = re.compile(r"(?: memory)?(?:[\s.)\"'!]{0,6}$|[.:]{1,2}\s)|\s(?:\w{1,20}\s){0,3}(?:for|of|in|on)\s")
_CALLED = re.compile(r"(?i)[ _](?:error|exception|fault)\b")
"""What labels the words before it as an error."""
_RAISED = re.compile(r"panicked at|TT_FATAL|(?i:fatal error)|[Ee]rror termination|terminate called|Caused by:")
"""What marks the lines below it as the text of an error."""
_GPU = re.compile(r"(?i)(?<![A-Za-z0-9_])(?:device|gpu|cuda|npu|xpu|hpu|rocm|nd)[ :#\[(]{0,2}(\d{1,3})(?![A-Za-z0-9_]|\.\d| ?[KMGT]i?B)")
_NUMBER_OF_ONE = re.compile(r"(?i)(?<=\bcuda:)\d{1,3}\b|\b0x[0-9a-f]{1,16}\b")
"""A GPU number and an address are not counts."""
_LONGEST = 700
_TORCH = re.compile(r"\b(?:CUDA|HIP|XPU|NPU|MPS backend) $")
_TEMPLATE = re.compile(r"\{[A-Za-z_][\w.]{0,40}(?:[\[(!}]|:[.<>\d])|%[dszu]\b|%\.\d[fg]|\$\{")
"""A sentence in source code, before its figures are filled in."""
_FURTHER = 2
"""The figures of a sentence may be up to this many lines below it."""
_AFTER, _BEHIND = 12, 4096
"""Lines below a sentence that may show its outcome, within this many characters."""
_OF_A_NAME_BEFORE = re.compile(r"(?:[A-Za-z0-9_]|[^\s(\[\"'`:,][-+.:=_]{1,2})$")
_OF_A_NAME_BEHIND = re.compile(r"[A-Za-z0-9_]|[-=.:_][A-Za-z0-9]|\"?[}\]]")
"""What makes words part of a longer name: of an option, a metric or a class."""
_OF_A_CODE = re.compile(r"(?<![\w./-])(?:[A-Z][A-Z0-9]{0,19}_){0,3}(?:ERR|ERROR|STATUS|E)_$")
"""What precedes them in an error code name, `ERR_OUT_OF_DEVICE_MEMORY`: a line whose sentence begins with one states it."""
_FEW = 4
"""With at most this many lines after it, a log may still end with what a line names."""
_QUESTION = re.compile(r"[?？]\s{0,4}$")
_ABOVE = 3
_LAST_WORD = re.compile(r"(?i)\W*(?:(?!(?:i|i'm|we|my|it|was|get|got|getting|the)\b)[\w.:#()\[\]-]{1,40}\s){0,4}?\W*$")
"""What a line may contain before and after a refusal that is all it says."""
_REST = re.compile(r"\W*(?:(?:for|of|in|on|at|to|while|when|during|with|from|by)\b[^\n]{0,120}|\([^()\n]{0,120}\))?\W*$")
_SMALL = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}
_BARE_WORDS = re.compile(r"(?i)out[ _]of[ _]memory")


class _Sentence(Struct, frozen=True):
    """A refusal, the line that states it, and the text around that line."""

    refusal: MemoryRefusal
    line: str
    above: str
    after: list[str]
    tree: Lexicon

    @property
    def head(self) -> str:
        """The text before the refusal."""
        return self.line[: self.refusal.start]

    @property
    def phrase(self) -> str:
        """The refusal itself."""
        return self.line[self.refusal.start : self.refusal.end]

    @property
    def is_marked(self) -> bool:
        """Whether the program labels it an error."""
        return bool(
            _ERROR.search(self.head)
            or _RETURNED.search(self.head)
            or self._is_reported
            or _CALLED.match(self.line[self.refusal.end :])
            or _RAISED.search(self.above)
            or any(any(tagged(text, self.tree).of(("breaks-off",))) for text in (self.line[self.refusal.end :], *self.after[:1]))
        )

    @property
    def _is_reported(self) -> bool:
        """Whether a line is `perror` output, a program and a lack of memory, or says something was terminated for using too much."""
        if self.refusal.form == "over":
            return self.refusal.is_of_one
        is_said = self.refusal.form in ("lack", "refused") and _PROGRAM.search(self.head) is not None
        return is_said and not _BARE_WORDS.fullmatch(self.phrase) and _ONLY.match(self.line[self.refusal.end :]) is not None


class StatedRefusal(Struct, frozen=True):
    """A refusal stated by a line, whose memory it was, and the sizes it gives."""

    start: int
    end: int
    whose: Whose
    weight: Weight
    fields: dict[str, Value]


class RefusalReader:
    """Reads refusals using the words of one lexicon."""

    def __init__(self, tree: Lexicon) -> None:
        self._tree = tree
        # Looking for these is many times faster than looking for words.
        self._owners = sorted(rarest_words(tree, ("sign-of-memory",)))
        self._signs = signs_of(tree, _REFUSING, _COMPARED)

    def read(self, text: str, *, is_end: bool = False) -> Iterator[StatedRefusal]:
        """Yield the refusals in a text, at most one per line. `is_end`: the text is the end of a log, so a mere mention counts too."""
        for start, end in self.telling_lines(text):
            end = min(end, start + _LONGEST)
            stated = _read(text[start:end], _lines_before(text, start), text[end : end + _BEHIND], self._tree, is_end)
            if stated is not None:
                yield replace(stated, start=start + stated.start, end=start + stated.end)

    def telling_lines(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each line that may state a refusal."""
        small = text.lower().replace("’", "'")
        if len(small) != len(text):
            small = text.translate(_SMALL)
        lines: dict[int, int] = {}
        for owner in self._owners:
            at = small.find(owner)
            while at >= 0:
                start, end = small.rfind("\n", 0, at) + 1, small.find("\n", at)
                end = len(text) if end < 0 else end
                lines.setdefault(start, end)
                at = small.find(owner, end)
        return [(start, end) for start, end in sorted(lines.items()) if self._signs.search(small, start, end)]


@lru_cache(maxsize=32)
def _read(line: str, above: str, behind: str, tree: Lexicon, is_end: bool) -> StatedRefusal | None:
    """Return what a line states, given those around it. If lines may have been cut, a text is read again, and most of them are the same."""
    refusals = list(find_refusals(line, tree))
    if not refusals or _TEMPLATE.search(line):
        return None
    after = [text for text in behind.split("\n") if text.strip()][:_AFTER]
    figures = figures_of(_with_figures(line, behind), tree)
    by_weight: dict[Weight, StatedRefusal] = {}
    for refusal in refusals:
        sentence = _Sentence(refusal, line, above, after, tree)
        if _REMARK.search(sentence.head) or (_is_of_torch(sentence) and not _is_last_word(sentence)):
            continue  # PyTorch's own message has its own reader
        whose = refusal.whose or whose_memory(above, tree) or "host"
        weight = _weight(sentence, figures, is_end) if whose != "chip" else None
        if weight is None or (whose == "shared" and weight != "stated"):
            continue
        device = _GPU.search(line)
        fields = {**figures, "gpu_index": int(device[1])} if device else figures
        by_weight.setdefault(weight, StatedRefusal(refusal.start, refusal.end, whose, weight, fields))
    return by_weight.get("stated") or by_weight.get("warned") or by_weight.get("named")


def _is_of_torch(sentence: _Sentence) -> bool:
    return _BARE_WORDS.match(sentence.phrase) is not None and _TORCH.search(sentence.head) is not None


def _weight(sentence: _Sentence, fields: dict[str, Value], is_end: bool) -> Weight | None:
    """Return how certain it is that this run had a refusal: the only table for that. None if it is only mentioned."""
    refusal, tree, shown = sentence.refusal, sentence.tree, is_shown(fields)
    sized = refusal.form in ("lack", "refused") and "requested_bytes" in fields
    is_named = sized or refusal.whose is not None or names_memory(sentence.above + sentence.line, tree) or _is_for_storage(sentence)
    if not is_named or (shown is False and refusal.form in ("over", "short", "fit")):
        return None
    if not shown and not states(_NUMBER_OF_ONE.sub(_masked, sentence.line), refusal.start, refusal.end, tree):
        return None
    if not sentence.is_marked and _is_part_of_a_name(sentence):
        return None
    if says_it_goes_on(sentence.line, tree) or (not sentence.is_marked and goes_on([sentence.line, *sentence.after], tree)):
        return "warned"
    if _WARNING.search(sentence.head) and not _ERROR.search(sentence.head):
        return "warned"
    if not sentence.is_marked and (is_by_a_person(tagged(sentence.line, tree)) or any(tagged(sentence.above, tree).of(("reports",)))):
        return "named" if is_end and _is_named_at_the_end(sentence) else None  # what people report has its own reader
    is_last = not sentence.after and _is_last_word(sentence)
    if shown or sized or (sentence.is_marked and _is_refusal(sentence)) or is_last:
        return "stated"
    return "named" if is_end and _is_named_at_the_end(sentence) else None


def _masked(number: re.Match[str]) -> str:
    return "x" * len(number[0])


def _is_for_storage(sentence: _Sentence) -> bool:
    """Return whether what could not be allocated is nothing but memory: a buffer, a tensor."""
    return any(tagged(sentence.phrase, sentence.tree).of(("allocate",))) and any(tagged(sentence.line, sentence.tree).of(("stored",)))


def _is_named_at_the_end(sentence: _Sentence) -> bool:
    """Return whether a log may end with what a line names: words of a sentence, not part of a name or an option."""
    if sentence.refusal.form not in ("lack", "refused") or len(sentence.after) >= _FEW or _QUESTION.search(sentence.line):
        return False
    return sentence.is_marked or not _is_part_of_a_name(sentence)


def _is_part_of_a_name(sentence: _Sentence) -> bool:
    """Return whether the words are part of the name of an option, a metric or a class, and no error with that name is stated."""
    behind = sentence.line[sentence.refusal.end :]
    if re.match(r"(?:Error|Exception)\s{0,4}(?::|$)", behind) or (re.match(r"\s{0,4}(?::|$)", behind) and _OF_A_CODE.search(sentence.head)):
        return False
    is_one_word = re.search(r"\s", sentence.phrase) is None
    return (is_one_word and _OF_A_NAME_BEFORE.search(sentence.head) is not None) or _OF_A_NAME_BEHIND.match(behind) is not None


def _is_refusal(sentence: _Sentence) -> bool:
    """Return whether an error states, without giving two figures, that memory was refused."""
    if sentence.refusal.form == "lack" and _BARE_WORDS.fullmatch(sentence.phrase) and sentence.refusal.whose is None:
        # The bare words are also the name of a driver error code: they count if a program ends with them.
        return not sentence.after or "alloc" in (sentence.above + sentence.line).lower()
    return sentence.refusal.form != "short"


def _is_last_word(sentence: _Sentence) -> bool:
    """Return whether a line says hardly more than that memory was refused."""
    behind = sentence.line[sentence.refusal.end :]
    return sentence.refusal.form in ("lack", "refused") and bool(_LAST_WORD.match(sentence.head) and _REST.match(behind))


def _with_figures(line: str, behind: str) -> str:
    """Return a sentence together with the lines below it that continue with its figures."""
    further = re.match(rf"(?:\n[ \t]{{0,8}}[-(]\s{{0,2}}\S[^\n]*){{0,{_FURTHER}}}", behind)
    return (line + (further[0] if further else ""))[: 2 * _LONGEST]


def _lines_before(text: str, start: int) -> str:
    """Return the few lines above a sentence, which may mark it as the text of an error."""
    at = start
    for _ in range(_ABOVE):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1
    return text[at:start]
