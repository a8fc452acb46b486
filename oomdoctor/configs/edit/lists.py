"""Items that a list of a YAML or JSON file lacks; those that stand there stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.configs.edit.change import Edit, Form, UnsafeEdit
from oomdoctor.configs.edit.documents import read_documents
from oomdoctor.configs.edit.values import json_value, yaml_value
from oomdoctor.configs.readers.tree import Node

_DASH = re.compile(r" *- {1,8}\Z")


def list_items(to: str) -> list[str]:
    """Return the items of a list as it is written, `[a, b]`, as words. Raise UnsafeEdit where it is none, or holds more than words."""
    documents = read_documents(to, "yaml")
    if len(documents) != 1 or documents[0].kind != "sequence" or any(entry.value.kind != "scalar" for entry in documents[0].entries):
        raise UnsafeEdit("the value is not a list of words", "这个值不是由单个词组成的列表")
    return [entry.value.value for entry in documents[0].entries]


def add_items(text: str, form: Form, node: Node, to: str) -> Edit:
    """Return the edit that puts the missing items of `to` behind those of the list at `node`. Raise UnsafeEdit where none is safe."""
    there = [entry.value for entry in node.entries]
    items = list_items(to)
    if not items:
        raise UnsafeEdit("there is a list here", "这里是一个列表")
    if any(item.kind != "scalar" or item.shared for item in there):
        raise UnsafeEdit("this list contains more than plain words", "这里的列表不只是单个词")
    flow, missing = node.style == "{", [item for item in items if item not in [known.value for known in there]]
    return append_items(
        text, node, [json_value(item, "", "") if form == "json" else yaml_value(item, "", "", flow=flow) for item in missing]
    )


def append_items(text: str, node: Node, items: Sequence[str]) -> Edit:
    """Return the edit that puts items, as they are written, behind the last of the list at `node`. Raise UnsafeEdit where none is safe."""
    there = [entry.value for entry in node.entries]
    if node.style != "{":
        return _below(text, there[-1], items)
    if not there:
        return Edit(node.start + 1, node.end - 1, ", ".join(items))
    last = there[-1]
    between = text[there[-2].end : last.start] if len(there) > 1 else _before(text, node, last)
    return Edit(last.end, last.end, "".join(between + item for item in items))


def _before(text: str, node: Node, only: Node) -> str:
    """Return what stands between two items of a list that has one: a line of its own where that one has it."""
    lead = text[node.start + 1 : only.start]
    return f",{lead}" if "\n" in lead and not lead.strip() else ", "


def _below(text: str, last: Node, items: Sequence[str]) -> Edit:
    """Lines below the last item, each behind a dash like its own."""
    dash = text[text.rfind("\n", 0, last.start) + 1 : last.start]
    if not _DASH.match(dash) or last.style in ("|", ">") or "\n" in text[last.start : last.end]:
        raise UnsafeEdit("the last item of this list is not on one line", "这个列表的最后一项不是单独一行")
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = newline.join(dash + item for item in items)
    end = text.find("\n", last.end)
    return Edit(len(text), len(text), newline + lines) if end < 0 else Edit(end + 1, end + 1, lines + newline)
