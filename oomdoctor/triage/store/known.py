"""The result of the last complete triage of a store, returned at once if no file and no rule has changed."""

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
    """The result of a triage, and what it depends on."""

    state: str
    """A hash of the logs, rules and records at the time (changes.py)."""
    parts: str
    """A hash of the parts: it differs if one was damaged, lost or restored since."""
    files: int
    fleet: Fleet
    problems: tuple[str, ...] = ()


_DECODER = Decoder(Known)


def read_known(folder: str) -> Known | None:
    """Return the result of the last triage; None if it did not finish."""
    data = read_sealed(os.path.join(folder, _NAME))
    try:
        return None if data is None else _DECODER.decode(data)
    except DecodeError:  # written by another version
        return None


def keep_known(folder: str, known: Known) -> None:
    """Keep the result of a triage."""
    keep_sealed(os.path.join(folder, _NAME), encode(known))


def digest_of_parts(folder: str) -> str:
    """Return a hash of the contents of the parts in a folder. Raise OSError."""
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
    """Discard what was kept: from here on, the rows change."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _NAME))
