"""Options shown in a log, in the command of its run or in a dump of its arguments, as written, known or not."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST = 120
_LONGEST = 4000
_VALUE = r"[^\s\\]{1,120}"
_OPTION = re.compile(rf"(?<!\S)--?(?P<name>[A-Za-z][\w.-]{{1,60}})(?:[ =](?P<value>(?!--?[A-Za-z]){_VALUE}))?(?=\s|$)")
_ARGUMENT = re.compile(r"[(,{ ]'?(?P<name>[A-Za-z]\w{1,60})'?(?:=|: )(?P<value>'[^'\n]{0,120}'|[^\s,(){}\[\]]{1,120})")
_DUMP = ("Namespace(", "non-default args", "ServerArgs(", "EngineArgs(")
_LEAST = 2
"""Minimum number of options on a line; a sentence may mention just one. The continuation line of a command has one."""


def options_in(text: str) -> dict[str, str]:
    """Return the options in a text by name, each with its first value; an option without a value is `true`."""
    options: dict[str, str] = {}
    for name, value in _options(text):
        if len(options) >= _MOST:
            break
        options.setdefault(name.replace("-", "_"), value.strip("'\""))
    return options


def _options(text: str) -> Iterator[tuple[str, str]]:
    continues = False
    for whole in text.split("\n"):
        line = whole[:_LONGEST]
        if " -" in line or line.startswith("-"):
            on_line = list(_OPTION.finditer(line))
            if len(on_line) >= _LEAST or (on_line and (continues or line.rstrip().endswith("\\"))):
                yield from ((option["name"], option["value"] or "true") for option in on_line)
        if any(dump in line for dump in _DUMP):
            yield from ((argument["name"], argument["value"]) for argument in _ARGUMENT.finditer(line))
        continues = line.rstrip().endswith("\\")
