"""The values of a file that is edited, with their places; a file that is not sound has none."""

from __future__ import annotations

from oomdoctor.configs.edit.change import Form, UnsafeEdit
from oomdoctor.configs.parsed_config import MOST_KEYS
from oomdoctor.configs.readers.json import parse_json
from oomdoctor.configs.readers.tree import Node
from oomdoctor.configs.readers.yaml import parse_yaml


def read_documents(text: str, form: Form) -> list[Node]:
    """Return the value of each document. Raise UnsafeEdit where the text is not YAML or JSON, or is no config by its size."""
    return [_json_document(text)] if form == "json" else _yaml_documents(text)


def _yaml_documents(text: str) -> list[Node]:
    tree = parse_yaml(text)
    if tree.beyond is not None or tree.count > 4 * MOST_KEYS:
        raise _too_large()
    if tree.errors:
        line = tree.errors[0][0]
        raise UnsafeEdit(f"line {line} is not valid YAML", f"第 {line} 行不是合法的 YAML")
    return tree.documents


def _json_document(text: str) -> Node:
    """Return the one value of a text. What strict JSON forbids, such as a comment, is no reason to stop."""
    tree = parse_json(text)
    line = tree.invalid or (tree.roots[1].line if len(tree.roots) > 1 else None)
    if line is not None:
        raise UnsafeEdit(f"line {line} is not valid JSON", f"第 {line} 行不是合法的 JSON")
    if tree.beyond is not None or tree.count > 4 * MOST_KEYS:
        raise _too_large()
    if tree.unmatched or not tree.roots or not tree.roots[0].closed:
        raise UnsafeEdit("the brackets of this file do not match", "文件里的括号没有配对")
    return tree.roots[0]


def _too_large() -> UnsafeEdit:
    return UnsafeEdit("this file is too large or too deeply nested for a config", "文件过大或嵌套过深，不像配置文件")
