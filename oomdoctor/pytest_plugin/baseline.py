"""The file that keeps the peaks of tests."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import DecodeError, Struct, field
from msgspec.json import decode, encode, format

from oomdoctor.errors import UsageError
from oomdoctor.opening import open_file

_MOST_BYTES = 64 << 20


class Baseline(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The peaks of tests, in bytes, by their node ids."""

    version: int = 1
    device: str | None = None
    """The device that they were measured on, by its maker's name."""
    peaks: dict[str, int] = field(default_factory=dict)


def read_baseline(path: str, *, must_exist: bool) -> Baseline:
    """Return the kept peaks. Raise UsageError where the file cannot be read; `must_exist` tells whether a missing one is empty."""
    try:
        with open_file(path) as file:
            data = file.read(_MOST_BYTES)
    except FileNotFoundError:
        if must_exist:
            raise UsageError(f"{path}: no such file; --gpu-memory-write creates it") from None
        return Baseline()
    except OSError as why:
        raise UsageError(f"{path}: {why.strerror or why}") from None
    try:
        baseline = decode(data, type=Baseline)
    except DecodeError as why:
        raise UsageError(f"{path} contains no test peaks: {why}") from None
    if baseline.version != 1:
        raise UsageError(f"{path} has version {baseline.version}; this release reads version 1")
    return baseline


def write_baseline(path: str, kept: Baseline, measured: Mapping[str, int], device: str | None) -> None:
    """Write the kept peaks with those that were measured now; tests that did not run keep theirs."""
    peaks = dict(sorted({**kept.peaks, **measured}.items()))
    data = format(encode(Baseline(device=device or kept.device, peaks=peaks)), indent=1) + b"\n"
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, path)
