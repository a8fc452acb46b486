"""The compiled pack: all rules in one file that is read without YAML, and only as far as it is needed.

Layout: a first line of JSON with the literals, the conditions of problems and the places of all else; then one JSON line
each for the signatures, problems, fixes and sources. A diagnosis reads only the lines of what it met.

A wheel carries its pack, made from the same files at build time. For a checkout or `--rules DIR` the pack lies in the
user's cache under a name made of every rule file's path and content, and of this code's own: changed rules have another
name, so a pack can be missing but never stale. Where nothing can be written the rules are compiled in memory.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.json import decode, encode

from oomdoctor import cache as cached

if TYPE_CHECKING:
    from oomdoctor.knowledge.load import LoadedSignature, RuleSet

FORMAT = 8
_PACKED = "pack.json"


class Pack:
    """The rules as they are matched; signatures are read when a literal of theirs was seen, texts when a rule fired."""

    def __init__(self, data: bytes) -> None:
        head, _, self._texts = data.partition(b"\n")
        self._head: dict[str, Any] = decode(head)
        if self._head["format"] != FORMAT or self._head["check"] != zlib.crc32(self._texts):
            raise ValueError("a pack of another format, or a damaged one")
        self.literals: list[str] = self._head["literals"]
        """All literals, sorted; their numbers are what the prefilter reports."""
        self.behind: list[list[int]] = self._head["behind"]
        """For each literal the numbers of the signatures that have it."""
        self.sampled: set[int] = set(self._head["sampled"])
        """The numbers of the literals that only context and warnings have."""
        self.families: dict[str, list[int]] = self._head["families"]
        """For each family the numbers of the signatures whose ids it gives."""
        self.problems: list[dict[str, Any]] = self._head["problems"]
        self._cores: list[list[int]] = self._head["cores"]
        self._read: dict[str, dict[str, list[int]]] = {}

    @property
    def size(self) -> int:
        """How many signatures there are."""
        return len(self._cores)

    def core(self, number: int) -> dict[str, Any]:
        """What the matcher needs of one signature."""
        at, length = self._cores[number]
        core: dict[str, Any] = decode(self._texts[at : at + length])
        return core

    @property
    def signatures(self) -> list[dict[str, Any]]:
        """What the matcher needs of all signatures."""
        return [self.core(number) for number in range(self.size)]

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """All of one rule: part is `signatures`, `problems`, `fixes`, `sources`, or one of those that `packed` lists besides."""
        at = self._places(part).get(name)
        return None if at is None else decode(self._texts[at[0] : at[0] + at[1]])

    def names(self, part: str) -> list[str]:
        """The ids of one part, in the order of the files."""
        return list(self._places(part))

    def _places(self, part: str) -> dict[str, list[int]]:
        if part not in self._read:
            at, length = self._head["places"][part]
            self._read[part] = decode(self._texts[at : at + length])
        return self._read[part]


def builtin_rules() -> str:
    """The folder of the rules: inside the installed package, or beside it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "rules")
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(package), "rules")


def load_pack(root: str | None = None, cache: str | None = None) -> Pack:
    """The pack of the rules in `root` (default: the built-in ones). Raises RuleError where a rule file is wrong."""
    folder = root or builtin_rules()
    if root is None:
        shipped = _read(os.path.join(folder, _PACKED)) or _from_zip(folder)
        if shipped is not None:
            return Pack(shipped)
    name = f"pack-{_stamp(folder)}.json"
    kept = cached.read(name, cache)
    if kept is not None:
        try:
            return Pack(kept)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            pass  # damaged in the cache: it is made again
    data = compile_pack(folder)
    cached.keep(name, data, cache)
    return Pack(data)


def compile_pack(root: str) -> bytes:
    """The rule files below `root`, checked and packed."""
    from pathlib import Path  # noqa: PLC0415 - only compiling pays for YAML, msgspec and pathlib

    from oomdoctor.knowledge.load import load_rules  # noqa: PLC0415

    return packed(load_rules(Path(root)), root)


def packed(rules: RuleSet, root: str) -> bytes:
    """Rules as a pack; paths in it are relative to `root`."""
    lines: list[bytes] = []
    end = 0

    def put(value: Any) -> list[int]:
        nonlocal end
        line = encode(value) + b"\n"
        lines.append(line)
        at, end = end, end + len(line)
        return [at, len(line)]

    def whole(record: Any, path: str, **more: str) -> list[int]:
        return put({**more, "path": os.path.relpath(path, root), **to_builtins(record)})

    places = {
        "signatures": {one.record.id: whole(one.record, one.path, program=one.program) for one in rules.signatures},
        "problems": {one.id: whole(one, path) for path, one in rules.problems},
        "fixes": {one.id: whole(one, path) for path, one in rules.fixes},
        "sources": {one.id: put(to_builtins(one)) for one in rules.sources},
        "not_this": {name: put({"advice": entries}) for name, entries in _wrong_advice(rules).items()},
        "frameworks": {one.framework: whole(one, path) for path, one in rules.frameworks},
        "config_keys": {one.framework: whole(one, path) for path, one in rules.keys},
        "checks": {one.id: whole(one, path) for path, one in rules.checks},
        "forms": {one.id: whole(one, path) for path, one in rules.forms},
        "sheets": {one.id: whole(one, path) for path, one in rules.sheets},
        "templates": {one.id: whole(one, path) for path, one in rules.templates},
        "changes": {one.id: whole(one, path) for path, one in rules.changes},
    }
    cores = [matching(one) for one in rules.signatures]
    literals = sorted({literal for core in cores for literal in core["literals"]})
    families = sorted({core["family"] for core in cores if "family" in core})
    behind = [[number for number, core in enumerate(cores) if literal in core["literals"]] for literal in literals]
    head = {
        "format": FORMAT,
        "literals": literals,
        "behind": behind,
        "sampled": [number for number, own in enumerate(behind) if all(_is_aside(cores[one]) for one in own)],
        "families": {name: [number for number, core in enumerate(cores) if core.get("family") == name] for name in families},
        "cores": [put(core) for core in cores],
        "problems": [
            {"id": one.id, "when": with_needs(one.when), "confidence": one.confidence, "rank": one.rank, "silences": one.silences}
            for _, one in rules.problems
        ],
        "places": {part: put(own) for part, own in places.items()},
    }
    texts = b"".join(lines)
    return encode({**head, "check": zlib.crc32(texts)}) + b"\n" + texts


def _wrong_advice(rules: RuleSet) -> dict[str, list[Any]]:
    """For each problem the advice that is wrong for it; it stands with the fixes, and is asked for by problem."""
    out: dict[str, list[Any]] = {}
    for _, fix in rules.fixes:
        for one in fix.not_this:
            for problem in one.problems:
                out.setdefault(problem, []).append(to_builtins(one))
    return out


def _is_aside(core: Mapping[str, Any]) -> bool:
    """Whether a signature is only context or a warning."""
    return core["kind"] == "context" or core.get("outcome") == "pressure"


def matching(loaded: LoadedSignature) -> dict[str, Any]:
    """What the matcher needs of a signature; keys with their default value are left out."""
    from oomdoctor.knowledge.pattern import expand, fragments  # noqa: PLC0415 - only for compiling

    record, program = loaded.record, loaded.program
    expression = None if record.pattern is None else expand(record.pattern)
    core = {
        "id": record.id,
        "program": program,
        "purpose": record.purpose,
        "kind": record.kind,
        "certainty": record.certainty,
        "outcome": record.outcome,
        "literals": record.literals,
        "pattern": expression,
        "needs": expression and fragments(expression),
        "family": record.family,
        "set": record.set,
        "unit": record.unit,
    }
    return {key: value for key, value in core.items() if value not in (None, {}, "failure")}


def with_needs(when: Mapping[str, Any]) -> dict[str, Any]:
    """A condition in which each text to search says what it must hold, so that most are never compiled."""
    from oomdoctor.knowledge.pattern import fragments  # noqa: PLC0415 - only for compiling

    if "text" in when:
        needed = fragments(when["text"])
        return {**when, "needs": needed} if needed else dict(when)
    if "not" in when and isinstance(when["not"], Mapping):
        return {"not": with_needs(when["not"])}
    return {word: [with_needs(one) for one in inner] if word in ("all", "any") else inner for word, inner in when.items()}


def _stamp(root: str) -> str:
    """A name for exactly these rule files and this code."""
    import hashlib  # noqa: PLC0415 - a wheel with its pack does not need it

    digest = hashlib.sha256(f"{FORMAT}".encode())
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.abspath(root), here):
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
