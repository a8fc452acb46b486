"""Windows -> events: which signatures to try where, and what an event records of its location."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Set

from msgspec import Struct

from oomdoctor.case.event import Certainty, Event, Kind, Place, Value
from oomdoctor.ingest.clean import Flow, Line, split_flows
from oomdoctor.ingest.prefilter import FindPrefilter
from oomdoctor.ingest.windows import CONTEXT, COURSE, FAILURES, Quota, Window
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.lexicon import LexiconNode
from oomdoctor.parse import traceback
from oomdoctor.parse.computation import ComputationFinder
from oomdoctor.parse.families.any_program import reader
from oomdoctor.parse.families.family import Family
from oomdoctor.parse.families.registry import load_family
from oomdoctor.parse.signature import Match, Signature
from oomdoctor.reading.lexicon import signs_of
from oomdoctor.reading.mood import is_quoted, says_it_goes_on, states

_LONGEST_TEXT = 1500
_REMARK = r"\W{0,4}(?:INFO|DEBUG|TRACE|[Ii]nfo|[Dd]ebug|[Tt]race)\b"
"""What a program logs below warning level is not a failure in itself."""
_ANY_ERROR = (Kind.OTHER_ERROR, Kind.CONSEQUENCE)
_RAISED = (Kind.OTHER_ERROR, Kind.LOOK_ALIKE)
"""Kinds other than memory failures whose messages end a traceback that gives the location."""
_SURE = (None, Certainty.POSSIBLE, Certainty.LIKELY, Certainty.CERTAIN)
_LONG_LINE = 1500
_AROUND, _BEHIND, _CAUGHT_LINES = 300, 1200, 4
"""Where a program says what it does about a failure: this many characters and lines around the message."""
_OF_A_REPORTER = "reported-"
_LONGEST_REPORT = 64 << 10
"""A person's description of a run comes before its log, within this many bytes."""


_OWN_TRACEBACK = re.compile(rb"\[rank(\d{1,5})\]: Traceback \(most recent")
_QUOTED_CODE = re.compile(
    r"""^\s*(?:-{0,4}>?\s{0,4}\d{1,6}\s{1,40})?(?:(?:raise|return|if|elif|assert|throw|print|printf|echo|warn|warnings\.warn|pytest\.raises|expect)\b|[\w.]{0,40}log(?:ger|ging)?\.\w+\(|#|//|/?\*(?!\*\* Error in))[^\n]{0,200}["'`]"""
    r"""|^\s*(?:\w[\w.]{0,60}\s*=\s*)?[a-z_][\w.]{0,60}\([rbfu]{0,2}["']\s*(?:[\w.]{1,80}(?:Error|Exception):\s*)?$"""
    r"""|\b(?:in|not in|==|!=) str\(\w+\)|^\s*["'][^"'\n]{0,400}["']\s+(?:not )?in\s"""
)


_SECTION = re.compile(
    r"^(?:-{4,} (?P<captured>Captured )?[^\n]{1,80} -{4,}|={4,} [^\n]{1,80} ={4,}|_{4,} [^\n]{1,160} _{4,})$", re.MULTILINE
)
"""The head of a section in pytest's output."""
LAST_WORDS = 8 << 10
"""A failure farther from the end is not what a log ends with."""
_WORDS = "words"
LAST_SIGNS = (
    b"rror", b"ERR", b"xception", b"FATAL", b"atal", b"anic", b"CRITICAL", b"ailed", b"ailure", b"Fail ", b"bort", b"ault", b"nterrupt", b"E: ", b"Traceback", b"terminate called",
    b"egmentation", b"ut of ", b"UT OF ", b"nough ", b"NOUGH ", b"nsufficient ", b"NSUFFICIENT ", b"o available ", b"not allocate", b"n't allocate", b"to allocate", b"not reserve",
    b"less than desired", b"OOM", b"bad_alloc", b"OutOf", b"xceed", b"illed", b"KILL", b" full", b"too small", b"TOO SMALL", b"peicher", b"o more memory", b"memori", "memória".encode(), "mémoire".encode(), "памят".encode(), "メモリ".encode(), "記憶".encode(), "메모리".encode(), b"Morto", b"Ucciso", b"ignal", b"137", b"-9", b"kill", "杀".encode(), "信号".encode(), "退出".encode(), "返回".encode(), "終了".encode(), "了".encode(), "不足".encode(), "内存".encode(), "显存".encode(),
    "tötet".encode(), b"Terminado", "arrêté".encode(), "Убито".encode(), "Уничтожено".encode(),
)  # fmt: skip
"""Every bad end of a log contains one of these; searching for them is a hundred times cheaper than searching for words."""


class Literals(Struct, frozen=True):
    """All literals of the rules by number, as the search for them needs them."""

    texts: list[bytes]
    search: FindPrefilter
    """Searches for them in small inputs."""
    quotas: list[Quota]
    failing: list[bool]
    """Which of them are failure literals."""
    longest: int
    """Length of the longest."""
    openings: list[tuple[int, bytes]]
    """Those that begin with a line end, with what follows it; shortest first."""


@functools.lru_cache(maxsize=2)
def _literals(pack: Pack) -> Literals:
    """Return the literals of a pack: building the tables takes as long as reading a pasted line."""
    texts = [literal.encode() for literal in pack.literals]
    courses, sampled = pack.courses, pack.sampled
    quotas = [COURSE if number in courses else CONTEXT if number in sampled else FAILURES for number in range(len(texts))]
    openings = [(number, text[1:]) for number, text in enumerate(texts) if text.startswith(b"\n")]
    return Literals(
        texts=texts,
        search=FindPrefilter(texts),
        quotas=quotas,
        failing=[not quota.sampled for quota in quotas],
        longest=max(map(len, texts), default=1),
        openings=sorted(openings, key=lambda opening: len(opening[1])),
    )


_FEW_JOINTS = 4
"""After this many texts with joined lines, an index of all literals is worth building."""


@functools.lru_cache(maxsize=2)
def _by_pair(pack: Pack) -> dict[str, list[int]]:
    """Return the numbers of the literals that contain each pair of adjacent characters."""
    out: dict[str, list[int]] = {}
    for number, literal in enumerate(pack.literals):
        for pair in {literal[at : at + 2] for at in range(len(literal) - 1)}:
            out.setdefault(pair, []).append(number)
    return out


class Recogniser:
    """All signatures, by literal; each is read from the pack when one of its literals is first seen. Threads may share one."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self.signatures: dict[str, Signature] = {}
        """Those read so far, by id."""
        self.literals = _literals(pack)
        self._behind: list[list[Signature] | None] = [None] * len(pack.literals)
        self._by_number: dict[int, Signature] = {}
        self._families: dict[str, Family] = {}
        self._joined = 0

    def behind(self, literal: int) -> list[Signature]:
        """Return the signatures of a literal."""
        signatures = self._behind[literal]
        if signatures is None:
            signatures = self._behind[literal] = [self._signature(number) for number in self._pack.behind[literal]]
        return signatures

    def is_general(self, event: Event) -> bool:
        """Return whether an event is a generic sentence, which gives way to a program's own message on the same line."""
        return self.signatures[event.signature].general

    @functools.cached_property
    def _computations(self) -> ComputationFinder:
        return ComputationFinder(self._pack.computations)

    def _family(self, name: str) -> Family:
        if name not in self._families:
            self._families[name] = load_family(name, self._pack)
        return self._families[name]

    def _signature(self, number: int) -> Signature:
        if number not in self._by_number:
            signature = Signature(self._pack.core(number))
            self._by_number[number] = self.signatures[signature.id] = signature
        return self._by_number[number]

    def events(self, window: Window, source: str) -> list[Event]:
        """Return every message in a window, in text order."""
        messages: dict[tuple[str, int, int], tuple[Match, Flow]] = {}
        for flow in split_flows(window.raw, window.base, rejoin=not window.context):
            seen: dict[tuple[str, int], int] = {}
            for match in self._matches(flow, window.literals, window.base):
                line = flow.line_at(match.start)
                # Two readings of one text (as it is, and with broken lines joined) are one message: the same family or signature, the same
                # line, the same position on that line.
                name = self.signatures[match.signature].family or match.signature
                turn = seen[name, line.offset] = seen.get((name, line.offset), 0) + 1
                key = (name, line.offset, turn)
                known = messages.get(key)
                # A figure whose end the terminal wrapped onto the next line is complete only when the lines are joined.
                more = -1 if known is None else len(match.fields) - len(known[0].fields)
                if known is None or more > 0 or (more == 0 and flow.is_joined(match.start, match.end)):
                    messages[key] = (match, flow)
        real = [(match, flow) for match, flow in messages.values() if not self._is_only_text(match, flow)]
        kept = self._without_duplicates(self._without_general(real))
        out = [self._event(match, flow, window, source) for match, flow in kept]
        out.sort(key=lambda event: event.place.offset)
        return out

    def last_words(self, last: bytes, source: str, size: int) -> list[Event]:
        """Return what the words at the end of a source say if no message there states a failure: any sentence may be one."""
        raw = last[-LAST_WORDS:]
        if _WORDS not in self._pack.families or not any(sign in raw for sign in LAST_SIGNS):
            return []
        window = Window(raw=raw, base=size - len(raw), literals=frozenset(), context=False, before=b"", line=None)
        for number in self._pack.families[_WORDS]:
            self._signature(number)
        events: dict[int, Event] = {}
        for flow in split_flows(raw, window.base):
            for match in self._last_reader(flow.text):
                if not self._is_only_text(match, flow):
                    event = self._event(match, flow, window, source)
                    events.setdefault(event.place.offset, event)
        return list(events.values())

    @functools.cached_property
    def _last_reader(self) -> Family:
        return reader(self._pack.lexicon, is_end=True)

    def _is_caught(self, text: str, match: Match) -> bool:
        """Return whether the words around a message say that the program handled it and continued."""
        lines = _lines_around(text, match)
        return any(self._goes_on.search(line.lower()) and says_it_goes_on(line, self._pack.lexicon) for line in lines)

    @functools.cached_property
    def _goes_on(self) -> re.Pattern[str]:
        return signs_of(self._pack.lexicon, ("goes-on", "drops", "no-failure"))

    @staticmethod
    def _is_only_text(match: Match, flow: Flow) -> bool:
        """Return whether a message is only quoted text: part of source code, of a prompt, or of a test's output."""
        return _is_code(flow.text, match.start) or _is_in_prompt(flow, match.start) or _is_captured(flow.text, match.start)

    def _matches(self, flow: Flow, literals: Set[int], base: int) -> Iterable[Match]:
        """Yield the messages of programs, and any generic sentences that none of those explains."""
        candidates = self._candidates(flow, literals)
        if base > _LONGEST_REPORT:
            candidates = [signature for signature in candidates if not signature.id.startswith(_OF_A_REPORTER)]
        # In text order: the order of literals would change with every rule.
        own = sorted(self._read(flow, [signature for signature in candidates if not signature.general]), key=_place)
        yield from own
        general = [signature for signature in candidates if signature.general]
        if general:
            text = self._unexplained(flow, own)
            of_many = [signature for signature in general if any(literal in text for literal in signature.literals)]
            yield from sorted(self._read(flow, of_many), key=_place)

    def _candidates(self, flow: Flow, literals: Set[int]) -> Iterable[Signature]:
        """Return the signatures with a literal in a text."""
        candidates: dict[str, Signature] = {}
        for number in literals:
            for signature in self.behind(number):
                candidates[signature.id] = signature
        for number in self._across_joints(flow):
            candidates.update((signature.id, signature) for signature in self.behind(number))
        return candidates.values()

    def _across_joints(self, flow: Flow) -> Iterator[int]:
        """Yield the literals that are complete only now that lines are joined: the bytes searched do not contain them."""
        if not flow.joints:
            return
        self._joined += 1
        longest, literals = self.literals.longest, self._pack.literals
        around = [flow.text[max(0, at - longest) : at + longest] for at in flow.joints]
        if self._joined <= _FEW_JOINTS:
            text = "\n".join(around)
            yield from (number for number, literal in enumerate(literals) if literal in text)
            return
        index = _by_pair(self._pack)
        for at, text in zip(flow.joints, around):
            yield from (number for number in index.get(flow.text[at - 1 : at + 1], ()) if literals[number] in text)

    def _read(self, flow: Flow, signatures: Iterable[Signature]) -> Iterable[Match]:
        families: dict[str, None] = {}
        for signature in signatures:
            if signature.family:
                families[signature.family] = None
            else:
                yield from signature.matches(flow.text)
        for name in families:
            for number in self._pack.families[name]:
                self._signature(number)
            yield from (match for match in self._family(name)(flow.text) if match.signature in self.signatures)

    def _unexplained(self, flow: Flow, own: Iterable[Match]) -> str:
        """Return a text without the lines of programs' own certain messages: a generic sentence there adds nothing."""
        parts = ["\n"]
        at = 0
        for match in sorted(own, key=lambda match: match.start):
            signature = self.signatures[match.signature]
            if signature.certainty is Certainty.CERTAIN and _is_failure(signature) and not _is_code(flow.text, match.start):
                start, end = flow.span_of_lines(match.start, match.end)
                parts.append(flow.text[at:start])
                at = max(at, end)
        return "".join([*parts, flow.text[at:]])

    def _without_duplicates(self, messages: list[tuple[Match, Flow]]) -> list[tuple[Match, Flow]]:
        """Return the messages without those inside a longer one: a less informative part of it, or a setting named by its hint."""
        kept: list[tuple[Match, Flow]] = []
        for match, flow in messages:
            signature = self.signatures[match.signature]
            covered = any(
                at is flow
                and other.start <= match.start
                and match.end <= other.end
                and other.end - other.start > match.end - match.start
                and self._hides(self.signatures[other.signature], signature, len(other.fields) > len(match.fields))
                for other, at in messages
            )
            if not covered:
                kept.append((match, flow))
        return kept

    def _without_general(self, messages: list[tuple[Match, Flow]]) -> list[tuple[Match, Flow]]:
        """Exclude generic sentences that merely mention a failure, and those where one program's own message is just as conclusive."""
        if not any(self.signatures[match.signature].general for match, _ in messages):
            return messages
        own = [(self.signatures[match.signature], *_line_span(match, flow)) for match, flow in messages]
        kept = []
        for match, flow in messages:
            general = self.signatures[match.signature]
            first, last = _line_span(match, flow)
            if general.kind in _ANY_ERROR and general.general:
                if not any(start <= last and first <= end and _says_more(other) for other, start, end in own):
                    kept.append((match, flow))
                continue
            if general.general and (
                _only_mentions(match, flow, general, self._pack.lexicon)
                or any(start <= last and first <= end and _explains(other, general) for other, start, end in own)
            ):
                continue
            kept.append((match, flow))
        return kept

    @staticmethod
    def _hides(outer: Signature, inner: Signature, says_more: bool) -> bool:
        """Return whether a message makes a shorter one inside it redundant; the hint of an allocator message names settings."""
        if inner.kind is Kind.CONTEXT:
            return outer.family == "torch-allocator"
        return says_more and inner.kind is outer.kind

    def _event(self, match: Match, flow: Flow, window: Window, source: str) -> Event:
        signature = self.signatures[match.signature]
        line = flow.line_at(match.start)
        offset = _offset(window, flow.text, match.start, line)
        at = offset - window.base
        rank = _whole(match.fields.get("rank", line.rank if line.rank is not None else match.fields.get("local_rank")))
        if rank is None and line.rank is None and "exception" in match.fields:
            rank = _rank_after(window.raw, max(0, at))
        memory = signature.kind.is_memory
        trace = traceback.TracebackContext(None, None)
        if memory or signature.kind in _RAISED:
            # A message can follow a progress bar on the same line.
            head = flow.text[flow.text.rfind("\n", 0, match.start) + 1 : match.start].encode("utf-8", "replace")
            trace = traceback.find_traceback(window.before + window.raw[:at] + head, window.raw[at:], line.rank)
        return Event(
            signature=signature.id,
            kind=signature.kind,
            certainty=signature.certainty,
            outcome=signature.outcome,
            place=Place(
                source,
                offset,
                None if window.line is None else window.line + window.raw.count(b"\n", 0, max(0, at)),
            ),
            text=_shown(flow.text, match),
            fields={**signature.set, **match.fields},
            rank=rank,
            worker=line.worker,
            time=line.time,
            phase=trace.phase if memory else None,
            frame=trace.frame,
            computes=self._computations.find(trace.text, window.before + window.raw[: max(0, at)]) if memory else None,
            caught=(memory or signature.kind is Kind.KERNEL_RESOURCE) and self._is_caught(flow.text, match),
        )


def _lines_around(text: str, match: Match) -> list[str]:
    """Return the line of a message, and the few after it."""
    start = max(text.rfind("\n", 0, match.start) + 1, match.start - _AROUND)
    return text[start : match.end + _BEHIND].split("\n")[: text.count("\n", start, match.end) + 1 + _CAUGHT_LINES]


def _only_mentions(match: Match, flow: Flow, general: Signature, lexicon: LexiconNode) -> bool:
    """Return whether a line only mentions what a likely generic sentence says, or says that the program continues."""
    if general.certainty is Certainty.CERTAIN:
        return False
    start = flow.text.rfind("\n", 0, match.end - 1) + 1
    end = flow.text.find("\n", match.end)
    line = flow.text[start : end if end >= 0 else len(flow.text)][:_LONGEST_TEXT]
    return (
        re.match(_REMARK, line) is not None
        or says_it_goes_on(line, lexicon)
        or not states(line, max(0, match.start - start), match.end - start, lexicon)
    )


def _says_more(own: Signature) -> bool:
    """Return whether a message says more about a line than that it states an error."""
    return own.kind is not Kind.CONTEXT and not (own.general and own.kind in _ANY_ERROR)


def _explains(own: Signature, general: Signature) -> bool:
    """Return whether a program's own message makes a generic sentence redundant."""
    return not own.general and _is_failure(own) and _SURE.index(own.certainty) >= _SURE.index(general.certainty)


def _is_failure(own: Signature) -> bool:
    return own.kind not in (Kind.CONTEXT, Kind.CONSEQUENCE)


def _place(match: Match) -> tuple[int, str]:
    return match.start, match.signature


def _line_span(match: Match, flow: Flow) -> tuple[int, int]:
    """Return where the first and the last line of a message start in the source."""
    return flow.line_at(match.start).offset, flow.line_at(max(match.start, match.end - 1)).offset


def _offset(window: Window, text: str, start: int, line: Line) -> int:
    """Return the location of a message: the offset of its line or, on a line of many kilobytes, its own offset."""
    if line.width < _LONG_LINE:
        return line.offset
    position = window.raw.find(text[start : start + 24].encode(), max(0, line.offset - window.base))
    return line.offset if position < 0 else window.base + position


def _rank_after(raw: bytes, at: int) -> int | None:
    """Return the rank whose traceback starts directly after a message that carries none (a message above its own traceback)."""
    match = _OWN_TRACEBACK.match(raw, raw.find(b"\n", at) + 1)
    return int(match[1]) if match else None


def _is_code(text: str, start: int) -> bool:
    """Return whether the message is in a line of source code, as echoed by a traceback: a mention, not a message."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    before = text[line_start:start]
    return bool(_QUOTED_CODE.search(before[-300:] if len(before) > 300 else before)) or bool(
        re.search(r"\b(?:not )?in str\(", text[start : line_end if line_end >= 0 else len(text)][:300])
    )


def _is_captured(text: str, start: int) -> bool:
    """Return whether a message is in test output captured by pytest: what made the test fail is above it."""
    if "Captured " not in text:
        return False
    heads = list(_SECTION.finditer(text, 0, start))
    return bool(heads) and heads[-1]["captured"] is not None


def _is_in_prompt(flow: Flow, start: int) -> bool:
    """Return whether a message is in a prompt or an answer printed by a program, with its line ends escaped."""
    return is_quoted(flow.text[flow.record_at(start) : start + 1], start - flow.record_at(start))


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20 else None


def _shown(text: str, match: Match) -> str:
    """Return the message as quoted: from the start of its line to its end, one line for each line of the text."""
    line_start = text.rfind("\n", 0, match.start) + 1
    if match.start - line_start > 300:
        line_start = match.start
    line_end = text.find("\n", match.end)
    end = match.end if line_end < 0 or line_end - match.end > 400 else line_end
    return text[line_start : min(max(end, match.end), line_start + _LONGEST_TEXT)].strip()
