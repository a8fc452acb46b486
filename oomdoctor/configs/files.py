"""Config files at the edge: those that were named, and those that they name and that lie beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from oomdoctor.case.gap import Gap
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.readers.read import largest, read_config
from oomdoctor.opening import open_file

Version = Callable[[str], str]
_NAMING = re.compile(r"(?:^|[._-])(?:deepspeed|deepspeed_config_file|config_file|config|fsdp_config|use_config_file)\Z")
_CONFIG = re.compile(r"[^\s\0]{1,300}\.(?:json|ya?ml|toml)\Z", re.IGNORECASE)
_MOST = 32
"""Files that are read in all."""


def read_files(paths: Sequence[str], version: Version | None = None) -> tuple[list[ParsedConfig], list[Gap]]:
    """Return the configs of the files in `paths` and of those beside them that they name, and what could not be read.

    `version` says from where a path is read: itself, or a copy of what it was.
    """
    configs: list[ParsedConfig] = []
    gaps: list[Gap] = []
    todo, done = list(paths), {os.path.basename(path) for path in paths}
    while todo and len(done) <= _MOST:
        path = todo.pop(0)
        read, gap = _read(path, path if version is None else version(path))
        configs += read
        gaps += [gap] if gap else []
        for named in _named(read):
            if os.path.basename(named) in done:
                continue
            done.add(os.path.basename(named))
            beside = _beside(path, named)
            if beside is None:
                gaps.append(Gap(what=named, why="a config that another one names", how="give this file too"))
            else:
                todo.append(beside)
    return configs, gaps


def _read(path: str, place: str) -> tuple[list[ParsedConfig], Gap | None]:
    try:
        if not os.path.isfile(place):
            return [], Gap(
                what=path, why="no such file" if not os.path.exists(place) else "a folder" if os.path.isdir(place) else "not a file"
            )
        with open_file(place) as file:
            data = file.read(largest(path) + 1)
    except (OSError, ValueError) as why:
        return [], Gap(what=path, why=(getattr(why, "strerror", None) or str(why)).lower())
    configs = read_config(path, data)
    return (configs, None) if configs is not None else ([], Gap(what=path, why="a binary file, not a config"))


def _named(configs: Sequence[ParsedConfig]) -> Iterator[str]:
    """Yield the config files that configs name, in a command or as the value of a key that takes one."""
    for config in configs:
        yield from config.named
        for setting in config.written:
            if isinstance(setting.value, str) and _NAMING.search(setting.name) and _CONFIG.match(setting.value):
                yield setting.value


def _beside(path: str, named: str) -> str | None:
    """Return the file of that name in the folder of `path`, or below it; nothing outside of that folder is opened."""
    folder = os.path.dirname(path)
    named = named.replace("\\", "/")
    inside = [] if named.startswith("/") or ".." in named.split("/") or ":" in named else [named]
    candidates = [os.path.join(folder, name) for name in (*inside, named.rsplit("/", 1)[-1])]
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)
