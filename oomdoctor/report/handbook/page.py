"""Rules as pages of a handbook: what it is, why, how sure, an example, what to do, what does not help, on what it stands.

The example of a page is run through the tool itself, so its figures and its explanation are those of a real report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoctor.case.text import Text
from oomdoctor.knowledge.book import Book
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row
from oomdoctor.report.handbook.fix import fix
from oomdoctor.report.handbook.parts import text_of
from oomdoctor.report.handbook.problem import problem
from oomdoctor.report.handbook.signature import signature
from oomdoctor.report.handbook.source import source
from oomdoctor.report.wording.handbook import AREAS, word
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.texts import fill


def page(book: Book, name: str, lang: str, version: str) -> Document:
    """The page of an id, whatever it names. Raises KeyError where it names nothing."""
    part = book.part_of(name)
    blocks: Iterable[Block]
    if part == "problems":
        blocks = problem(book, book.problems[name], lang)
    elif part == "fixes":
        blocks = fix(book, book.fix(name), lang)
    elif part == "signatures":
        blocks = signature(book, book.signature(name), lang)
    elif part == "sources":
        blocks = source(book, book.source(name), lang)
    elif part == "causes":
        blocks = (block for one in book.with_cause(name) for block in problem(book, one, lang))
    elif part == "areas":
        blocks = listing(book, name, lang)
    else:
        raise KeyError(name)
    return _document(blocks, f"explain {name}", lang, version)


def contents(book: Book, lang: str, version: str) -> Document:
    """What the handbook holds: the areas, and what there is besides problems."""
    areas = [Row(name, _text(AREAS.get(name), name, lang), word("count", lang, n=len(ids))) for name, ids in book.areas.items()]
    others = [
        Row("fixes", word("part-fixes", lang), word("count", lang, n=len(book.pack.names("fixes")))),
        Row("signatures", word("part-signatures", lang, n=len(book.programs)), word("count", lang, n=len(book.pack.names("signatures")))),
        Row("sources", word("part-sources", lang), word("count", lang, n=len(book.pack.names("sources")))),
    ]
    blocks: list[Block] = [
        Heading(word("areas", lang)),
        Facts(tuple(areas)),
        Heading(word("more", lang)),
        Facts(tuple(others)),
        Paragraph(spans(word("hint", lang))),
    ]
    return _document(blocks, "explain", lang, version)


def listing(book: Book, name: str, lang: str) -> Iterator[Block]:
    """What one area or part holds, a line each."""
    if name in book.areas or name == "problems":
        for area in book.areas if name == "problems" else [name]:
            yield Heading(
                f"{area}: {_text(AREAS.get(area), area, lang)}" if lang != "zh" else f"{area}：{_text(AREAS.get(area), area, lang)}"
            )
            yield Facts(tuple(Row(one, text_of(book.problems[one].title, lang)) for one in book.areas[area]))
    elif name == "fixes":
        yield Heading(word("part-fixes", lang))
        yield Facts(tuple(Row(one, text_of(book.fix(one).title, lang)) for one in book.pack.names(name)))
    elif name == "signatures":
        yield Heading(word("part-signatures", lang, n=len(book.programs)))
        yield Facts(tuple(Row(program, ", ".join(ids)) for program, ids in sorted(book.programs.items())))
    else:
        yield Heading(word("sources", lang))
        yield Facts(tuple(Row(one, book.source(one).title) for one in book.pack.names("sources")))


def _document(blocks: Iterable[Block], about: str, lang: str, version: str) -> Document:
    return Document(title=f"oomdoctor {version} · {about}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def _text(found: Text | None, otherwise: str, lang: str) -> str:
    return fill(found, lang) if found is not None else otherwise
