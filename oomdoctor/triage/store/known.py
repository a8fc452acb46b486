"""What the last whole triage of a store came to: given again at once where no file and no rule has changed."""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode

from oomdoctor.triage.groups import Fleet

_NAME = "whole.json"


class Known(Struct, frozen=True):
    """The outcome of a triage, and what it depends on."""

    state: str
    """A hash over the logs, the rules and the records as they lay (changes.py)."""
    files: int
    fleet: Fleet
    problems: tuple[str, ...] = ()


_DECODER = Decoder(Known)


def read_known(folder: str) -> Known | None:
    """Return what the last triage came to; None where it did not come to its end."""
    try:
        with open(os.path.join(folder, _NAME), "rb") as file:
            return _DECODER.decode(file.read())
    except (OSError, DecodeError):
        return None


def keep_known(folder: str, known: Known) -> None:
    """Keep what a triage came to."""
    path = os.path.join(folder, _NAME)
    with open(f"{path}.new", "wb") as file:
        file.write(encode(known))
    os.replace(f"{path}.new", path)


def forget_known(folder: str) -> None:
    """Take back what was kept: from here on the rows change."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _NAME))
