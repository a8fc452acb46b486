"""The last run whose news was sent to an address: news that could not be sent is sent the next time, and nothing is sent twice."""

from __future__ import annotations

import hashlib
import os

from msgspec import DecodeError
from msgspec.json import decode, encode

from oomdoctor.triage.store.known_groups import KnownGroups
from oomdoctor.triage.store.sealed import keep_sealed, read_sealed

_FILE = "told.json"


def told_until(store: str, known: KnownGroups, address: str) -> int:
    """Return the last run whose news was sent to an address; at first contact, all runs but the last count as sent.

    That is kept, so that what cannot be sent now and what is new until the next time are due then. Raise OSError.
    """
    told = _read(store)
    until = told.get(_name(address))
    if until is None or until > known.run:  # the second case if groups.json was lost
        until = known.run - bool(known.news)
        _keep(store, {**told, _name(address): until})
    return until


def note_told(store: str, known: KnownGroups, address: str) -> None:
    """Record that an address was sent all news. Raise OSError."""
    _keep(store, {**_read(store), _name(address): known.run})


def _read(store: str) -> dict[str, int]:
    data = read_sealed(os.path.join(store, _FILE))
    try:
        return {} if data is None else decode(data, type=dict[str, int])
    except DecodeError:
        return {}


def _keep(store: str, told: dict[str, int]) -> None:
    keep_sealed(os.path.join(store, _FILE), encode(told))


def _name(address: str) -> str:
    """Return a stand-in for an address, whose path may be a secret."""
    return hashlib.blake2b(address.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
