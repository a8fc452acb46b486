"""A setting that stands in the wrong block of a YAML or JSON file: its line goes to the right one, with its comment."""

from __future__ import annotations

import re

from oomdoctor.configs.edit.blocks import BlockStyle, after_line, block_style, find_entry, into_brackets
from oomdoctor.configs.edit.change import ConfigChange, Edit, Form, UnsafeEdit
from oomdoctor.configs.edit.documents import read_documents
from oomdoctor.configs.readers.tree import Entry, Node, find_path

_BEHIND = re.compile(r"[ \t]*(?:#[^\r\n]*)?\r?(?=\n|\Z)")


def move_setting(text: str, form: Form, change: ConfigChange) -> Edit:
    """Return the edit that takes the setting into the block `change.to`. Raise UnsafeEdit where none is safe."""
    roots = read_documents(text, form)
    style = block_style(text, form, roots)
    path = find_entry(roots, change)
    root = next((root for root in roots if path and path[0] in root.entries), None)
    if root is None:
        raise UnsafeEdit("the key is no longer at its location", "这个键已经不在原来的位置")
    entry, parent = path[-1], path[-2].value if len(path) > 1 else root
    target = find_path(root, change.to)
    if entry.value.kind != "scalar" or any(part.value.shared for part in (*path, *target)):
        raise UnsafeEdit("more than one plain value would have to move", "要移动的不只是一个普通的值")
    if not target or target[-1].value.kind != "mapping":
        raise UnsafeEdit(f"there is no block {change.to}", f"文件里没有 {change.to} 这一块")
    if len(parent.entries) < 2:
        raise UnsafeEdit("nothing would be left in its place", "移走之后原来的块就空了")
    if style.form == "json":
        cut = _cut_of_json(text, parent, entry)
        put = into_brackets(text, style, target[-1].value, [entry.key], text[entry.value.start : entry.value.end])
    else:
        cut, put = _of_yaml(text, style, entry, target[-1].value)
    return _both(text, cut, put)


def _cut_of_json(text: str, parent: Node, entry: Entry) -> Edit:
    """Return the entry with the comma that it no longer needs."""
    at = parent.entries.index(entry)
    if at + 1 < len(parent.entries):
        cut = Edit(entry.start, parent.entries[at + 1].start, "")
        rest = text[entry.value.end : cut.end]
    else:
        cut = Edit(parent.entries[at - 1].value.last, entry.value.end, "")
        rest = text[cut.start : entry.start]
    if rest.strip() != ",":
        raise UnsafeEdit("there is a comment next to it", "它旁边有注释")
    return cut


def _of_yaml(text: str, style: BlockStyle, entry: Entry, block: Node) -> tuple[Edit, Edit]:
    """Return the line without its indentation, out of its place and into the other."""
    start, value = text.rfind("\n", 0, entry.start) + 1, entry.value
    behind = _BEHIND.match(text, value.end)
    alone = not text[start : entry.start].strip(" ") and behind is not None and "\n" not in text[entry.start : value.end]
    if not alone or value.style in ("|", ">") or behind is None:
        raise UnsafeEdit("it is not alone on its line", "它不是单独占一行")
    if block.style == "{" or not block.entries:
        raise UnsafeEdit("the other block is not written line by line", "目标块不是按行书写的")
    first = block.entries[0]
    indent = text[text.rfind("\n", 0, first.start) + 1 : first.start]
    if indent.strip(" "):
        raise UnsafeEdit("the other block is not written line by line", "目标块不是按行书写的")
    line = text[entry.start : behind.end()].rstrip()
    return Edit(start, min(behind.end() + 1, len(text)), ""), after_line(text, style.newline, block.entries[-1].value.last, indent + line)


def _both(text: str, edit: Edit, other: Edit) -> Edit:
    """Return two edits that do not overlap as one; a file that ends without an end of line goes on doing so."""
    first, second = sorted((edit, other), key=lambda edit: (edit.start, edit.end))
    if first.end > second.start:
        raise UnsafeEdit("the two locations cannot be told apart", "两个位置无法区分")
    new = first.new + text[first.end : second.start] + second.new
    ends = second.end == len(text) and not text.endswith("\n")
    return Edit(first.start, second.end, new.rstrip("\r\n") if ends else new)
