"""What a collector hands back: a value, where its fields were read, and what could not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct, field

from oomdoctor.case.gap import Gap

T = TypeVar("T")


class Collected(Struct, Generic[T], frozen=True):
    """A part of an environment. Paths of `origins` are those of `Environment.origins`."""

    value: T
    origins: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
