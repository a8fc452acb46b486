"""YAML files of rules, read with the place of every value: a mistake is reported as file:line:column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct

from oomdoctor.errors import RuleError
from oomdoctor.opening import open_rule_file

T = TypeVar("T")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AT = re.compile(r"^(?P<why>.*?)(?: - at `(?P<path>(?:key in )?\$.*)`)?$", re.S)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TOO_DEEP = "is nested too deeply for a rule"
_MAX_BYTES = 4 << 20
_DEEPEST = 60
_LARGEST = 200_000
"""Values in a file, each alias counted as what it stands for."""


class YamlFile(Struct, frozen=True):
    """A YAML file: what it holds, and where each value stands.

    A value is named by its path: `$.when.all[0].fact`. A path that does not exist stands for the nearest value around it.
    """

    path: str
    node: Any
    """The composed tree, with marks."""
    value: Any
    """The constructed value; a file without content is None."""

    def place(self, at: str = "$") -> tuple[int, int]:
        """Return the line and column, from 1, of the value at `at`."""
        return _mark(_descend(self.node, at))

    def error(self, at: str, why: str) -> RuleError:
        """Return the error that points at the value at `at`."""
        return RuleError(self.path, *self.place(at), why)


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML file. Raises RuleError where it is not YAML, too large, too deep, or has a key twice."""
    try:
        with open_rule_file(str(path)) as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as why:
        raise RuleError(str(path), 1, 1, f"cannot be read: {why.strerror or why}") from why
    except UnicodeDecodeError as why:
        raise RuleError(str(path), 1, 1, f"cannot be read: {why}") from why
    if len(data) > _MAX_BYTES:
        raise RuleError(str(path), 1, 1, "is too large for a rule file (4 MiB)")
    try:
        _measure(str(path), text)
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            repeated = None if node is None else _repeated_key(node, 0)
            value = loader.construct_document(node) if node is not None and repeated is None else None
        finally:
            loader.dispose()
    except RecursionError as why:
        raise RuleError(str(path), 1, 1, _TOO_DEEP) from why
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(str(getattr(why, "problem", None) or why).split())
        raise RuleError(str(path), line, column, _TOO_DEEP if "nesting depth" in problem else problem) from why
    if repeated is not None:
        raise RuleError(str(path), *_mark(repeated), f"the key '{repeated.value}' appears twice")
    return YamlFile(str(path), node, value)


def _measure(path: str, text: str) -> None:
    """Raise RuleError at what is nested too deep, or grows too large by its aliases: neither is built then."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, Loader=_LOADER):
        size = 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, 1))
            if len(open_) > _DEEPEST:
                raise RuleError(path, *_mark(event), _TOO_DEEP)
            continue
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_.pop()
            sizes[anchor or ""] = size
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor or ""] = 1
        if open_ and isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
            open_[-1] = (open_[-1][0], open_[-1][1] + size)
            if open_[-1][1] > _LARGEST:
                raise RuleError(path, *_mark(event), "expands through aliases to more than a rule file may contain")


def convert(file: YamlFile, shape: type[T], value: Any, base: str = "$") -> T:
    """Return `value` as `shape`; `base` is where it stands in the file. Raises RuleError at the place that does not fit."""
    try:
        return msgspec.convert(value, shape)
    except RecursionError as why:
        raise RuleError(file.path, 1, 1, _TOO_DEEP) from why
    except msgspec.ValidationError as why:
        reason, line, column = _explain(str(why), file.node, shape, base)
        raise RuleError(file.path, line, column, reason) from why


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'X'?` for the nearest of `names`; nothing where none is near."""
    near = get_close_matches(name, sorted(set(names)), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def _repeated_key(node: Any, depth: int) -> Any:
    """Return the first key of a mapping that has it already; YAML itself would silently keep the last."""
    if depth > _DEEPEST:
        raise RecursionError
    children = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        keys = [key for key, _ in node.value]
        named = [key.value for key in keys if isinstance(key, yaml.ScalarNode)]
        if len(set(named)) < len(named):
            return next(key for number, key in enumerate(keys) if key.value in named[:number])
        children = [value for _, value in node.value]
    return next((key for child in children if (key := _repeated_key(child, depth + 1)) is not None), None)


def _explain(message: str, node: Any, shape: type[Any], base: str) -> tuple[str, int, int]:
    """Return a validation message with the line and column of the place that it names."""
    match = _AT.match(message)
    why, inner = (match["why"], match["path"]) if match else (message, None)
    path = "$" if inner is None else "$" + inner.removeprefix("key in ")[1:]
    at = _descend(node, base + path[1:])
    unknown = re.search(r"unknown field `(\w+)`", why)
    if unknown and isinstance(at, yaml.MappingNode):
        at = next((key for key, _ in at.value if key.value == unknown[1]), at)
        allowed = _fields_at(shape, path)
        why = f"unknown key '{unknown[1]}'{_allowed(unknown[1], allowed)}"
    elif (invalid := re.search(r"Invalid enum value '([^']*)'", why)) is not None:
        allowed = _choices_at(shape, path)
        why = f"unknown value '{invalid[1]}'{_allowed(invalid[1], allowed)}"
    return why, *_mark(at)


def _allowed(name: str, allowed: list[str]) -> str:
    return f"; allowed: {', '.join(allowed)}{did_you_mean(name, allowed)}" if allowed else ""


def _mark(node: Any) -> tuple[int, int]:
    mark = node.start_mark if node is not None else None
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


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


def _type_at(shape: type[Any], path: str) -> Any:
    """Return msgspec's description of the value at `path`, without the None that it may be."""
    kind: Any = msgspec.inspect.type_info(shape)
    for number, (name, index) in enumerate([("", ""), *_STEP.findall(path)]):
        if name and isinstance(kind, msgspec.inspect.StructType):
            kind = next((field.type for field in kind.fields if field.encode_name == name), None)
        elif number and isinstance(kind, msgspec.inspect.DictType):
            kind = kind.value_type
        elif index and isinstance(kind, msgspec.inspect.ListType):
            kind = kind.item_type
        if isinstance(kind, msgspec.inspect.UnionType):
            choices = (msgspec.inspect.StructType, msgspec.inspect.LiteralType, msgspec.inspect.ListType)
            kind = next((inner for inner in kind.types if isinstance(inner, choices)), kind)
    return kind


def _fields_at(shape: type[Any], path: str) -> list[str]:
    """Return the keys that the record at `path` may have."""
    kind = _type_at(shape, path)
    return [field.encode_name for field in kind.fields] if isinstance(kind, msgspec.inspect.StructType) else []


def _choices_at(shape: type[Any], path: str) -> list[str]:
    """Return the values that the field at `path` may have."""
    kind = _type_at(shape, path)
    return [str(value) for value in kind.values] if isinstance(kind, msgspec.inspect.LiteralType) else []


def place_of_word(path: str, id: str, word: str = "") -> tuple[int, int]:
    """Return the line and column of a word in the record with this id; of the record where the word does not stand as it is."""
    nodes = [node for node in _mappings(read_yaml(Path(path)).node) if _id(node) == id]
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    first, last, column = (nodes[0].start_mark.line, nodes[0].end_mark.line, nodes[0].start_mark.column) if nodes else (0, len(lines), 0)
    whole = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])") if word else None
    for number, line in enumerate(lines[first : last + 1], first):
        match = None if whole is None or line.lstrip().startswith("#") else whole.search(line)
        if match is not None:
            return number + 1, match.start() + 1
    return first + 1, column + 1


def _mappings(node: Any) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _mappings(value)


def _id(node: yaml.MappingNode) -> str | None:
    """Return the id of a record, also of one whose id follows from its names."""
    values = {key.value: value for key, value in node.value}
    if "setting" in values and "id" not in values and isinstance(values["setting"], yaml.SequenceNode):
        return f"setting-{values['setting'].value[0].value.replace('_', '-')}"
    named = values.get("id", values.get("framework") if "settings" in values or "keys" in values else None)
    return named.value if isinstance(named, yaml.ScalarNode) else None
