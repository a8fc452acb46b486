"""Notebooks: the settings in their code cells, Python, shell lines and files that cells write. Nothing is run.

A setting is named by its line in the .ipynb file itself, where each line of a cell is a string of its own.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import ConfigIssue, WrittenSetting
from oomdoctor.configs.parsed_config import MOST_BYTES, ParsedConfig, limits_exceeded
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.json import JsonTree, parse_json
from oomdoctor.configs.readers.python_script import plain_names, read_python
from oomdoctor.configs.readers.tree import Node

MOST_NOTEBOOK_BYTES = 16 << 20
"""Pictures in the output of cells make notebooks larger than other configs."""
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)[ \t]*(?P<rest>.*)")
_SHELLS = ("bash", "sh", "script")
_WRITES = ("writefile", "file")
_CAPTURES = ("capture", "time", "timeit", "prun")
"""Magics after which a cell is Python as any other."""
_SHELL_LINE = re.compile(r"(?P<indent>\s*)(?:[A-Za-z_]\w*\s*=\s*)?(?:!{1,2}|%sx\s|%system\s)(?P<command>.*)")
_LINE_MAGIC = re.compile(r"(?P<indent>\s*)(?:%|\?)(?P<rest>.*)")
_VARIABLE = re.compile(r"(?:env|set_env)\s+([A-Za-z_]\w*)\s*[=\s]\s*(.+)")
_INSERTED = re.compile(r"\{(\w{1,100})\}")
_NAMED = re.compile(r"[\w./-]{1,300}")

ReadConfig = Callable[[str, bytes], "list[ParsedConfig] | None"]


class CellLine(Struct, frozen=True):
    """A line of a cell, and the line of the notebook's file where it stands."""

    text: str
    line: int
    start: int = 0
    end: int = 0
    """Where the string that holds it stands in the file, with its quotes."""


def is_notebook(file: str) -> bool:
    """Return whether a file is a notebook by its name."""
    return file.lower().endswith(".ipynb")


def read_notebook(file: str, text: str, read_config: ReadConfig) -> list[ParsedConfig]:
    """Return the configs in the code cells of a notebook; `read_config` reads the files that cells write."""
    tree = parse_json(text)
    if tree.beyond is not None:
        return [ParsedConfig(file=file, form="dump", issues=(limits_exceeded(file, tree.beyond),))]
    python, shell, files = _sources(text, tree)
    configs: list[ParsedConfig] = []
    for name, lines in files:
        configs += _placed(read_config(name, _text(lines)) or [], file, lines)
    written = {name.rsplit("/", 1)[-1] for name, _ in files}
    names = plain_names("\n".join(line.text for line in python))
    shell = [replace(line, text=_INSERTED.sub(lambda match: str(names.get(match[1], match[0])), line.text)) for line in shell]
    configs += _placed(read_python(file, "\n".join(line.text for line in python)), file, python)
    configs += _placed(read_command_line("", "\n".join(line.text for line in shell)), file, shell)
    return [replace(config, named=tuple(name for name in config.named if name.rsplit("/", 1)[-1] not in written)) for config in configs]


def python_lines(text: str) -> list[CellLine]:
    """Return the Python of a notebook, all cells together."""
    return _sources(text, parse_json(text)).python


class _Sources(NamedTuple):
    python: list[CellLine]
    shell: list[CellLine]
    files: list[tuple[str, list[CellLine]]]
    """What cells write, by name."""


def _sources(text: str, tree: JsonTree) -> _Sources:
    """Return the lines of the code cells by what reads them."""
    sources = _Sources([], [], [])
    for cell in (list(_lines(text, source)) for root in tree.roots for source in _code_cells(root)):
        magic = _CELL_MAGIC.fullmatch(cell[0].text) if cell else None
        if magic is None or magic["name"] in _CAPTURES:
            python, shell = _divided(cell if magic is None else cell[1:])
            sources.python.extend(python)
            sources.shell.extend(shell)
        elif magic["name"] in _SHELLS:
            sources.shell.extend(cell[1:])
        elif magic["name"] in _WRITES and (named := _NAMED.search(magic["rest"].replace("-a ", ""))):
            sources.files.append((named[0], cell[1:]))
    return sources


def _code_cells(root: Node) -> Iterator[Node]:
    """Yield the sources of code cells; those of nbformat 3 stand in worksheets."""
    values = {entry.key: entry.value for entry in root.entries}
    for sheet in values["worksheets"].entries if "worksheets" in values else ():
        yield from _code_cells(sheet.value)
    for cell in values["cells"].entries if "cells" in values else ():
        inside = {entry.key: entry.value for entry in cell.value.entries}
        source = inside.get("source", inside.get("input"))
        if source is not None and "cell_type" in inside and inside["cell_type"].value == "code":
            yield source


def _lines(text: str, source: Node) -> Iterator[CellLine]:
    """Yield the lines of a cell, which is one string or a list of them."""
    for node in [entry.value for entry in source.entries] if source.kind == "sequence" else [source]:
        try:
            string = json.loads(text[node.start : node.end], strict=False)
        except ValueError:
            continue
        for part in str(string).splitlines() or [""]:
            yield CellLine(part, node.line, node.start, node.end)


def _divided(cell: Sequence[CellLine]) -> tuple[list[CellLine], list[CellLine]]:
    """Return the Python of a cell and its shell lines; a cell that is no Python gives none."""
    python: list[CellLine] = []
    shell: list[CellLine] = []
    goes_on = False
    for line in cell:
        command, magic = _SHELL_LINE.fullmatch(line.text), _LINE_MAGIC.fullmatch(line.text)
        if goes_on or command is not None:
            shell.append(line if command is None or goes_on else replace(line, text=command["command"]))
            goes_on = line.text.rstrip().endswith("\\")
            python.append(replace(line, text="" if command is None else f"{command['indent']}pass"))
        elif magic is not None:
            variable = _VARIABLE.fullmatch(magic["rest"])
            shell += [replace(line, text=f"export {variable[1]}={variable[2].strip()}")] if variable else []
            python.append(replace(line, text=f"{magic['indent']}pass"))
        else:
            python.append(line)
    return (python if _is_python(python) else []), shell


def _is_python(lines: Sequence[CellLine]) -> bool:
    try:
        ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _text(lines: Sequence[CellLine]) -> bytes:
    return "\n".join(line.text for line in lines).encode("utf-8", "replace")[:MOST_BYTES]


def _placed(configs: Sequence[ParsedConfig], file: str, lines: Sequence[CellLine]) -> Iterator[ParsedConfig]:
    """Yield the configs with the places in the notebook's file."""

    def place(line: int) -> int:
        return lines[min(line, len(lines)) - 1].line if lines else 1

    for config in configs:
        settings: list[WrittenSetting] = [replace(setting, file=file, line=place(setting.line)) for setting in config.written]
        issues: list[ConfigIssue] = [replace(issue, file=file, line=place(issue.line)) for issue in config.issues]
        yield replace(config, file=file, written=tuple(settings), issues=tuple(issues))
