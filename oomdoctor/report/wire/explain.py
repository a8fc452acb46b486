"""Convert the records behind a page of the handbook to `oomdoctor/explain/v1`: additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from oomdoctor.knowledge.book import PARTS, Book

Tag = Literal["oomdoctor/explain/v1"]


class ExplanationV1(Struct, frozen=True, kw_only=True):
    """The records of an id, and the fixes that they name."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    id: str | None
    """What was asked for; null for the list of all areas."""
    part: str | None
    """Where the id stands: `problems`, `fixes`, `signatures`, `sources`, `bugs`, `causes` or `areas`."""
    records: tuple[dict[str, object], ...]
    """The rules as their files write them."""
    fixes: tuple[dict[str, object], ...] | UnsetType = UNSET
    areas: dict[str, tuple[str, ...]] | UnsetType = UNSET
    """The ids of the problems of each area, where nothing was asked for."""


def convert_pages(book: Book, name: str | None, version: str) -> ExplanationV1:
    """Return the records behind a page: those of the id, and the fixes that they name."""
    if name is None:
        return ExplanationV1(schema="oomdoctor/explain/v1", oomdoctor=version, id=None, part="areas", records=(), areas=dict(book.areas))
    rules = _rules(book, name)
    fixes = dict.fromkeys(fix for part, id_ in rules if part == "problems" for fix in book.problems[id_].fixes)
    return ExplanationV1(
        schema="oomdoctor/explain/v1",
        oomdoctor=version,
        id=name,
        part=book.part_of(name),
        records=tuple(book.as_json(part, id_) for part, id_ in rules),
        fixes=tuple(book.as_json("fixes", fix) for fix in fixes if fix in book.fixes),
    )


def _rules(book: Book, name: str) -> list[tuple[str, str]]:
    """Return (part, id) of the rules that a name stands for."""
    part = book.part_of(name)
    if name in PARTS:
        return [(name, id_) for id_ in book.pack.names(name)]
    if part in PARTS:
        return [(part, name)]
    problems = [record.id for record in book.with_cause(name)] if part == "causes" else book.areas.get(name, ())
    return [("problems", id_) for id_ in problems]
