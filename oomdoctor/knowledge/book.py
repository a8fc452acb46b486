"""The pack as a book to look things up in: records by id, what refers to what, and what is near a word.

A diagnosis never imports this module; it is for reading the knowledge itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from oomdoctor.knowledge.pack import FIXES, PROBLEMS, SIGNATURES, SOURCES, Pack
from oomdoctor.knowledge.records.base import Record, RecordKind
from oomdoctor.knowledge.records.bug import BUGS, ProgramBug
from oomdoctor.knowledge.records.condition import AllOf, AnyOf, EventCondition, FactCondition, NotThat, TextCondition, written_condition
from oomdoctor.knowledge.records.fix import FixRecord, NotThisRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.records.source import SourceRecord

T = TypeVar("T", bound=Record)

PARTS = ("problems", "fixes", "signatures", "sources", "bugs")
_KINDS: tuple[RecordKind[Any], ...] = (PROBLEMS, FIXES, SIGNATURES, SOURCES, BUGS)
_WORDS = re.compile(r"[a-z0-9_.+-]{2,}|[\u4e00-\u9fff]+")
_LONG_CHINESE = 4
_CALLED = 100


class Book:
    """All rules of a pack, by id and by what they name."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack

    @cached_property
    def problems(self) -> Mapping[str, ProblemRecord]:
        """Return all problems, in the order of their files."""
        return {record.id: record for record in self.pack.records(PROBLEMS)}

    @cached_property
    def fixes(self) -> Mapping[str, FixRecord]:
        """Return all fixes, in the order of their files."""
        return {record.id: record for record in self.pack.records(FIXES)}

    @cached_property
    def areas(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the problems of each area: the folder in which they lie."""
        areas: dict[str, tuple[str, ...]] = {}
        for name in self.problems:
            area = self.area(name)
            areas[area] = (*areas.get(area, ()), name)
        return areas

    @cached_property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the signatures of each program."""
        programs: dict[str, tuple[str, ...]] = {}
        for core in self.pack.signatures:
            programs[core.program] = (*programs.get(core.program, ()), core.id)
        return programs

    def as_json(self, part: str, name: str) -> dict[str, object]:
        """Return a rule for programs: where it is from, and its keys as in its file. Raise KeyError where there is none of that id."""
        kind = next(kind for kind in _KINDS if kind.part == part)
        record = _known(self.pack.record(kind, name), name)
        program = {"program": self.program(name)} if kind is SIGNATURES else {}
        path = {} if kind is SOURCES else {"path": self.pack.path(part, name)}
        return {**program, **path, **_as_written(record)}

    def area(self, problem: str) -> str:
        """Return the area of a problem. Raise KeyError where there is none of that id."""
        return self.pack.path("problems", problem).split("/")[-2]

    def program(self, signature: str) -> str:
        """Return the program that prints a message."""
        return next(program for program, names in self.programs.items() if signature in names)

    def fix(self, name: str) -> FixRecord:
        """Return a fix. Raise KeyError where there is none of that id."""
        return _known(self.pack.fix(name), name)

    def signature(self, name: str) -> SignatureRecord:
        """Return a signature. Raise KeyError where there is none of that id."""
        return _known(self.pack.signature(name), name)

    def source(self, name: str) -> SourceRecord:
        """Return a source. Raise KeyError where there is none of that id."""
        return _known(self.pack.source(name), name)

    def bug(self, name: str) -> ProgramBug:
        """Return a known bug of releases. Raise KeyError where there is none of that id."""
        return _known(self.pack.record(BUGS, name), name)

    def fixes_of(self, problem: ProblemRecord) -> list[FixRecord]:
        """Return the fixes of a problem, in its order; a name that points nowhere is for the lint to report."""
        return [self.fixes[name] for name in problem.fixes if name in self.fixes]

    def with_cause(self, cause: str) -> list[ProblemRecord]:
        """Return the problems that have this cause."""
        return [problem for problem in self.problems.values() if problem.cause == cause]

    def with_fix(self, fix: str) -> list[ProblemRecord]:
        """Return the problems that a fix is for."""
        return [problem for problem in self.problems.values() if fix in problem.fixes]

    def not_for(self, problem: str) -> list[NotThisRecord]:
        """Return the advice that is wrong for a problem."""
        return self.pack.wrong_advice(problem)

    def citing(self, source: str) -> Iterator[tuple[str, str]]:
        """Yield (part, id) of what cites a source."""
        for problem in self.problems.values():
            if any(cite.source == source for cite in problem.cites):
                yield "problems", problem.id
        for fix in self.fixes.values():
            if source in fix.cites or any(source in advice.cites for advice in fix.not_this):
                yield "fixes", fix.id

    def part_of(self, name: str) -> str | None:
        """Return where an id stands: `problems`, `fixes`, `signatures`, `sources`, `bugs`, `causes` or `areas`; None where nowhere."""
        for part in PARTS:
            if name in self.pack.names(part):
                return part
        if self.with_cause(name):
            return "causes"
        return "areas" if name in self.areas or name in PARTS else None

    def near(self, word: str, most: int = 5) -> list[str]:
        """Return ids that look like a word, or whose titles hold it, the likeliest first."""
        names = [name for part in PARTS for name in self.pack.names(part)]
        names += [problem.cause for problem in self.problems.values() if problem.cause]
        titles = {record.id: record.title for records in (self.problems, self.fixes) for record in records.values()}
        word = word.strip().lower()
        dashed = word.replace(" ", "-")
        in_title = [name for name, title in titles.items() if len(word) > 1 and word in f"{title.en.lower()} {title.zh}"]
        close = get_close_matches(dashed, names, n=most, cutoff=0.6)
        in_name = [name for name in names if len(word) > 2 and dashed in name]
        return list(dict.fromkeys([*close, *in_name, *in_title]))[:most]

    def search(self, text: str, most: int = 12) -> list[str]:
        """Return the problems and fixes that speak of all words of a text, those that name them in their titles first."""
        words = [part for word in _WORDS.findall(text.lower()) for part in _parts(word)]
        plain = " ".join(text.lower().split())
        scores = {record.id: _CALLED for record in self.problems.values() if plain in (name.lower() for name in record.called)}
        for name, title, body in self._texts:
            points = [4 if word in title else 1 if word in body else 0 for word in words]
            if points and all(points):
                scores[name] = scores.get(name, 0) + sum(points)
        return sorted(scores, key=lambda name: -scores[name])[:most]

    @cached_property
    def _texts(self) -> list[tuple[str, str, str]]:
        """The id, the title and the text of every problem and fix, in both languages and in small letters; the common problems first."""
        problems = sorted(self.problems.values(), key=lambda record: "environment" in self.pack.path(PROBLEMS.part, record.id))
        written = [(record.id, record.title, record.why) for record in problems]
        written += [(record.id, record.title, record.how) for record in self.fixes.values()]
        return [(name, f"{name} {title.en} {title.zh}".lower(), f"{text.en} {text.zh}".lower()) for name, title, text in written]

    def with_example(self, text: str) -> str | None:
        """Return the signature with the shortest example that holds a text of several words: most likely the message that it is from."""
        text = " ".join(text.lower().split())
        shortest: dict[str, int] = {}
        for record in self.pack.records(SIGNATURES) if " " in text else ():
            lengths = [
                len(example.text)
                for example in record.examples
                if record.kind != "context" and text in " ".join(example.text.lower().split())
            ]
            if lengths:
                shortest[record.id] = min(lengths)
        return min(shortest, key=shortest.__getitem__, default=None)

    def with_literal(self, text: str) -> str | None:
        """Return the signature with the longest literal that stands in a text of several words: what is near a message that is cut."""
        longest: dict[str, int] = {}
        for core in self.pack.signatures if " " in text.strip() else ():
            lengths = [len(literal) for literal in core.literals if literal in text]
            if lengths and core.kind != "context":
                longest[core.id] = max(lengths)
        return max(longest, key=longest.__getitem__, default=None)


def _parts(word: str) -> Iterator[str]:
    """Yield a Latin word as it is, and of a longer Chinese one each pair of characters: nothing tells where its words end."""
    if word[0] < "\u4e00" or len(word) < _LONG_CHINESE:
        yield word
    else:
        yield from (word[at : at + 2] for at in range(0, len(word) - 1, 2))


def _known(record: T | None, name: str) -> T:
    if record is None:
        raise KeyError(name)
    return record


def _as_written(record: Struct) -> dict[str, object]:
    """Return a record with its keys as in the file, and conditions in the words of rule files."""
    return {field: _plain(getattr(record, field)) for field in record.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, (AllOf, AnyOf, NotThat, TextCondition, FactCondition, EventCondition)):
        return to_builtins(written_condition(value))
    if isinstance(value, Struct):
        return _as_written(value)
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else to_builtins(value)
