"""The pack as a book to look things up in: records by id, what refers to what, and what is near a word.

A diagnosis never imports this module; it is for reading the knowledge itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from msgspec import convert

from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.rules import FixRecord, NotThisRecord, ProblemRecord, Record, SignatureRecord, SourceRecord

T = TypeVar("T", bound=Record)
PARTS = ("problems", "fixes", "signatures", "sources")
_BESIDE = ("path", "program")
"""What the pack writes beside a record."""


class Book:
    """All rules of a pack, by id and by what they name."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack

    @cached_property
    def problems(self) -> Mapping[str, ProblemRecord]:
        """All problems, in the order of their files."""
        return {name: self._record("problems", name, ProblemRecord) for name in self.pack.names("problems")}

    @cached_property
    def areas(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the problems of each area: the folder in which they lie."""
        out: dict[str, tuple[str, ...]] = {}
        for name in self.problems:
            area = self.area(name)
            out[area] = (*out.get(area, ()), name)
        return out

    @cached_property
    def programs(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the signatures of each program."""
        out: dict[str, tuple[str, ...]] = {}
        for name in self.pack.names("signatures"):
            program = self.program(name)
            out[program] = (*out.get(program, ()), name)
        return out

    def whole(self, part: str, name: str) -> Mapping[str, Any]:
        """All that the pack holds of one rule. Raises KeyError where it holds none of that id."""
        found = self.pack.text(part, name)
        if found is None:
            raise KeyError(name)
        return found

    def area(self, problem: str) -> str:
        """The area of a problem."""
        return str(self.whole("problems", problem)["path"]).split("/")[-2]

    def program(self, signature: str) -> str:
        """The program that prints a message."""
        return str(self.whole("signatures", signature)["program"])

    def fix(self, name: str) -> FixRecord:
        """A fix. Raises KeyError where there is none of that id."""
        return self._record("fixes", name, FixRecord)

    def signature(self, name: str) -> SignatureRecord:
        """A signature. Raises KeyError where there is none of that id."""
        return self._record("signatures", name, SignatureRecord)

    def source(self, name: str) -> SourceRecord:
        """A source. Raises KeyError where there is none of that id."""
        return self._record("sources", name, SourceRecord)

    def fixes_of(self, problem: ProblemRecord) -> list[FixRecord]:
        """The fixes of a problem, in its order; a name that points nowhere is for the lint to tell."""
        known = set(self.pack.names("fixes"))
        return [self.fix(name) for name in problem.fixes if name in known]

    def with_cause(self, cause: str) -> list[ProblemRecord]:
        """The problems that have this cause."""
        return [one for one in self.problems.values() if one.cause == cause]

    def with_fix(self, fix: str) -> list[ProblemRecord]:
        """The problems that a fix is for."""
        return [one for one in self.problems.values() if fix in one.fixes]

    def not_for(self, problem: str) -> list[NotThisRecord]:
        """Advice that is wrong for a problem."""
        return [one for name in self.pack.names("fixes") for one in self.fix(name).not_this if problem in one.problems]

    def citing(self, source: str) -> Iterator[tuple[str, str]]:
        """(part, id) of what cites a source."""
        for problem in self.problems.values():
            if any(cite.source == source for cite in problem.cites):
                yield "problems", problem.id
        for name in self.pack.names("fixes"):
            record = self.fix(name)
            if source in record.cites or any(source in one.cites for one in record.not_this):
                yield "fixes", name

    def part_of(self, name: str) -> str | None:
        """Where an id stands: `problems`, `fixes`, `signatures`, `sources`, `causes`, `areas`; None where nowhere."""
        for part in PARTS:
            if name in self.pack.names(part):
                return part
        if self.with_cause(name):
            return "causes"
        return "areas" if name in self.areas or name in PARTS else None

    def near(self, word: str, most: int = 5) -> list[str]:
        """Ids that look like a word, or whose titles hold it, the likeliest first."""
        from difflib import get_close_matches  # noqa: PLC0415 - only for what was not found

        named = [name for part in PARTS for name in self.pack.names(part)]
        named += [one.cause for one in self.problems.values() if one.cause]
        titles = {one.id: one.title for one in self.problems.values()} | {name: self.fix(name).title for name in self.pack.names("fixes")}
        wanted = word.strip().lower()
        holding = [name for name, title in titles.items() if len(wanted) > 1 and wanted in f"{title.en.lower()} {title.zh}"]
        close = get_close_matches(wanted.replace(" ", "-"), named, n=most, cutoff=0.6)
        inside = [name for name in named if len(wanted) > 2 and wanted.replace(" ", "-") in name]
        return list(dict.fromkeys([*close, *inside, *holding]))[:most]

    def with_example(self, text: str) -> str | None:
        """The signature with the shortest example that holds a text of several words: most likely the message that it is from."""
        wanted = " ".join(text.lower().split())
        found: dict[str, int] = {}
        for name in self.pack.names("signatures") if " " in wanted else ():
            record = self.signature(name)
            lengths = [
                len(one.text) for one in record.examples if record.kind != "context" and wanted in " ".join(one.text.lower().split())
            ]
            if lengths:
                found[name] = min(lengths)
        return min(found, key=found.__getitem__, default=None)

    def with_literal(self, text: str) -> str | None:
        """The signature with the longest literal that stands in a text of several words: what is near a message that is cut."""
        found: dict[str, int] = {}
        for core in self.pack.signatures if " " in text.strip() else ():
            lengths = [len(literal) for literal in core["literals"] if literal in text]
            if lengths and core["kind"] != "context":
                found[core["id"]] = max(lengths)
        return max(found, key=found.__getitem__, default=None)

    def _record(self, part: str, name: str, shape: type[T]) -> T:
        whole = self.whole(part, name)
        return convert({key: value for key, value in whole.items() if key not in _BESIDE}, shape)
