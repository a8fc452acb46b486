"""The compiled pack: all rules in one file that is read without YAML, and only as far as it is needed.

Layout: a first line of JSON with what matching needs (literals, patterns, conditions) and, for every text, the place of
its line; then one JSON line per text (problems, fixes, sources). A report reads only the lines of the rules that fired.

A wheel carries its pack, made from the same files at build time. For a checkout or `--rules DIR` the pack lies in the
user's cache under a name made of every rule file's path, size and time, and of this code's own: a changed file has
another name, so a pack can be missing but never stale. Where nothing can be written the rules are compiled in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomdoctor.knowledge.load import LoadedSignature

FORMAT = 1
_PACKED = "pack.json"
_KEPT = 8


class Pack:
    """The rules as they are matched; texts are read when asked for."""

    def __init__(self, data: bytes) -> None:
        head, _, self._texts = data.partition(b"\n")
        self._head: dict[str, Any] = json.loads(head)
        if self._head.get("format") != FORMAT:
            raise ValueError("a pack of another format")
        self.signatures: list[dict[str, Any]] = self._head["signatures"]
        self.problems: list[dict[str, Any]] = self._head["problems"]

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule: part is `problems`, `fixes` or `sources`."""
        at = self._head["texts"][part].get(name)
        return None if at is None else json.loads(self._texts[at[0] : at[0] + at[1]])

    def names(self, part: str) -> list[str]:
        """The ids of one part, in the order of the files."""
        return list(self._head["texts"][part])


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
    where = cache if cache is not None else cache_folder()
    kept = _read(os.path.join(where, name))
    if kept is not None:
        try:
            return Pack(kept)
        except (ValueError, KeyError):
            pass
    data = compile_pack(folder)
    _keep(where, name, data)
    return Pack(data)


def compile_pack(root: str) -> bytes:
    """The rule files below `root`, checked and packed."""
    from pathlib import Path  # noqa: PLC0415 - only compiling pays for YAML, msgspec and pathlib

    import msgspec  # noqa: PLC0415

    from oomdoctor.knowledge.load import load_rules  # noqa: PLC0415

    rules = load_rules(Path(root))
    lines: list[bytes] = []
    places: dict[str, dict[str, list[int]]] = {"signatures": {}, "problems": {}, "fixes": {}, "sources": {}}
    end = 0

    def put(part: str, name: str, value: Mapping[str, Any]) -> None:
        nonlocal end
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        places[part][name] = [end, len(line)]
        lines.append(line)
        end += len(line)

    for loaded in rules.signatures:
        record = msgspec.to_builtins(loaded.record)
        put("signatures", loaded.record.id, {"program": loaded.program, "path": os.path.relpath(loaded.path, root), **record})
    for path, problem in rules.problems:
        put("problems", problem.id, {"path": os.path.relpath(path, root), **msgspec.to_builtins(problem)})
    for path, fix in rules.fixes:
        put("fixes", fix.id, {"path": os.path.relpath(path, root), **msgspec.to_builtins(fix)})
    for source in rules.sources:
        put("sources", source.id, msgspec.to_builtins(source))
    head = {
        "format": FORMAT,
        "signatures": [matching(one) for one in rules.signatures],
        "problems": [
            {"id": one.id, "when": one.when, "confidence": one.confidence, "rank": one.rank, "silences": one.silences}
            for _, one in rules.problems
        ],
        "texts": places,
    }
    return json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" + b"".join(lines)


def matching(loaded: LoadedSignature) -> dict[str, Any]:
    """What the matcher needs of a signature; keys with their default value are left out."""
    from oomdoctor.knowledge.pattern import expand, fragment  # noqa: PLC0415 - only for compiling

    record, program = loaded.record, loaded.program
    expression = None if record.pattern is None else expand(record.pattern)
    core = {
        "id": record.id,
        "program": program,
        "kind": record.kind,
        "certainty": record.certainty,
        "outcome": record.outcome,
        "literals": record.literals,
        "pattern": expression,
        "needs": expression and fragment(expression),
        "family": record.family,
        "set": record.set,
        "unit": record.unit,
    }
    return {key: value for key, value in core.items() if value not in (None, {}, "failure")}


def cache_folder() -> str:
    """Where compiled packs of a checkout are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "oomdoctor")


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
                    stat = os.stat(full)
                    digest.update(f"{full}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
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


def _keep(where: str, name: str, data: bytes) -> None:
    """Writes the pack beside earlier ones, whole or not at all; a cache that cannot be written is no error."""
    import tempfile  # noqa: PLC0415 - only when a pack was compiled

    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, prefix="pack-", suffix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(where, name))
        packs = [os.path.join(where, one) for one in os.listdir(where) if one.startswith("pack-") and one.endswith(".json")]
        for old in sorted(packs, key=os.path.getmtime)[:-_KEPT]:
            os.unlink(old)
    except OSError:
        return
