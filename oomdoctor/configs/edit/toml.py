"""One setting of a TOML file: its value replaced, or its key added below its table."""

from __future__ import annotations

from oomdoctor.configs.edit.change import ConfigChange, Edit, UnsafeEdit
from oomdoctor.configs.parsed_config import plain_value
from oomdoctor.configs.readers.toml import TomlLine, toml_lines


def edit_toml(text: str, change: ConfigChange) -> Edit:
    """Return the edit that writes a setting. Raise UnsafeEdit where it would be anything but one value."""
    if change.action != "set" or change.to[:1] in ("[", "{"):
        raise UnsafeEdit("in a TOML file, only single values are changed", "TOML 文件只改单个值")
    lines = list(toml_lines(text))
    standing = [line for line in lines if line.key == change.key and not line.is_table]
    if len(standing) > 1:
        raise UnsafeEdit("the key appears several times", "这个键出现了多次")
    if standing:
        old = text[standing[0].start : standing[0].end]
        return Edit(standing[0].start, standing[0].end, _written(change.to, old))
    return _added(text, lines, change)


def _added(text: str, lines: list[TomlLine], change: ConfigChange) -> Edit:
    """Return the edit that writes a key below the last of its table, or below a table of its own."""
    table, _, name = change.key.rpartition(".")
    new = f"{name} = {_written(change.to, '')}"
    ends = "\r\n" if "\r\n" in text else "\n"
    inside = [line for line in lines if (line.key if line.is_table else line.key.rpartition(".")[0]) == table]
    if inside:
        end = inside[-1].end + len(text[inside[-1].end :].split("\n", 1)[0].rstrip("\r"))
        return Edit(end, end, f"{ends}{new}")
    if not table:
        return Edit(0, 0, f"{new}{ends}")
    before = "" if not text or text.endswith("\n") else ends
    return Edit(len(text), len(text), f"{before}{ends}[{table}]{ends}{new}{ends}")


def _written(to: str, old: str) -> str:
    """Return a value as TOML has it, in the quotes of the old one; a bare word is a text."""
    value = plain_value(to)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) and old[:1] not in ("'", '"'):
        return to
    quote = old[:1] if old[:1] in ("'", '"') else '"'
    if quote in to or "\\" in to:
        raise UnsafeEdit("the value contains quotes", "值里含有引号")
    return f"{quote}{to}{quote}"
