"""What an issue says to write instead, as changes: a setting, a setting beside it, a piece of JSON, the right name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from oomdoctor.case.settings import ConfigIssue
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import ConfigChange, RefusedChange
from oomdoctor.configs.edit.edit_targets import EditTarget, EditTargets, ends_with

_SETTING = re.compile(r"(?P<key>-{0,2}[A-Za-z_][\w.-]{0,150})(?:: | )(?P<to>\S.{0,300})\Z")
_ASSIGNED = re.compile(r"(?P<key>[A-Z][A-Z0-9_]{2,80})=(?P<to>\S{1,500})\Z")
_NAME = re.compile(r"-{0,2}[A-Za-z_][\w-]{0,150}\Z")
_RENAMES = ("key-unknown", "key-gone", "key-perhaps-gone", "key-not-yet")
_MOVED = "key-under-wrong-block"
_JSON = "deepspeed"
"""Whose settings issues write as JSON."""


def replacement(issue: ConfigIssue, targets: EditTargets) -> tuple[list[ConfigChange], list[RefusedChange]]:
    """Return the changes, and what a person must do; where nothing can be proposed, the place."""
    write = issue.replacement
    if write is None:
        return [], [RefusedChange(issue.why, f"{issue.file}:{issue.line}")]
    changes = list(_changes(issue, write, targets))
    if changes:
        return changes, []
    why = Text("it needs more than one value in one place", "这不是改一处取值就能完成的")
    return [], [RefusedChange(why, write)]


def _changes(issue: ConfigIssue, write: str, targets: EditTargets) -> Iterator[ConfigChange]:
    at = EditTarget(file=issue.file, key=issue.key, line=issue.line)
    if issue.id == _MOVED:
        yield from _moved(at, write, targets)
        return
    if issue.id in _RENAMES:
        if _NAME.match(write):
            yield ConfigChange(file=at.file, key=_full(at, targets), to=write, action="rename", line=at.line)
        return
    if (variable := _ASSIGNED.match(write)) is not None:
        if variable["key"] == issue.key:
            yield ConfigChange(file=at.file, key=issue.key, to=variable["to"], line=at.line, variable=True)
        return
    if write.startswith('"'):
        yield from _json(at, write, targets)
        return
    setting = _SETTING.match(write)
    if setting is not None and (setting[0].startswith("-") or ": " in write):
        yield _beside(at, setting["key"], setting["to"], targets)


def _moved(at: EditTarget, write: str, targets: EditTargets) -> Iterator[ConfigChange]:
    """Into the block of that name, where the file has one and a plain value is to go."""
    full, (target, mark, _) = _full(at, targets), write.partition(": ")
    block = target.rpartition(".")[0]
    there = {
        setting.key
        for config in targets.configs
        for setting in config.written
        if config.file == at.file and setting.block and ends_with(setting.key, block)
    }
    if mark and len(there) == 1:
        yield ConfigChange(file=at.file, key=full, to=there.pop(), action="move", line=at.line)


def _full(at: EditTarget, targets: EditTargets) -> str:
    """Return the key with the blocks around it, which a config inside another one lacks."""
    there = targets.existing(at.key, at.file, at.line)
    return at.key if there is None else there.key


def _beside(at: EditTarget, key: str, to: str, targets: EditTargets) -> ConfigChange:
    """Return the setting itself, or one of the same block."""
    full = _full(at, targets)
    if ends_with(full, key):
        return ConfigChange(file=at.file, key=full, to=to, line=at.line)
    known = _known(at.file, key, targets)
    block, dot, _ = full.rpartition(".")
    top = "." in key or not dot or full.startswith("-")
    return ConfigChange(file=at.file, key=known or (key if top else f"{block}.{key}"), to=to, after=full)


def _known(file: str, key: str, targets: EditTargets) -> str | None:
    """Return the key as the file has it already."""
    for config in targets.configs:
        for setting in config.written:
            if config.file == file and ends_with(setting.key, key):
                return setting.key
    return None


def _json(at: EditTarget, write: str, targets: EditTargets) -> Iterator[ConfigChange]:
    """`"bf16": {"enabled": "auto"}` as settings of the DeepSpeed config, wherever it stands."""
    try:
        settings = json.loads(f"{{{write}}}")
    except ValueError:
        return
    for key, value in _leaves(settings):
        full = _full(at, targets)
        if ends_with(full, key):
            yield ConfigChange(file=at.file, key=full, to=value, line=at.line)
            continue
        block = targets.block_of(_JSON, key) if "." not in key else None
        home = targets.find(_JSON, f"{block}.{key}" if block else key)
        if home is not None:
            yield ConfigChange(file=home.file, key=home.key, to=value)


def _leaves(value: dict[str, object], path: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{path}{key}.")
        else:
            yield f"{path}{key}", str(inner).lower() if isinstance(inner, bool) else str(inner)
