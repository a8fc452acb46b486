"""YAML rule files -> records, strictly: every mistake is reported as file:line:column, what is wrong, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import RuleError
from oomdoctor.knowledge.conditions import check
from oomdoctor.knowledge.records.change import ChangeFile, ChangeRecord
from oomdoctor.knowledge.records.check import CheckFile, CheckRecord
from oomdoctor.knowledge.records.condition import tagged_condition
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.form import FormRecord, SheetRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord, KeysRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureFile, SignatureRecord
from oomdoctor.knowledge.records.source import SourceFile, SourceRecord
from oomdoctor.knowledge.records.template import TemplateRecord

T = TypeVar("T")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AT = re.compile(r"^(?P<why>.*?)(?: - at `(?P<path>\$.*)`)?$", re.S)
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_MAX_BYTES = 4 << 20
_DEEPEST = 60
_DATA = ("fields", "environment")
"""Keys that hold examples of data, whose keys are no words of rules."""


class LoadedSignature(Struct, frozen=True):
    """A signature and where it comes from."""

    program: str
    path: str
    record: SignatureRecord


class RuleSet(Struct, frozen=True):
    """All rule files of one folder, as records."""

    signatures: tuple[LoadedSignature, ...]
    problems: tuple[tuple[str, ProblemRecord], ...]
    fixes: tuple[tuple[str, FixRecord], ...]
    sources: tuple[SourceRecord, ...]
    frameworks: tuple[tuple[str, FrameworkRecord], ...] = ()
    keys: tuple[tuple[str, KeysRecord], ...] = ()
    checks: tuple[tuple[str, CheckRecord], ...] = ()
    forms: tuple[tuple[str, FormRecord], ...] = ()
    sheets: tuple[tuple[str, SheetRecord], ...] = ()
    templates: tuple[tuple[str, TemplateRecord], ...] = ()
    changes: tuple[tuple[str, ChangeRecord], ...] = ()


def rule_files(root: Path) -> list[Path]:
    """The rule files below `root`, in a fixed order."""
    return sorted(path for path in root.rglob("*.yaml") if path.is_file())


def load_rules(root: Path) -> RuleSet:
    """Every rule below `root`. Raises RuleError at the first file that is not right."""
    signatures: list[LoadedSignature] = []
    for path in sorted((root / "signatures").rglob("*.yaml")):
        signatures += load_signatures(path)
    _unique([(one.path, one.record.id) for one in signatures])
    problems = _with_groups([(str(path), load_file(path, ProblemRecord)) for path in sorted((root / "problems").rglob("*.yaml"))])
    fixes = tuple((str(path), load_file(path, FixRecord)) for path in sorted((root / "fixes").rglob("*.yaml")))
    _unique([(path, one.id) for path, one in problems])
    frameworks = tuple((str(path), load_file(path, FrameworkRecord)) for path in sorted((root / "tables" / "settings").glob("*.yaml")))
    keys = tuple((str(path), load_file(path, KeysRecord)) for path in sorted((root / "tables" / "config_keys").glob("*.yaml")))
    checks = tuple((str(path), one) for path in sorted((root / "checks").rglob("*.yaml")) for one in load_file(path, CheckFile).checks)
    for source, framework in frameworks:
        check_setting_names(source, framework.settings)
    for source, one in checks:
        check_setting_names(source, one.sets)
    _unique([(path, one.id) for path, one in checks])
    changes = tuple((str(path), one) for path in sorted((root / "changes").glob("*.yaml")) for one in load_file(path, ChangeFile).changes)
    _unique([(path, one.id) for path, one in changes])
    _unique([(path, one.id) for path, one in fixes])
    listed = root / "sources.yaml"
    sources = tuple(load_file(listed, SourceFile).sources) if listed.is_file() else ()
    forms = tuple((str(path), load_file(path, FormRecord)) for path in sorted((root / "forms").glob("*.yaml")))
    sheets = tuple((str(path), load_file(path, SheetRecord)) for path in sorted((root / "forms" / "sheets").glob("*.yaml")))
    templates = tuple((str(path), load_file(path, TemplateRecord)) for path in sorted((root / "templates").glob("*.yaml")))
    _unique([(path, one.id) for path, one in templates])
    return RuleSet(tuple(signatures), problems, fixes, sources, frameworks, keys, checks, forms, sheets, templates, changes)


def _with_groups(problems: list[tuple[str, ProblemRecord]]) -> tuple[tuple[str, ProblemRecord], ...]:
    """The problems with each silenced group spelt out as its members."""
    groups: dict[str, list[str]] = {}
    for _, one in problems:
        if one.group is not None:
            groups.setdefault(one.group, []).append(one.id)

    def spelt(one: ProblemRecord) -> ProblemRecord:
        names = [name for given in one.silences for name in groups.get(given, [given]) if name != one.id]
        return replace(one, silences=list(dict.fromkeys(names)))

    return tuple((path, spelt(one)) for path, one in problems)


def load_signatures(path: Path) -> list[LoadedSignature]:
    """The signatures of one file."""
    loaded = load_file(path, SignatureFile)
    return [LoadedSignature(loaded.program, str(path), replace(one, purpose=one.purpose or loaded.purpose)) for one in loaded.signatures]


def load_file(path: Path, shape: type[T]) -> T:
    """One YAML file as `shape`; RuleError points at the line where it is not."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise RuleError(str(path), 1, 1, f"cannot be read: {why}") from why
    if len(data) > _MAX_BYTES:
        raise RuleError(str(path), 1, 1, "is larger than a rule file can be (4 MiB)")
    try:
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            value = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError) as why:
        mark = getattr(why, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise RuleError(str(path), line, column, str(getattr(why, "problem", None) or why)) from why
    try:
        twice = _repeated_key(node, 0)
        if twice is not None:
            mark = twice.start_mark
            raise RuleError(str(path), mark.line + 1, mark.column + 1, f"the key '{twice.value}' stands here twice")
        return msgspec.convert(_with_conditions(value, node, str(path)), shape)
    except RecursionError as why:
        raise RuleError(str(path), 1, 1, "is nested deeper than a rule can be") from why
    except msgspec.ValidationError as why:
        said, line, column = _explain(str(why), node, shape)
        raise RuleError(str(path), line, column, said) from why


def _with_conditions(value: Any, node: Any, path: str) -> Any:
    """Return what a file holds with each condition as records have it. Raise RuleError where one is not right."""
    if isinstance(value, list) and isinstance(node, yaml.SequenceNode):
        return [_with_conditions(inner, at, path) for inner, at in zip(value, node.value)]
    if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
        return value
    nodes = {key.value: inner for key, inner in node.value}
    if "when" not in value:
        return {key: inner if key in _DATA else _with_conditions(inner, nodes.get(key), path) for key, inner in value.items()}
    wrong = check(value["when"])
    if wrong is not None:
        mark = nodes["when"].start_mark
        raise RuleError(path, mark.line + 1, mark.column + 1, f"when: {wrong}")
    rest = {key: _with_conditions(inner, nodes.get(key), path) for key, inner in value.items() if key != "when"}
    return {**rest, "when": tagged_condition(value["when"])}


def _repeated_key(node: Any, depth: int) -> Any:
    """The first key of a mapping that has it already; YAML itself would silently keep the last."""
    if depth > _DEEPEST:
        raise RecursionError
    children = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        keys = [key for key, _ in node.value]
        named = [key.value for key in keys if isinstance(key, yaml.ScalarNode)]
        if len(set(named)) < len(named):
            return next(key for number, key in enumerate(keys) if key.value in named[:number])
        children = [value for _, value in node.value]
    return next((found for child in children if (found := _repeated_key(child, depth + 1)) is not None), None)


def _explain(message: str, node: Any, shape: type[Any]) -> tuple[str, int, int]:
    """A validation message with the line and column of the place that it names."""
    found = _AT.match(message)
    why, path = (found["why"], found["path"]) if found else (message, None)
    at = _descend(node, path or "$")
    unknown = re.search(r"unknown field `(\w+)`", why)
    if unknown and isinstance(at, yaml.MappingNode):
        at = next((key for key, _ in at.value if key.value == unknown[1]), at)
        allowed = _fields_at(shape, path or "$")
        why = f"unknown key '{unknown[1]}'" + (f"; allowed here: {', '.join(allowed)}" if allowed else "")
    mark = at.start_mark if at is not None else None
    return why, mark.line + 1 if mark else 1, mark.column + 1 if mark else 1


def _descend(node: Any, path: str) -> Any:
    for name, index in _STEP.findall(path):
        if name and isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == name), None)
        elif index.isdigit() and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
            inner = node.value[int(index)]
        else:
            inner = None
        if inner is None:
            return node
        node = inner
    return node


def _fields_at(shape: type[Any], path: str) -> list[str]:
    """The keys that the record at `path` may have."""
    kind: Any = msgspec.inspect.type_info(shape)
    for name, index in _STEP.findall(path):
        if name and isinstance(kind, msgspec.inspect.StructType):
            kind = next((one.type for one in kind.fields if one.name == name), None)
        elif index and isinstance(kind, msgspec.inspect.ListType):
            kind = kind.item_type
        if isinstance(kind, msgspec.inspect.UnionType):
            kind = next((one for one in kind.types if isinstance(one, msgspec.inspect.StructType)), kind)
    return [one.name for one in kind.fields] if isinstance(kind, msgspec.inspect.StructType) else []


def check_setting_names(path: str, names: Iterable[str]) -> None:
    """Raise RuleError for the first of these names that is no setting of a run, with the one that was probably meant."""
    known = RunSettings.__struct_fields__
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise RuleError(path, 1, 1, f"no setting of a run is called '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))


def _unique(named: list[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for path, name in named:
        if name in first:
            raise RuleError(path, 1, 1, f"the id '{name}' is already used in {first[name]}")
        first[name] = path
