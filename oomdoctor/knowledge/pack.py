"""The compiled pack: all rules in one file that is read without YAML, and only as far as it is needed.

Layout: a first line of JSON that says where all else stands; then a line with the literals and the conditions of problems, and one for
each record. A diagnosis reads only the lines of what it met, an estimate none of those that matching needs.

A wheel carries its pack, made from the same files at build time. For a checkout or `--rules DIR` the pack lies in the
user's cache under a name made of every rule file's path and content, and of this code's own: changed rules have another
name, so a pack can be missing but never stale. Where nothing can be written the rules are compiled in memory.
"""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from oomdoctor import cache as cached
from oomdoctor.knowledge.records.base import Record, RecordKind
from oomdoctor.knowledge.records.condition import AllOf, AnyOf, Condition, NotThat, TextCondition
from oomdoctor.knowledge.records.fix import FixRecord, NotThisRecord
from oomdoctor.knowledge.records.framework import FRAMEWORKS, FrameworkCore, FrameworkRecord
from oomdoctor.knowledge.records.problem import ProblemCore, ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureCore, SignatureRecord
from oomdoctor.knowledge.records.source import SourceRecord

if TYPE_CHECKING:
    from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet

FORMAT = 11
_PACKED = "pack.json"
T = TypeVar("T", bound=Record)
PROBLEMS = RecordKind("problems", ProblemRecord)
FIXES = RecordKind("fixes", FixRecord)
SOURCES = RecordKind("sources", SourceRecord)
SIGNATURES = RecordKind("signatures", SignatureRecord)


class _Line(NamedTuple):
    """Where a line of the pack begins, and its length, in bytes."""

    start: int
    length: int


class _Entry(NamedTuple):
    """The line of a record, and the file that it is from, relative to the folder of the rules."""

    start: int
    length: int
    path: str


class _Matching(Struct, frozen=True):
    """What matching needs at once."""

    literals: list[str]
    behind: list[list[int]]
    sampled: set[int]
    families: dict[str, list[int]]
    cores: list[_Line]
    problems: list[ProblemCore]


class _Head(Struct, frozen=True):
    """The first line of a pack."""

    format: int
    check: int
    """The checksum of all other lines."""
    matching: _Line
    frameworks: _Line
    parts: dict[str, _Line]
    """For each part of the pack its index, which maps ids to entries."""


class _Format(Struct):
    format: int = 0


class Pack:
    """The rules as they are matched; signatures are read when a literal of theirs was seen, records when they are asked for."""

    def __init__(self, data: bytes) -> None:
        head, _, self._lines = data.partition(b"\n")
        if decode(head, type=_Format).format != FORMAT:
            raise ValueError("a pack of another format")
        self._head = decode(head, type=_Head)
        if self._head.check != zlib.crc32(self._lines):
            raise ValueError("a damaged pack")
        self._indexes: dict[str, dict[str, _Entry]] = {}
        self._records: dict[tuple[str, str], Record] = {}

    @functools.cached_property
    def _matching(self) -> _Matching:
        return decode(self._line(*self._head.matching), type=_Matching)

    @property
    def literals(self) -> list[str]:
        """Return all literals, sorted; their numbers are what the prefilter reports."""
        return self._matching.literals

    @property
    def behind(self) -> list[list[int]]:
        """Return for each literal the numbers of the signatures that have it."""
        return self._matching.behind

    @property
    def sampled(self) -> set[int]:
        """Return the numbers of the literals that only context and warnings have."""
        return self._matching.sampled

    @property
    def families(self) -> dict[str, list[int]]:
        """Return for each family the numbers of the signatures whose ids it gives."""
        return self._matching.families

    @property
    def problems(self) -> list[ProblemCore]:
        """Return what deciding needs of every problem."""
        return self._matching.problems

    @functools.cached_property
    def frameworks(self) -> list[FrameworkCore]:
        """Return what every diagnosis needs of the frameworks."""
        return decode(self._line(*self._head.frameworks), type=list[FrameworkCore])

    @property
    def size(self) -> int:
        """Return how many signatures there are."""
        return len(self._matching.cores)

    def core(self, number: int) -> SignatureCore:
        """Return what the matcher needs of one signature."""
        return decode(self._line(*self._matching.cores[number]), type=SignatureCore)

    @property
    def signatures(self) -> list[SignatureCore]:
        """Return what the matcher needs of all signatures."""
        return [self.core(number) for number in range(self.size)]

    def problem(self, name: str) -> ProblemRecord | None:
        """Return a problem by its id, None where there is none."""
        return self.record(PROBLEMS, name)

    def fix(self, name: str) -> FixRecord | None:
        """Return a fix by its id, None where there is none."""
        return self.record(FIXES, name)

    def source(self, name: str) -> SourceRecord | None:
        """Return a source by its id, None where there is none."""
        return self.record(SOURCES, name)

    def signature(self, name: str) -> SignatureRecord | None:
        """Return a signature by its id, None where there is none."""
        return self.record(SIGNATURES, name)

    def framework(self, name: str) -> FrameworkRecord | None:
        """Return a framework by its id, None where there is none."""
        return self.record(FRAMEWORKS, name)

    def wrong_advice(self, problem: str) -> list[NotThisRecord]:
        """Return the advice that is wrong for a problem; it stands with the fixes."""
        entry = self._index("wrong_advice").get(problem)
        return [] if entry is None else decode(self._line(entry.start, entry.length), type=list[NotThisRecord])

    def record(self, kind: RecordKind[T], name: str) -> T | None:
        """Return the record of a kind by its id, None where there is none."""
        key = (kind.part, name)
        known = self._records.get(key)
        if isinstance(known, kind.shape):
            return known
        entry = self._index(kind.part).get(name)
        if entry is None:
            return None
        read = self._records[key] = decode(self._line(entry.start, entry.length), type=kind.shape)
        return read

    def records(self, kind: RecordKind[T]) -> Iterator[T]:
        """Return all records of a kind, in the order of the files."""
        return (record for name in self.names(kind.part) if (record := self.record(kind, name)) is not None)

    def names(self, part: str) -> list[str]:
        """Return the ids of one part, in the order of the files."""
        return list(self._index(part))

    def path(self, part: str, name: str) -> str:
        """Return the file of a record, relative to the folder of the rules. Raise KeyError where there is no such record."""
        return self._index(part)[name].path

    def _index(self, part: str) -> dict[str, _Entry]:
        if part not in self._indexes:
            self._indexes[part] = decode(self._line(*self._head.parts[part]), type=dict[str, _Entry])
        return self._indexes[part]

    def _line(self, start: int, length: int) -> bytes:
        return self._lines[start : start + length]


def builtin_rules() -> str:
    """Return the folder of the rules: inside the installed package, or beside it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "rules")
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(package), "rules")


def load_pack(root: str | None = None, cache: str | None = None, *, over: str | None = None) -> Pack:
    """Return the pack of the rules in `root` (default: the built-in ones), with those in `over` laid over them.

    Raise RuleError where a rule file is wrong.
    """
    is_builtin = root is None and cache is None and over is None
    return _builtin_pack() if is_builtin else _cached_pack(root or builtin_rules(), cache, over)


@functools.cache
def _builtin_pack() -> Pack:
    """Return the pack of the built-in rules, read once for each process."""
    folder = builtin_rules()
    shipped = _read(os.path.join(folder, _PACKED)) or _from_zip(folder)
    return Pack(shipped) if shipped is not None else _cached_pack(folder)


def _cached_pack(folder: str, cache: str | None = None, over: str | None = None) -> Pack:
    name = f"pack-{_stamp(folder, *([] if over is None else [over]))}.json"
    kept = cached.read(name, cache)
    if kept is not None:
        try:
            return Pack(kept)
        except (ValueError, DecodeError, RecursionError):
            pass  # damaged in the cache: it is made again
    data = compile_pack(folder, over)
    cached.keep(name, data, cache)
    return Pack(data)


def compile_pack(root: str, over: str | None = None) -> bytes:
    """Return the rule files below `root`, with those below `over` laid over them, checked and packed."""
    from pathlib import Path  # noqa: PLC0415 - only compiling pays for YAML, msgspec and pathlib

    from oomdoctor.knowledge.load import load_rules  # noqa: PLC0415 - as above

    return packed(load_rules(Path(root), None if over is None else Path(over)), root)


def packed(rules: RuleSet, root: str) -> bytes:
    """Return rules as a pack; paths in it are relative to `root`."""
    lines: list[bytes] = []
    end = 0

    def put(value: object) -> _Line:
        nonlocal end
        line = encode(value) + b"\n"
        lines.append(line)
        start, end = end, end + len(line)
        return _Line(start, len(line))

    def entry(record: object, path: str = "") -> _Entry:
        return _Entry(*put(record), os.path.relpath(path, root) if path else "")

    indexes = {
        "signatures": {one.record.id: entry(one.record, one.path) for one in rules.signatures},
        "problems": {record.id: entry(record, path) for path, record in rules.problems},
        "fixes": {record.id: entry(record, path) for path, record in rules.fixes},
        "sources": {record.id: entry(record) for record in rules.sources},
        "wrong_advice": {name: entry(advice) for name, advice in _wrong_advice(rules).items()},
        "frameworks": {record.framework: entry(record, path) for path, record in rules.frameworks},
        "checks": {record.id: entry(record, path) for path, record in rules.checks},
        "forms": {record.id: entry(record, path) for path, record in rules.forms},
        "sheets": {record.id: entry(record, path) for path, record in rules.sheets},
        "templates": {record.id: entry(record, path) for path, record in rules.templates},
        "changes": {record.id: entry(record, path) for path, record in rules.changes},
    }
    cores = [matching(one) for one in rules.signatures]
    literals = sorted({literal for core in cores for literal in core.literals})
    families = sorted({core.family for core in cores if core.family is not None})
    behind = [[number for number, core in enumerate(cores) if literal in core.literals] for literal in literals]
    matched = _Matching(
        literals=literals,
        behind=behind,
        sampled={number for number, signatures in enumerate(behind) if all(cores[one].is_aside for one in signatures)},
        families={name: [number for number, core in enumerate(cores) if core.family == name] for name in families},
        cores=[put(core) for core in cores],
        problems=[
            ProblemCore(record.id, with_needs(record.when), record.confidence, record.rank, record.silences) for _, record in rules.problems
        ],
    )
    head = _Head(
        format=FORMAT,
        check=0,
        matching=put(matched),
        frameworks=put([_framework_core(record) for _, record in rules.frameworks]),
        parts={part: put(index) for part, index in indexes.items()},
    )
    rest = b"".join(lines)
    return encode(replace(head, check=zlib.crc32(rest))) + b"\n" + rest


def _framework_core(record: FrameworkRecord) -> FrameworkCore:
    return FrameworkCore(**{field: getattr(record, field) for field in FrameworkCore.__struct_fields__})


def _wrong_advice(rules: RuleSet) -> dict[str, list[NotThisRecord]]:
    """Return for each problem the advice that is wrong for it."""
    out: dict[str, list[NotThisRecord]] = {}
    for _, fix in rules.fixes:
        for advice in fix.not_this:
            for problem in advice.problems:
                out.setdefault(problem, []).append(advice)
    return out


def matching(loaded: LoadedSignature) -> SignatureCore:
    """Return what the matcher needs of a signature."""
    from oomdoctor.knowledge.pattern import expand, fragments  # noqa: PLC0415 - only for compiling

    record = loaded.record
    expression = None if record.pattern is None else expand(record.pattern)
    return SignatureCore(
        id=record.id,
        program=loaded.program,
        purpose=record.purpose,
        kind=record.kind,
        certainty=record.certainty,
        outcome=record.outcome,
        literals=record.literals,
        pattern=expression,
        needs=None if expression is None else fragments(expression),
        family=record.family,
        set=record.set,
        unit=record.unit,
    )


def with_needs(when: Condition) -> Condition:
    """Return a condition in which each text to search says what it must hold, so that most are never compiled."""
    from oomdoctor.knowledge.pattern import fragments  # noqa: PLC0415 - only for compiling

    if isinstance(when, TextCondition):
        needed = fragments(when.pattern)
        return replace(when, needs=tuple(needed)) if needed else when
    if isinstance(when, NotThat):
        return NotThat(with_needs(when.part))
    if isinstance(when, AllOf):
        return AllOf(tuple(map(with_needs, when.parts)))
    return AnyOf(tuple(map(with_needs, when.parts))) if isinstance(when, AnyOf) else when


def _stamp(*roots: str) -> str:
    """Return a name for exactly these rule files and this code."""
    import hashlib  # noqa: PLC0415 - a wheel with its pack does not need it

    digest = hashlib.sha256(f"{FORMAT}".encode())
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (*map(os.path.abspath, roots), here):
        for path, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name.endswith((".yaml", ".py")):
                    full = os.path.join(path, name)
                    digest.update(full.encode("utf-8", "surrogateescape") + b"\0")
                    digest.update(cached.read(full, "") or b"")
    return digest.hexdigest()[:32]


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _from_zip(folder: str) -> bytes | None:
    """The shipped pack when the package is imported from a zip archive."""
    if os.path.isdir(folder):
        return None
    import pkgutil  # noqa: PLC0415 - only for zips

    try:
        return pkgutil.get_data("oomdoctor", f"rules/{_PACKED}")
    except OSError:
        return None
