"""A model's shape from its config.json on this machine: a file, or a folder that has one."""

from __future__ import annotations

import os
from typing import Any

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hf_config import shape_of

_MOST_BYTES = 4 << 20


def read_shape(path: str) -> Shape | None:
    """The shape in the config.json at `path`; None where there is none that can be read, or of a family that is not known."""
    config = read_config(path)
    return None if config is None else shape_of(config, os.path.basename(os.path.abspath(path)))


def read_config(path: str) -> dict[str, Any] | None:
    """The config.json at `path`, the file itself or its folder; None where there is none that can be read."""
    from json import loads  # noqa: PLC0415 - only where a model lies on the disk; it reads Infinity, which Mamba's files have

    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    if not os.path.isfile(file):
        return None
    try:
        with open(file, "rb") as opened:
            config = loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None
