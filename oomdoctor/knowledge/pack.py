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
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import DecodeError
from msgspec.json import decode

from oomdoctor import cache as cached
from oomdoctor.knowledge.compiled.format import FORMAT, PackEntry, PackFormat, PackHead, PackLine, PackMatching
from oomdoctor.knowledge.records.base import Record, RecordKind
from oomdoctor.knowledge.records.bug import ProgramBug
from oomdoctor.knowledge.records.evidence import ComputationCore, EvidenceCore
from oomdoctor.knowledge.records.fix import FixRecord, NotThisRecord
from oomdoctor.knowledge.records.framework import FRAMEWORKS, FrameworkCore, FrameworkRecord
from oomdoctor.knowledge.records.lexicon import Lexicon
from oomdoctor.knowledge.records.problem import ProblemCore, ProblemRecord
from oomdoctor.knowledge.records.request import RequestCore
from oomdoctor.knowledge.records.signature import SignatureCore, SignatureRecord
from oomdoctor.knowledge.records.source import SourceRecord
from oomdoctor.opening import open_rule_file

_PACKED = "pack.json"
_LARGEST = 16 << 20
"""More than any rule file may have."""
_LONGEST_HEAD = 1 << 16
T = TypeVar("T", bound=Record)
PROBLEMS = RecordKind("problems", ProblemRecord)
FIXES = RecordKind("fixes", FixRecord)
SOURCES = RecordKind("sources", SourceRecord)
SIGNATURES = RecordKind("signatures", SignatureRecord)


class PackBytes(Protocol):
    """The bytes of a pack, of which parts are asked for."""

    def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on, fewer at the end."""

    def whole(self) -> bytes:
        """Return all of them."""


class Pack:
    """The rules as they are matched; signatures are read when a literal of theirs was seen, records when they are asked for."""

    def __init__(self, data: bytes | PackBytes) -> None:
        self._data = _InMemory(data) if isinstance(data, bytes) else data
        self._start = self._data.part(0, _LONGEST_HEAD).find(b"\n") + 1
        head = self._data.part(0, self._start)
        if decode(head, type=PackFormat).format != FORMAT:
            raise ValueError("a pack in a different format")
        self._head = decode(head, type=PackHead)
        self._indexes: dict[str, dict[str, PackEntry]] = {}
        self._records: dict[tuple[str, str], Record] = {}

    @property
    def is_whole(self) -> bool:
        """Whether all of it is as it was written; looking takes as long as a diagnosis takes to read its lines."""
        return self._head.check == zlib.crc32(memoryview(self._data.whole())[self._start :])

    @functools.cached_property
    def _matching(self) -> PackMatching:
        return decode(self._line(self._head.matching), type=PackMatching)

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
    def courses(self) -> set[int]:
        """Return those of them whose messages print the memory of a card: seen again and again, they are its course."""
        return self._matching.courses

    @property
    def families(self) -> dict[str, list[int]]:
        """Return for each family the numbers of the signatures whose ids it gives."""
        return self._matching.families

    @functools.cached_property
    def observations(self) -> dict[str, SignatureCore]:
        """Return what recorders and readers of series can see, by id."""
        return {core.id: core for core in map(self.core, self._matching.observed)}

    @property
    def problems(self) -> list[ProblemCore]:
        """Return what deciding needs of every problem."""
        return self._matching.problems

    @property
    def evidence(self) -> list[EvidenceCore]:
        """Return what weighing needs of all evidence."""
        return self._matching.evidence

    @property
    def topics(self) -> Mapping[str, Sequence[str]]:
        """Return signature -> what it tells beyond its kind, outcome and fields."""
        return self._matching.topics

    @functools.cached_property
    def computations(self) -> list[ComputationCore]:
        """Return how tracebacks show what was being computed."""
        return decode(self._line(self._head.computations), type=list[ComputationCore])

    @functools.cached_property
    def requests(self) -> list[RequestCore]:
        """Return how failures show which request it was."""
        return decode(self._line(self._head.requests), type=list[RequestCore])

    @functools.cached_property
    def frameworks(self) -> list[FrameworkCore]:
        """Return what every diagnosis needs of the frameworks."""
        return decode(self._line(self._head.frameworks), type=list[FrameworkCore])

    @functools.cached_property
    def shown_bugs(self) -> list[ProgramBug]:
        """Return the bugs that a log can show, without their examples."""
        return decode(self._line(self._head.shown_bugs), type=list[ProgramBug])

    @functools.cached_property
    def lexicon(self) -> Lexicon:
        """Return what words mean, as a tree of the words of phrases, and how they follow each other."""
        return decode(self._line(self._head.lexicon), type=Lexicon)

    @property
    def version(self) -> str:
        """Return what tells these rules from others: eight hexadecimal digits that change with every rule."""
        return f"{self._head.check:08x}"

    @property
    def size(self) -> int:
        """Return how many signatures there are."""
        return len(self._matching.cores)

    def core(self, number: int) -> SignatureCore:
        """Return what the matcher needs of one signature."""
        return decode(self._line(self._matching.cores[number]), type=SignatureCore)

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
        return [] if entry is None else decode(self._line(entry), type=list[NotThisRecord])

    def record(self, kind: RecordKind[T], name: str) -> T | None:
        """Return the record of a kind by its id, None where there is none."""
        key = (kind.part, name)
        known = self._records.get(key)
        if isinstance(known, kind.shape):
            return known
        entry = self._index(kind.part).get(name)
        if entry is None:
            return None
        read = self._records[key] = decode(self._line(entry), type=kind.shape)
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

    def _index(self, part: str) -> dict[str, PackEntry]:
        if part not in self._indexes:
            self._indexes[part] = decode(self._line(self._head.parts[part]), type=dict[str, PackEntry])
        return self._indexes[part]

    def _line(self, line: PackLine) -> bytes:
        return self._data.part(self._start + line.start, line.length)


class _InMemory:
    """A pack that was compiled or read whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def part(self, start: int, length: int) -> bytes:
        return self._data[start : start + length]

    def whole(self) -> bytes:
        return self._data


class _InFile:
    """The shipped pack, read line by line: of five megabytes a diagnosis needs one.

    No position is kept, so threads and forked processes may share it.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - open as long as the rules are

    def part(self, start: int, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, start)

    def whole(self) -> bytes:
        return self.part(0, os.fstat(self._file.fileno()).st_size)


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
    shipped = _shipped(os.path.join(folder, _PACKED)) or _from_zip(folder)
    return Pack(shipped) if shipped is not None else _cached_pack(folder)


def _cached_pack(folder: str, cache: str | None = None, over: str | None = None) -> Pack:
    name = f"pack-{_stamp(folder, *([] if over is None else [over]))}.json"
    kept = cached.read(name, cache)
    if kept is not None:
        try:
            pack = Pack(kept)
        except (ValueError, DecodeError, RecursionError):
            pass  # damaged in the cache: it is made again
        else:
            if pack.is_whole:
                return pack
    from oomdoctor.knowledge.compiled.compile import compile_pack  # noqa: PLC0415 - only compiling pays for YAML, lint and pathlib

    own = [named for named in (over, folder) if named is not None and named != builtin_rules()]
    data = compile_pack(folder, over, own=own)
    cached.keep(name, data, cache)
    return Pack(data)


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
                    digest.update(_content(full))
    return digest.hexdigest()[:32]


def _content(path: str) -> bytes:
    """Return what stands in a rule file; nothing where it cannot be read, which is said when it is loaded."""
    try:
        with open_rule_file(path) as file:
            # Asked for 16 MiB, Python would make room for them, file by file: most of the time of a start in a checkout.
            return file.read(min(os.fstat(file.fileno()).st_size or _LARGEST, _LARGEST))
    except OSError:
        return b""


def _shipped(path: str) -> bytes | PackBytes | None:
    """Return the pack that a wheel carries; None where there is none."""
    try:
        if hasattr(os, "pread"):
            return _InFile(path)
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _from_zip(folder: str) -> bytes | None:
    """Return the shipped pack when the package is imported from a zip archive."""
    return None if os.path.isdir(folder) else read_from_zip(_PACKED)


def read_from_zip(name: str) -> bytes | None:
    """Return a file of the rules where the package is imported from a zip archive; None where there is no such file."""
    read = getattr(__spec__.loader, "get_data", None)
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "rules", *name.split("/"))
    try:
        return None if read is None else bytes(read(path))
    except OSError:
        return None
