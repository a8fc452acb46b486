"""Where a word of a rule stands in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from oomdoctor.knowledge.yaml_file import read_yaml


def place(path: str, id: str, word: str = "") -> tuple[int, int]:
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
