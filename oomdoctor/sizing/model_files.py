"""A model's shape from its config.json on this machine: a file, or a folder that has one."""

from __future__ import annotations

import os

from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.hf_config import shape_of

_MOST_BYTES = 4 << 20


def read_shape(path: str) -> Shape | None:
    """The shape in the config.json at `path`; None where there is none that can be read."""
    from msgspec import DecodeError  # noqa: PLC0415 - only where a model lies on the disk
    from msgspec.json import decode  # noqa: PLC0415

    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    if not os.path.isfile(file):
        return None
    try:
        with open(file, "rb") as opened:
            config = decode(opened.read(_MOST_BYTES))
    except (OSError, DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return shape_of(config, os.path.basename(os.path.abspath(path))) if isinstance(config, dict) else None
