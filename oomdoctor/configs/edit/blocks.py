"""Edits of YAML and JSON: the bytes of one value, a key in a block that has none, the name of a key."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from oomdoctor.configs.edit.change import ConfigChange, Edit, Form, UnsafeEdit
from oomdoctor.configs.edit.documents import read_documents
from oomdoctor.configs.edit.lists import add_items
from oomdoctor.configs.edit.values import json_value, yaml_value
from oomdoctor.configs.readers.tree import Entry, Node, all_entries, find_deepest, find_path

_KEY = re.compile(r"[A-Za-z_][\w-]{0,150}\Z")
_STEP = "  "


class BlockStyle(Struct, frozen=True):
    """How this file writes things."""

    form: Form
    newline: str
    step: str
    """One level of indentation."""


def edit_block(text: str, form: Form, change: ConfigChange) -> Edit:
    """Return the edit that makes `change`. Raise UnsafeEdit where there is none that touches nothing else."""
    roots = read_documents(text, form)
    style = block_style(text, form, roots)
    path = find_entry(roots, change)
    if change.action == "rename":
        return _renamed(text, form, change, path)
    if path:
        return _replaced(text, form, path, change.to)
    return _inserted(text, style, roots, change)


def block_style(text: str, form: Form, roots: list[Node]) -> BlockStyle:
    """Return how a file is written."""
    return BlockStyle(form, "\r\n" if "\r\n" in text else "\n", _indentation(text, roots))


def find_entry(roots: list[Node], change: ConfigChange) -> list[Entry]:
    """Return the entries down to the setting: the one in the line that was named, else the last one."""
    paths = [path for root in roots if (path := find_path(root, change.key))]
    for path in paths:
        if path[-1].value.line == change.line:
            return path
    return paths[-1] if paths else []


def _replaced(text: str, form: Form, path: list[Entry], to: str) -> Edit:
    value = path[-1].value
    if value.kind == "alias" or any(entry.value.shared for entry in path):
        raise UnsafeEdit("the value is shared by an anchor, a tag or an alias", "这个值通过锚点、标签或别名共用")
    if value.kind == "sequence" and to[:1] == "[":
        return add_items(text, form, value, to)
    if value.kind != "scalar":
        raise UnsafeEdit("there is a block or a list here", "这里是一个块或列表")
    if value.style in ("|", ">") or "\n" in text[value.start : value.end]:
        raise UnsafeEdit("the value spans several lines", "这个值跨了多行")
    if form == "json":
        return Edit(value.start, value.end, json_value(to, value.style, value.value))
    flow = any(entry.value.style == "{" for entry in path[:-1])
    new = yaml_value(to, value.style, value.value, flow=flow)
    return Edit(value.start, value.end, f" {new}" if text[value.start - 1 : value.start] == ":" else new)


def _renamed(text: str, form: Form, change: ConfigChange, path: list[Entry]) -> Edit:
    if not path or not _KEY.match(change.to):
        raise UnsafeEdit("the key is no longer at its location", "这个键已经不在原来的位置")
    entry = path[-1]
    key_text = text[entry.start : entry.end]
    quote = key_text[:1] if key_text[:1] in "'\"" else ""
    if form == "json" and not quote:
        raise UnsafeEdit("the key has no quotes", "这个键没有引号")
    return Edit(entry.start, entry.end, f"{quote}{change.to}{quote}")


def _inserted(text: str, style: BlockStyle, roots: list[Node], change: ConfigChange) -> Edit:
    root = _document(roots, change)
    block, rest = find_deepest(root, change.key)
    names = rest.split(".")
    if block.kind != "mapping" or block.shared:
        raise UnsafeEdit("the parent is not a block of keys", "它的上一级不是键值块")
    if not all(_KEY.match(name) for name in names):
        raise UnsafeEdit("this is not a key of a config file", "这不是配置文件里的键")
    if block.style == "{":
        value = json_value(change.to, "", "") if style.form == "json" else yaml_value(change.to, "", "", flow=True)
        return into_brackets(text, style, block, names, value)
    return _below(text, style, block, names, change)


def _document(roots: list[Node], change: ConfigChange) -> Node:
    """Return the document that takes a new key: the only one, or the only one that has its block."""
    maps = [root for root in roots if root.kind == "mapping"]
    if len(maps) > 1:
        block = change.key.rpartition(".")[0] or change.after or ""
        maps = [root for root in maps if block and find_path(root, block)]
    if len(maps) != 1:
        raise UnsafeEdit("it is unclear which document in the file this key belongs to", "文件里有多个文档，无法确定该写进哪一个")
    return maps[0]


def _below(text: str, style: BlockStyle, block: Node, names: list[str], change: ConfigChange) -> Edit:
    """Return a line of its own, below a related key or at the end of the block."""
    if not block.entries:
        raise UnsafeEdit("the block is empty", "这个块是空的")
    related = (change.after or "").rpartition(".")[2]
    above = next((entry for entry in block.entries if entry.key == related), block.entries[-1])
    first = block.entries[0]
    indent = text[text.rfind("\n", 0, first.start) + 1 : first.start]
    if indent.strip(" "):
        # An item of a list, `- key: value`: the keys below stand under the first one.
        if indent.strip(" -"):
            raise UnsafeEdit("several keys are on one line", "一行里有多个键")
        indent = " " * len(indent)
    lines = [f"{indent}{style.step * depth}{name}:" for depth, name in enumerate(names)]
    lines[-1] += f" {yaml_value(change.to, '', '', flow=False)}"
    return after_line(text, style.newline, above.value.last, style.newline.join(lines))


def after_line(text: str, newline: str, at: int, lines: str) -> Edit:
    """Lines below the one in which `at` is; blank lines that belong to a value above stay below."""
    at = len(text[:at].rstrip())
    end = text.find("\n", at)
    if end < 0:
        return Edit(len(text), len(text), newline + lines)
    return Edit(end + 1, end + 1, lines + newline)


def into_brackets(text: str, style: BlockStyle, block: Node, names: list[str], value: str) -> Edit:
    """Return a key behind the last one in brackets; `value` is as it is written."""
    json = style.form == "json"
    if not block.entries:
        if text[block.start + 1 : block.end - 1].strip():
            raise UnsafeEdit("the brackets contain something other than keys", "括号里不是键值")
        return Edit(block.start + 1, block.end - 1, _nested(names, value, json, lambda _: "", ": "))
    last, first = block.entries[-1], block.entries[0]
    colon = text[last.end : last.value.start]
    colon = colon if re.fullmatch(r" ?: {0,4}", colon) else ": "
    before = text[text.rfind("\n", 0, first.start) + 1 : first.start]
    own_lines = not before.strip() and "\n" in text[block.start : first.start]
    if not own_lines:
        lead = ", " if len(colon) > 1 else ","
        return Edit(last.value.last, last.value.last, lead + _nested(names, value, json, lambda _: "", colon))
    step = before[len(_line_indent(text, block.start)) :] or style.step

    def line(depth: int) -> str:
        return style.newline + before + step * depth

    return Edit(last.value.last, last.value.last, "," + line(0) + _nested(names, value, json, line, colon))


def _nested(names: list[str], value: str, json: bool, line: Callable[[int], str], colon: str) -> str:
    """`a.b` as `"a": {"b": value}`, each level on a line of its own where `line` makes one."""
    keys = [f'"{name}"' if json else name for name in names]
    opened = "".join(f"{key}{colon}{{{line(depth)}" for depth, key in enumerate(keys[:-1], 1))
    closed = "".join(f"{line(depth)}}}" for depth in range(len(keys) - 2, -1, -1))
    return f"{opened}{keys[-1]}{colon}{value}{closed}"


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indentation(text: str, roots: list[Node]) -> str:
    """One level of indentation, as the first nested block has it."""
    for root in roots:
        for entry in all_entries(root):
            inner = entry.value.entries
            if entry.value.kind != "mapping" or not inner:
                continue
            outer, deeper = (_line_indent(text, place.start) for place in (entry, inner[0]))
            if deeper.startswith(outer) and deeper != outer:
                return deeper[len(outer) :]
    return _STEP
