"""Changes to one file, each made alone and looked at: the file is read again, and only the wanted setting may differ."""

from __future__ import annotations

import codecs
import json
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import yaml
from msgspec import Struct

from oomdoctor.configs.edit.blocks import edit_block
from oomdoctor.configs.edit.calls import edit_call, is_script
from oomdoctor.configs.edit.change import ConfigChange, Edit, Form, RefusedChange, UnsafeEdit, plain_key
from oomdoctor.configs.edit.container import edit_container
from oomdoctor.configs.edit.lists import list_items
from oomdoctor.configs.edit.move import move_setting
from oomdoctor.configs.edit.script import edit_script
from oomdoctor.configs.edit.toml import edit_toml
from oomdoctor.configs.parsed_config import MOST_BYTES, ParsedConfig, plain_value
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.containers import is_command
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.readers.shell import Word

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CODECS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Patched(Struct, frozen=True):
    """A file after its changes."""

    data: bytes
    made: tuple[ConfigChange, ...] = ()
    already: tuple[ConfigChange, ...] = ()
    refusals: tuple[tuple[ConfigChange, RefusedChange], ...] = ()


def patch(file: str, data: bytes, changes: Sequence[ConfigChange]) -> Patched:
    """Return the bytes of `file` with as many of `changes` as can be made safely."""
    made: list[ConfigChange] = []
    already: list[ConfigChange] = []
    refusals: list[tuple[ConfigChange, RefusedChange]] = []
    # Values first: they keep the lines, by which the changes name their places.
    for change in sorted(changes, key=lambda change: change.line is None):
        if is_applied(file, data, change):
            already.append(change)
            continue
        try:
            data = _changed(file, data, change)
            made.append(change)
        except UnsafeEdit as why:
            refusals.append((change, RefusedChange(why.why, manual_line(change))))
    return Patched(data, tuple(made), tuple(already), tuple(refusals))


def is_applied(file: str, data: bytes, change: ConfigChange) -> bool:
    """Return whether the file says it already."""
    settings = _given_settings(_configs(file, data))
    if change.action != "set":
        return not any(_same_key(key, change.key) for _, key, _ in settings) and any(
            _same_key(key, change.after_it) for _, key, _ in settings
        )
    return all(_is_said(settings, key, to) for key, to in _pieces(change.key, change.to))


def _is_said(settings: Iterable[ReadSetting], key: str, to: str) -> bool:
    there = [value for _, name, value in settings if _same_key(name, key)]
    return bool(there) and all(_means(value, to) for value in there)


def _pieces(key: str, to: str) -> Iterator[tuple[str, str]]:
    """Yield the plain settings of a value: `{offload: true}` is one below `key`."""
    if to[:1] != "{":
        yield key, to
        return
    try:
        block = yaml.safe_load(to)
    except yaml.YAMLError:
        block = None
    for name, inner in block.items() if isinstance(block, dict) else ():
        yield f"{key}.{name}", str(inner).lower() if isinstance(inner, bool) else str(inner)


def values_of(file: str, data: bytes, key: str) -> list[str]:
    """Return what the file says of a key, with the type of each value."""
    return [value for _, name, value in _given_settings(_configs(file, data)) if _same_key(name, key)]


def manual_line(change: ConfigChange) -> str:
    """Return what a person would type."""
    if change.action != "set":
        return change.to if change.action == "rename" else change.after_it
    if change.variable:
        return f"export {change.key}={change.to}"
    if change.key.startswith("-"):
        return f"{change.key} {change.to}".rstrip()
    return f"{change.key}: {change.to}"


def form_of(configs: Sequence[ParsedConfig]) -> Form | None:
    """Return how the file is written; None for one that is not edited."""
    forms = {config.form for config in configs}
    if forms & {"command", "environment"} and forms <= {"command", "environment", "job"}:
        return "command"
    only = forms.pop() if len(forms) == 1 else None
    return only if only in ("yaml", "json", "toml") else None


def _changed(file: str, data: bytes, change: ConfigChange) -> bytes:
    """Return the bytes with one change. Raise UnsafeEdit where it would touch anything else."""
    if len(data) > MOST_BYTES:
        raise UnsafeEdit("the file is too large for a config", "文件过大，不像配置文件")
    mark = next((form for form in _MARKS if data.startswith(form)), b"")
    codec = _CODECS.get(mark, "utf-8")
    try:
        text = data[len(mark) :].decode(codec, "strict" if codec != "utf-8" else "surrogateescape")
    except UnicodeDecodeError as why:
        raise UnsafeEdit("the file is damaged UTF-16", "文件的 UTF-16 编码已损坏") from why
    before = _configs(file, data)
    form: Form | Literal["container", "python"] | None = "container" if _is_of_container(before, change) else form_of(before)
    form = "python" if is_script(file) else form
    edit = _edit(text, file, form, change)
    after = edit.apply(text)
    if _is_json(text) and not _is_json(after):
        raise UnsafeEdit("it would no longer be valid JSON", "改完之后不再是合法的 JSON")
    changed = mark + after.encode(codec, "surrogateescape" if codec == "utf-8" else "strict")
    _look_again(before, _configs(file, changed), change)
    return changed


def _edit(text: str, file: str, form: Form | Literal["container", "python"] | None, change: ConfigChange) -> Edit:
    if form == "command":
        return edit_script(text, file, change, lambda words: _runs(words, change))
    if form == "container":
        return edit_container(text, file, change, lambda words: _runs(words, change))
    if form == "python":
        return edit_call(text, file, change)
    if form is None:
        raise UnsafeEdit("this is neither YAML, JSON, TOML nor a shell script", "这不是 YAML、JSON、TOML 或 shell 脚本")
    if change.variable:
        raise UnsafeEdit("an environment variable is set in the shell, not in this file", "环境变量要在 shell 里设置，不能写进这个文件")
    if form == "toml":
        return edit_toml(text, change)
    return move_setting(text, form, change) if change.action == "move" else edit_block(text, form, change)


def _is_of_container(configs: Sequence[ParsedConfig], change: ConfigChange) -> bool:
    """Return whether a change is of a command that stands in a YAML file."""
    forms = {config.form for config in configs}
    return forms >= {"yaml", "command"} and change.program is not None and any(config.program == change.program for config in configs)


def _is_json(text: str) -> bool:
    """Return whether the strict reader of the frameworks takes it; ours takes more."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _runs(words: Sequence[Word], change: ConfigChange) -> bool:
    """Return whether a command is the one that takes new options."""
    configs = read_command_line("", " ".join(_quoted(word.text) for word in words))
    programs = [config.program for config in configs if config.form == "command" and config.program]
    return change.program in programs if change.program is not None else bool(programs)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "") + "'"


def _configs(file: str, data: bytes) -> list[ParsedConfig]:
    return read_config(file, data) or []


ReadSetting = tuple[str, str, str]
"""A program, a key, a value with its type."""


def _given_settings(configs: Sequence[ParsedConfig]) -> Counter[ReadSetting]:
    """Return what the configs say, however often, wherever."""
    return Counter(
        (config.program or "", given.key, repr(given.value))
        for config in configs
        for given in config.written
        # What a container runs is there twice: as a value of its file, and read as a command.
        if config.form != "yaml" or not is_command(given.key)
    )


def _look_again(before: Sequence[ParsedConfig], after: Sequence[ParsedConfig], change: ConfigChange) -> None:
    """Raise UnsafeEdit unless the two differ in the wanted setting alone, and that is as it should be."""
    old, new = _given_settings(before), _given_settings(after)
    gone, come = old - new, new - old
    wrong = Counter(issue.id for config in after for issue in config.issues) - Counter(
        issue.id for config in before for issue in config.issues
    )
    allowed = [_same_key, _around, _inside]
    names = {change.key, change.after_it}
    others = [key for _, key, _ in (gone + come) if not any(fits(key, name) for fits in allowed for name in names)]
    programs = {program for program, _, _ in come}
    if wrong or others or len(programs) > 1:
        raise UnsafeEdit("the change would affect more than this setting", "这处改动会牵连到其他设置")
    read = [value for _, key, value in come if _same_key(key, change.after_it)]
    if change.action == "set" and change.to[:1] != "{" and not any(_means(value, change.to) for value in read):
        raise UnsafeEdit("the file would not have this value after the change", "改完之后文件里读到的不是这个值")
    if change.action != "set" and (not read or read != [value for _, key, value in gone if _same_key(key, change.key)]):
        raise UnsafeEdit("the file would not have this value after the change", "改完之后文件里读到的不是这个值")


def _same_key(key: str, other: str) -> bool:
    return plain_key(key) == plain_key(other)


def _around(key: str, other: str) -> bool:
    """Return whether `key` is a block around `other`."""
    return plain_key(other).startswith(f"{plain_key(key)}.")


def _inside(key: str, other: str) -> bool:
    return plain_key(key).startswith(f"{plain_key(other)}.")


def _means(value: str, to: str) -> bool:
    """Return whether what was read (its repr) is what was to be written; of a list, whether it has the items."""
    if to[:1] == "[":
        return _has_items(value, to)
    constants = {"null": None, "~": None}
    expected = constants[to] if to in constants else True if not to else plain_value(to)
    return value in (repr(expected), repr(to))


def _has_items(value: str, to: str) -> bool:
    try:
        items = [plain_value(item) for item in list_items(to)]
    except UnsafeEdit:
        return False
    there = literal_eval(value) if value[:1] == "(" else ()
    return there == () if not items else {repr(item) for item in items} <= {repr(item) for item in there}
