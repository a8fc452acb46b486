"""Lines with a checksum, so that data changed by a disk, a copy or a person is detected."""

from __future__ import annotations

import os
import zlib

_WIDTH = 9
"""Eight digits and a space."""


def seal(data: bytes) -> bytes:
    """Return data with its checksum in front."""
    return b"%08x %b" % (zlib.crc32(data), data)


def unseal(line: bytes) -> bytes | None:
    """Return the data of a sealed line; None if it is not what was written."""
    data = line[_WIDTH:]
    return data if line[:_WIDTH] == b"%08x " % zlib.crc32(data) else None


def keep_sealed(path: str, data: bytes) -> None:
    """Write one sealed line to a file, whole or not at all. Raise OSError."""
    with open(f"{path}.new", "wb") as file:
        file.write(seal(data))
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def read_sealed(path: str) -> bytes | None:
    """Return the data kept in a file, without a seal in the first versions; None if there is none, or it was damaged."""
    try:
        with open(path, "rb") as file:
            line = file.read()
    except OSError:
        return None
    return line if line.startswith(b"{") else unseal(line)
