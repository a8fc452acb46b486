"""Rules as pages of a handbook: what it is, why, how sure, an example, what to do, what does not help, on what it stands.

The example of a page is run through the tool itself, so its figures and its explanation are those of a real report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.knowledge.book import Book
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row
from oomdoctor.report.handbook.bugs import bug_blocks
from oomdoctor.report.handbook.fix import fix_blocks
from oomdoctor.report.handbook.problem import problem_blocks
from oomdoctor.report.handbook.signature import signature_blocks
from oomdoctor.report.handbook.source import source_blocks
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.handbook import AREAS
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording


def rule_page(book: Book, name: str, wording: Wording, version: str) -> Document:
    """Return the page of an id, whatever it names. Raise KeyError where it names nothing."""
    part = book.part_of(name)
    blocks: Iterable[Block]
    if part == "problems":
        blocks = problem_blocks(book, book.problems[name], wording)
    elif part == "fixes":
        blocks = fix_blocks(book, book.fix(name), wording)
    elif part == "signatures":
        blocks = signature_blocks(book, book.signature(name), wording)
    elif part == "sources":
        blocks = source_blocks(book, book.source(name), wording)
    elif part == "bugs":
        blocks = bug_blocks(book.bug(name), wording)
    elif part == "causes":
        blocks = (block for record in book.with_cause(name) for block in problem_blocks(book, record, wording))
    elif part == "areas":
        blocks = listing_blocks(book, name, wording)
    else:
        raise KeyError(name)
    return _document(blocks, f"explain {name}", wording, version)


def contents_page(book: Book, wording: Wording, version: str) -> Document:
    """Return what the handbook holds: the areas, and what there is besides problems."""
    areas = [Row(name, _area(name, wording), wording.say(handbook.COUNT, n=len(ids))) for name, ids in book.areas.items()]
    others = [
        Row("fixes", wording.say(handbook.PART_FIXES), wording.say(handbook.COUNT, n=len(book.pack.names("fixes")))),
        Row(
            "signatures",
            wording.say(handbook.PART_SIGNATURES, n=len(book.programs)),
            wording.say(handbook.COUNT, n=len(book.pack.names("signatures"))),
        ),
        Row("sources", wording.say(handbook.PART_SOURCES), wording.say(handbook.COUNT, n=len(book.pack.names("sources")))),
        Row("bugs", wording.say(handbook.PART_BUGS), wording.say(handbook.COUNT, n=len(book.pack.names("bugs")))),
    ]
    blocks: list[Block] = [
        Heading(wording.say(handbook.PROBLEMS_BY_AREA)),
        Facts(tuple(areas)),
        Heading(wording.say(handbook.MORE)),
        Facts(tuple(others)),
        Paragraph(spans(wording.say(handbook.HINT))),
    ]
    return _document(blocks, "explain", wording, version)


def found_page(book: Book, names: Sequence[str], text: str, wording: Wording, version: str) -> Document:
    """Return the problems and fixes that speak of a text, a line each."""
    problems = [Row(name, wording.say(book.problems[name].title)) for name in names if name in book.problems]
    fixes = [Row(name, wording.say(book.fixes[name].title)) for name in names if name not in book.problems]
    blocks: list[Block] = []
    for title, rows in ((handbook.FOUND_PROBLEMS, problems), (handbook.FOUND_FIXES, fixes)):
        blocks += [Heading(wording.say(title, text=text)), Facts(tuple(rows))] if rows else []
    return _document([*blocks, Paragraph(spans(wording.say(handbook.HINT)))], f"explain {text}", wording, version)


def listing_blocks(book: Book, name: str, wording: Wording) -> Iterator[Block]:
    """Yield what one area or part holds, a line each."""
    if name in book.areas or name == "problems":
        for area in book.areas if name == "problems" else [name]:
            yield Heading(area + wording.colon + _area(area, wording))
            yield Facts(tuple(Row(identity, wording.say(book.problems[identity].title)) for identity in book.areas[area]))
    elif name == "fixes":
        yield Heading(wording.say(handbook.PART_FIXES))
        yield Facts(tuple(Row(identity, wording.say(book.fix(identity).title)) for identity in book.pack.names(name)))
    elif name == "signatures":
        yield Heading(wording.say(handbook.PART_SIGNATURES, n=len(book.programs)))
        yield Facts(tuple(Row(program, ", ".join(ids)) for program, ids in sorted(book.programs.items())))
    elif name == "bugs":
        yield Heading(wording.say(handbook.PART_BUGS))
        yield Facts(tuple(Row(identity, wording.say(book.bug(identity).bug.symptom)) for identity in book.pack.names(name)))
    else:
        yield Heading(wording.say(handbook.SOURCES))
        yield Facts(tuple(Row(identity, book.source(identity).title) for identity in book.pack.names("sources")))


def _document(blocks: Iterable[Block], about: str, wording: Wording, version: str) -> Document:
    return Document(title=f"oomdoctor {version} · {about}", blocks=tuple(blocks), lang=wording.lang)


def _area(name: str, wording: Wording) -> str:
    return wording.say(AREAS[name]) if name in AREAS else name
