"""What the records of all kinds of rule files share."""

from typing import Annotated, Generic, TypeVar, Union

from msgspec import Meta, Struct

from oomdoctor.case.text import Text

Id = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$", max_length=80)]
Plain = Union[str, int, float, bool]
"""A value as YAML writes it."""


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all records: immutable, and no key that nobody reads."""


T = TypeVar("T", bound=Record)


class RecordKind(Struct, Generic[T], frozen=True):
    """A part of the pack, and the shape of its records."""

    part: str
    shape: type[T]


class TextRecord(Text, frozen=True, forbid_unknown_fields=True):
    """One text in both languages, neither of them empty."""

    en: Annotated[str, Meta(min_length=1)]
    zh: Annotated[str, Meta(min_length=1)]
