"""What goes into the evidence folder without keys, tokens and passwords: outputs, configs, the exceptions that a recorder wrote down."""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec import DecodeError
from msgspec.json import decode, encode

from oomdoctor.record.evidence_place import RANKS, put
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.redaction.redact_secrets import redact_secrets, redact_secrets_in

_MOST_BYTES = 8 << 20


def redact_bytes(data: bytes) -> bytes:
    """Return a text without secrets; what is no UTF-8 in it stays as it is."""
    return redact_secrets(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def redact_exceptions(folder: EvidenceFolder) -> None:
    """Take the secrets out of the exceptions that recorders wrote: inside the run's interpreter there is nothing that could."""
    ranks = os.path.join(folder.path or "", RANKS)
    with suppress(OSError):
        for name in os.listdir(ranks):
            if name.endswith(".exception.json"):
                _redact(os.path.join(ranks, name))


def _redact(path: str) -> None:
    with suppress(OSError, DecodeError, RecursionError):
        with open(path, "rb") as file:
            value = decode(file.read(_MOST_BYTES))
        put(path, encode(redact_secrets_in(value)))
