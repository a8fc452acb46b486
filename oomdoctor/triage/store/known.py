"""What the last whole triage of a store came to: given again at once where no file and no rule has changed."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode

from oomdoctor.triage.groups import Fleet
from oomdoctor.triage.store.sealed import keep_sealed, read_sealed

_NAME = "whole.json"


class Known(Struct, frozen=True):
    """The outcome of a triage, and what it depends on."""

    state: str
    """A hash over the logs, the rules and the records as they lay (changes.py)."""
    parts: str
    """A hash over the parts: another one where one of them was damaged, lost or put back since."""
    files: int
    fleet: Fleet
    problems: tuple[str, ...] = ()


_DECODER = Decoder(Known)


def read_known(folder: str) -> Known | None:
    """Return what the last triage came to; None where it did not come to its end."""
    data = read_sealed(os.path.join(folder, _NAME))
    try:
        return None if data is None else _DECODER.decode(data)
    except DecodeError:  # of another version
        return None


def keep_known(folder: str, known: Known) -> None:
    """Keep what a triage came to."""
    keep_sealed(os.path.join(folder, _NAME), encode(known))


def digest_of_parts(folder: str) -> str:
    """Return a hash over what stands in the parts of a folder. Raise OSError."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".rows")):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                data = file.read()
            digest.update(f"{name} {len(data)} ".encode())
            digest.update(data)
    return digest.hexdigest()


def forget_known(folder: str) -> None:
    """Take back what was kept: from here on the rows change."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _NAME))
