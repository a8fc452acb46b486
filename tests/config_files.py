"""Configs as text -> the training config, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from oomdoctor.case.settings import RunConfig
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.knowledge.pack import Pack, load_pack


@cache
def pack() -> Pack:
    return load_pack()


def read(files: Mapping[str, str | bytes], known: Mapping[str, str | int | float | bool | None] | None = None) -> RunConfig:
    """The config of files that are given as text; `known` are facts of the log."""
    sheets = [sheet for name, text in files.items() for sheet in read_config(name, text.encode() if isinstance(text, str) else text) or []]
    found = resolve_config(sheets, [], dict(known or {}), pack())
    return found if found is not None else RunConfig()


def complaints(files: Mapping[str, str | bytes], known: Mapping[str, str | int | float | bool | None] | None = None) -> list[str]:
    """The ids of what is wrong, the worst first."""
    return [one.id for one in read(files, known).issues]
