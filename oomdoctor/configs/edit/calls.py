"""Edits of scripts in Python and of the code cells of notebooks.

A plain value that stands in a call is replaced, or that of a name that is given once; an argument that a call lacks is written behind
another one of the same change.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from oomdoctor.configs.edit.change import ConfigChange, Edit, UnsafeEdit, plain_key
from oomdoctor.configs.parsed_config import plain_value
from oomdoctor.configs.readers.notebook import CellLine, is_notebook, python_lines

_ADAPTER_PREFIX = "lora_"
"""Before the arguments of peft's LoraConfig, as scripts with options of their own call them."""


def is_script(file: str) -> bool:
    """Return whether a file holds Python."""
    return is_notebook(file) or file.lower().endswith(".py")


def edit_call(text: str, file: str, change: ConfigChange) -> Edit:
    """Return the edit that writes a value in place of the one that stands there. Raise UnsafeEdit where it would be anything else."""
    if change.action != "set" or change.variable or (change.line is None and change.after is None):
        raise UnsafeEdit("in Python, only existing values are changed", "Python 代码里只改已经写出的值")
    lines = python_lines(text) if is_notebook(file) else [CellLine(part, number) for number, part in enumerate(text.split("\n"), 1)]
    tree = _parsed(lines)
    if change.line is None:
        value = _argument(tree, lines, change.after or "", None)
        written = f", {plain_key(change.key)}={_written(None, change.to)}"
        start = value.end_col_offset
    else:
        value = _standing(tree, lines, change)
        written, start = _written(value, change.to), value.col_offset
    if value.end_lineno != value.lineno or value.end_col_offset is None or start is None:
        raise UnsafeEdit("the value spans several lines", "这个值跨了多行")
    line = lines[value.lineno - 1]
    old = line.text.encode()
    new = (old[:start] + written.encode() + old[value.end_col_offset :]).decode()
    return _in_string(text, line, new) if is_notebook(file) else _in_line(text, line, new)


def _parsed(lines: list[CellLine]) -> ast.Module:
    try:
        return ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnsafeEdit("this is not valid Python", "这不是可以解析的 Python 代码") from None


def _argument(tree: ast.Module, lines: list[CellLine], key: str, at: int | None) -> ast.expr:
    """Return the value of the one argument of this name, in the line `at` of the file where one is named."""
    named = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg is not None and _is_meant(node.arg, key)
        and at in (None, lines[node.value.lineno - 1].line)
    ]  # fmt: skip
    if len(named) != 1:
        raise UnsafeEdit("the value does not appear exactly once", "这个值不是恰好出现一次")
    return named[0]


def _standing(tree: ast.Module, lines: list[CellLine], change: ConfigChange) -> ast.Constant:
    """Return the value that stands in the line of the change, or that of the name that stands there."""
    value = _argument(tree, lines, change.key, change.line)
    values = list(_given(tree, value.id)) if isinstance(value, ast.Name) else [value]
    if len(values) != 1 or not isinstance(values[0], ast.Constant):
        raise UnsafeEdit("the value is computed by the code", "这个值由代码计算得出")
    return values[0]


def _is_meant(argument: str, key: str) -> bool:
    name = plain_key(key)
    return argument == name or f"{_ADAPTER_PREFIX}{argument}" == name


def _given(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            yield node.value


def _written(old: ast.Constant | None, to: str) -> str:
    """Return a value as Python has it, a text where the old one is."""
    value = plain_value({"true": "True", "false": "False", "null": "None"}.get(to, to))
    if (old is not None and isinstance(old.value, str)) or isinstance(value, str):
        if to[:1] in ("[", "{") or '"' in to or "\\" in to or not to.isprintable():
            raise UnsafeEdit("the value is not a plain word", "这个值不是单个词")
        return f'"{to}"'
    return repr(value)


def _in_line(text: str, line: CellLine, new: str) -> Edit:
    start = 0
    for _ in range(line.line - 1):
        start = text.index("\n", start) + 1
    return Edit(start, start + len(line.text), new)


def _in_string(text: str, line: CellLine, new: str) -> Edit:
    """Return the edit of a line of a cell inside the string that holds it, where the string has it once."""
    string = text[line.start : line.end]
    for plain in (True, False):
        old = json.dumps(line.text, ensure_ascii=plain)[1:-1]
        if string.count(old) == 1:
            start = line.start + string.index(old)
            return Edit(start, start + len(old), json.dumps(new, ensure_ascii=plain)[1:-1])
    raise UnsafeEdit("the line appears several times in its cell", "这一行在单元格里出现了多次")
