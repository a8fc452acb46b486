"""What every reader of configs hands on: settings with their places, and what could not be read."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from oomdoctor.case.settings import ConfigIssue, Scalar, Severity, WrittenSetting
from oomdoctor.case.text import Text

Form = Literal["yaml", "json", "toml", "command", "environment", "dump", "log", "modelfile", "job"]

MOST_BYTES = 1 << 20
MOST_KEYS = 20_000
DEEPEST = 40
LONGEST = 500
"""Characters of a value that are kept."""

_INT = re.compile(r"[-+]?\d{1,18}\Z")
_FLOAT = re.compile(r"[-+]?(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18}(?:\.\d{0,18})?[eE][-+]?\d{1,3})\Z")
_WORDS: dict[str, Scalar] = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False, "None": None}


class ParsedConfig(Struct, frozen=True, kw_only=True):
    """One config file, or one command of a script."""

    file: str
    form: Form
    written: tuple[WrittenSetting, ...] = ()
    issues: tuple[ConfigIssue, ...] = ()
    command: int = 0
    """Which command of a script it belongs to, counted from 1; 0 for a file, and for what a script sets for all."""
    program: str | None = None
    """The program of a command (`torchrun`, `vllm serve`)."""
    version: str | None = None
    """The version of the program, where an image or a pinned package says it."""
    framework: str | None = None
    reason: str | None = None
    """The key, or the program, that shows the framework."""
    imports: tuple[str, ...] = ()
    """Packages that a script in Python imports."""
    named: tuple[str, ...] = ()
    """Other config files that a command names."""


def plain_value(text: str) -> Scalar:
    """Return a bare word of a config as the value that programs make of it."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text[:LONGEST]


def form_issue(identity: str, file: str, line: int, key: str, what: Text, why: Text, *, severity: Severity = "error") -> ConfigIssue:
    """Return an issue about the form of a file, not about a setting."""
    return ConfigIssue(id=identity, severity=severity, key=key, file=file, line=max(1, line), what=what, why=why)


def duplicate_key(file: str, line: int, key: str) -> ConfigIssue:
    """Return the issue of a key that stands twice in one block: all readers keep the last and say nothing."""
    what = Text(f"`{key}` appears twice in this block; only the last one counts", f"`{key}` 在同一块里写了两次，只有最后一次生效")
    why = Text("The parser silently keeps the last value.", "解析时后写的值会覆盖先写的，并且没有提示。")
    return form_issue("key-twice", file, line, key, what, why, severity="warning")


def limits_exceeded(file: str, line: int) -> ConfigIssue:
    """Return the issue of a file that is larger or deeper than a config can be."""
    what = Text(
        "this file is too large or too deeply nested for a config; the rest was not read",
        "文件过大或嵌套过深，不像配置文件；其余部分没有读取",
    )
    why = Text("Reading stops at 1 MiB, 20,000 keys or 40 levels.", "读取上限是 1 MiB、20000 个键或 40 层嵌套。")
    return form_issue("config-beyond-limits", file, line, "", what, why, severity="warning")
