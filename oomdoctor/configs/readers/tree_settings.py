"""The tree of a YAML or JSON text -> its settings, each with its dotted key and its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS, plain_value
from oomdoctor.configs.readers.tree import BeyondLimits, Node


class SettingsReader:
    """Reads trees into one list of settings.

    `constants` are bare words that mean something else, `merge_key` is a key that has no block.
    """

    def __init__(self, file: str, constants: Mapping[str, Scalar], merge_key: str | None = None) -> None:
        self.written: list[WrittenSetting] = []
        self._file, self._constants, self._merge_key = file, constants, merge_key
        self._anchors: dict[str, tuple[str, tuple[WrittenSetting, ...]]] = {}
        """By anchor its path and its settings: what is behind an alias is read once, however often it is used."""

    def read(self, root: Node, path: str = "") -> None:
        """Add the settings of a root, below `path`. Raise BeyondLimits where there are more than a config can have."""
        if root.kind in ("mapping", "sequence"):
            self._collection(root, path, root.line, path)

    def _collection(self, node: Node, path: str, line: int, block: str) -> None:
        """Read a mapping or a sequence; `block` is the key of a mapping, empty where it has none."""
        if node.kind == "mapping" and block:
            self._add(path, None, line, block=True)
        first = len(self.written)
        if node.kind == "mapping":
            self._mapping(node, path)
        else:
            self._sequence(node, path, line)
        if node.closed:
            self._keep(node, path, tuple(self.written[first:]))

    def _mapping(self, node: Node, path: str) -> None:
        for entry in node.entries:
            merges = entry.key == self._merge_key
            inner = path if merges else _joined(path, entry.key[:LONGEST])
            if entry.value.kind == "scalar":
                self._add(inner, self._scalar(entry.value, entry.line), entry.line)
            elif entry.value.kind == "alias":
                self._alias(entry.value, inner)
            else:
                self._collection(entry.value, inner, entry.line, "" if merges else inner)

    def _sequence(self, node: Node, path: str, line: int) -> None:
        """Read the items of a list; one of words alone is one setting."""
        items: list[Scalar] = []
        for entry in node.entries:
            inner, value = _joined(path, entry.key), entry.value
            if value.kind == "scalar":
                items.append(self._scalar(value, value.line))
            elif value.kind == "alias":
                self._alias(value, inner)
            else:
                self._collection(value, inner, value.line, inner)
        if node.closed and path and not any(entry.value.kind in ("mapping", "sequence") for entry in node.entries):
            self._add(path, tuple(items), line)

    def _scalar(self, node: Node, line: int) -> Scalar:
        text = node.value
        value = text[:LONGEST] if node.style else self._constants[text] if text in self._constants else plain_value(text)
        self._keep(node, "", (WrittenSetting(key="", value=value, file=self._file, line=line),))
        return value

    def _keep(self, node: Node, path: str, settings: tuple[WrittenSetting, ...]) -> None:
        if node.anchor is not None:
            self._anchors[node.anchor] = (path, settings)

    def _alias(self, node: Node, path: str) -> None:
        """Add the settings of an anchor as they stand where its alias is."""
        for setting in _moved(*self._anchors.get(node.value, ("", ())), path):
            self._append(replace(setting, line=node.line))

    def _add(self, key: str, value: Scalar | tuple[Scalar, ...], line: int, *, block: bool = False) -> None:
        self._append(WrittenSetting(key=key, value=value, file=self._file, line=line, block=block))

    def _append(self, setting: WrittenSetting) -> None:
        self.written.append(setting)
        if len(self.written) > MOST_KEYS:
            raise BeyondLimits(setting.line)


def _joined(path: str, key: str) -> str:
    return (f"{path}.{key}" if path else key)[:LONGEST]


def _moved(path: str, settings: tuple[WrittenSetting, ...], to: str) -> Iterator[WrittenSetting]:
    for setting in settings:
        rest = setting.key[len(path) :].lstrip(".")
        yield replace(setting, key=(f"{to}.{rest}" if to and rest else to or rest)[:LONGEST])
