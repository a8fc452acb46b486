"""The probe's answer, read field by field: it comes from another program, and a field of the wrong form counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import NODEFAULT, DecodeError, Struct, ValidationError, convert, field
from msgspec.json import decode
from msgspec.structs import FieldInfo, fields

_LONGEST = 4000

T = TypeVar("T", bound=Struct)


class PythonAnswer(Struct, frozen=True, kw_only=True):
    """What an interpreter knows of itself."""

    executable: str | None = None
    version: str | None = None
    prefix: str | None = None
    site_packages: tuple[str, ...] = ()


class CardAnswer(Struct, frozen=True, kw_only=True):
    """What torch says of one card."""

    index: int | None = None
    name: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    compute_capability: str | None = None
    unified: bool | None = None


class TorchAnswer(Struct, frozen=True, kw_only=True):
    """What torch says of itself."""

    imports: bool | None = None
    error: str | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """Name of a question -> the exception that it ended in."""
    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    cuda_available: bool | None = None
    device_count: int | None = None
    arch_list: tuple[str, ...] = ()
    cards: tuple[CardAnswer, ...] = ()
    bf16_works: bool | None = None
    bf16_claimed: bool | None = None
    fp16_works: bool | None = None
    allocator_backend: str | None = None
    allocator_settings: str | None = None
    nccl: str | None = None
    cudnn: str | None = None


class ProbeAnswer(Struct, frozen=True, kw_only=True):
    """All of it; None where the probe was not asked or said nothing of use."""

    python: PythonAnswer | None = None
    torch: TorchAnswer | None = None


class ProbeResult(Struct, frozen=True, kw_only=True):
    """What came back. `answer` is None where none did."""

    answer: ProbeAnswer | None = None
    signal: str | None = None
    """What ended it, `SIGSEGV`."""
    timed_out: bool = False
    error: str | None = None
    """The last lines of what it printed, or why it could not be started."""


def decode_answer(line: bytes) -> ProbeAnswer | None:
    """Return the answer in a line of JSON; None where there is none."""
    try:
        parts = decode(line, type=dict[str, object])
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return ProbeAnswer(python=_read(PythonAnswer, parts.get("python")), torch=_read(TorchAnswer, parts.get("torch")))


def _read(kind: type[T], value: object) -> T | None:
    """Return the fields of an answer that have the right form; texts are cut, and an empty one says nothing."""
    if not isinstance(value, dict):
        return None
    return kind(**{part.name: _field(value[part.name], part) for part in fields(kind) if value.get(part.name) not in (None, "")})


def _field(value: object, part: FieldInfo) -> object:
    try:
        return convert(value[:_LONGEST] if isinstance(value, str) else value, part.type)
    except ValidationError:
        return part.default if part.default_factory is NODEFAULT else part.default_factory()
