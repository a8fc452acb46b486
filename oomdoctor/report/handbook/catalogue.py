"""The rules as Markdown pages for docs/catalogue/: problems, fixes, messages and sources, each in English and Chinese.

The pages are made from the pack alone, so they say what the tool says; a test compares them with what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.text import Text
from oomdoctor.findings.template import FIGURE, general_template
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.fix import FixRecord, NotThisRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.records.source import Claim, SourceRecord
from oomdoctor.report.document import Row
from oomdoctor.report.handbook.fix import balance, settings, typed
from oomdoctor.report.handbook.parts import versions
from oomdoctor.report.render.markdown import code, escaped
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import catalogue as texts
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.handbook import AREAS, KINDS
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording

LANGUAGES = ("en", "zh")
_COMMAND = "python -m oomdoctor rules catalogue docs/catalogue"
_EXAMPLE = 110

TITLES = {
    "problems": Text("Problems: what a failure means", "问题：失败说明什么"),
    "fixes": Text("Fixes: what to change", "措施：改什么"),
    "signatures": Text("Recognized messages", "能识别的报错"),
    "sources": Text("Sources the rules are based on", "出处：规则的依据"),
}


def catalogue(book: Book) -> dict[str, str]:
    """Return the pages by file name."""
    makers = {"problems": _problems, "fixes": _fixes, "signatures": _signatures, "sources": _sources}
    return {
        f"{part}.{wording.lang}.md": _page(part, make(book, wording), wording)
        for part, make in makers.items()
        for wording in map(Wording, LANGUAGES)
    }


def _page(part: str, lines: Iterable[str], wording: Wording) -> str:
    head = [f"# {wording.say(TITLES[part])}", wording.say(texts.MADE, command=_COMMAND)]
    text = "\n\n".join(lines) + "\n"
    figures = [wording.say(texts.FIGURES, figure=FIGURE)] if FIGURE in text else []
    return "\n\n".join([*head, *figures, text])


def _problems(book: Book, wording: Wording) -> Iterator[str]:
    for area, names in book.areas.items():
        yield f"## {area}" + (wording.colon + wording.say(AREAS[area]) if area in AREAS else "")
        for name in names:
            yield from _problem(book, book.problems[name], wording)


def _problem(book: Book, record: ProblemRecord, wording: Wording) -> Iterator[str]:
    about = [wording.say(handbook.CAUSE, name=record.cause)] if record.cause else []
    yield f"### {record.id}"
    yield f"**{escaped(bare(wording.say(record.title)))}**  \n" + escaped(
        " · ".join([wording.say(handbook.CONFIDENCE[record.alone.value]), *about])
    )
    yield prose(wording.say(general_template(record.why)))
    fixes = [fix_link(fix, wording) for fix in book.fixes_of(record)]
    if fixes:
        yield f"{wording.say(texts.DO)}{wording.colon}{wording.comma.join(fixes)}{wording.sentence('')}"
    yield from not_this_lines(book.not_for(record.id), wording)
    cited = dict.fromkeys(cite.source for cite in record.cites)
    if cited:
        yield (
            f"{wording.say(texts.SOURCES)}{wording.colon}"
            + wording.comma.join(_link("sources", fix, fix, wording) for fix in cited)
            + wording.sentence("")
        )


def _fixes(book: Book, wording: Wording) -> Iterator[str]:
    for name in book.pack.names("fixes"):
        yield from _fix(book, book.fix(name), wording)


def _fix(book: Book, record: FixRecord, wording: Wording) -> Iterator[str]:
    yield f"## {record.id}"
    yield f"**{escaped(bare(wording.say(record.title)))}**"
    yield prose(wording.say(record.how))
    yield "\n".join(f"- {escaped(row.label)}{wording.colon}{prose(row.value)}" for row in balance(record, wording))
    if record.command:
        yield f"{wording.say(texts.SHELL)}{wording.colon}{code(record.command)}"
    if record.settings:
        yield settings_table(record, wording)
    if record.typed:
        yield typed_lines(record, wording)
    yield from not_this_lines(record.not_this, wording)
    helped = [problem_link(problem, wording) for problem in book.with_fix(record.id)]
    if helped:
        yield f"{wording.say(texts.FOR)}{wording.colon}{wording.comma.join(helped)}{wording.sentence('')}"


def settings_table(record: FixRecord, wording: Wording, *, most: int | None = None) -> str:
    """Return the keys of a fix in every framework, as a table; `most` is how many rows at most."""
    rows = [_setting(row) for row in settings(record.settings, wording)]
    return _table([texts.FRAMEWORK, texts.KEY, texts.VERSIONS], rows[:most], wording)


def typed_lines(record: FixRecord, wording: Wording) -> str:
    """Return what is typed where no program is known, each line with who understands it."""
    lines = wording.comma.join(
        code(row.value) + (f" {row.note}" if row.note else "") + (wording.aside(escaped(row.label)) if row.label else "")
        for row in typed(record.typed, wording)
    )
    return f"{wording.say(handbook.TYPED)}{wording.colon}{lines}"


def problem_link(record: ProblemRecord, wording: Wording) -> str:
    """Return the title of a problem that leads to its entry."""
    return _link("problems", record.id, wording.say(record.title), wording)


def fix_link(record: FixRecord, wording: Wording) -> str:
    """Return the title of a fix that leads to its entry."""
    return _link("fixes", record.id, wording.say(record.title), wording)


def _setting(row: Row) -> list[str]:
    return [escaped(row.label), code(row.value).replace("|", "\\|"), escaped(row.note)]


def not_this_lines(advice: Sequence[NotThisRecord], wording: Wording) -> Iterator[str]:
    """Yield advice that does not help, with the reason; nothing where there is none."""
    if advice:
        reasons = [(wording.say(record.advice), wording.say(general_template(record.why))) for record in advice]
        lines = [f"- **{escaped(wording.sentence(says))}**{wording.blank}{prose(why)}" for says, why in reasons]
        yield f"{wording.say(texts.NOT)}{wording.colon.rstrip()}\n\n" + "\n".join(lines)


def _signatures(book: Book, wording: Wording) -> Iterator[str]:
    for program, names in sorted(book.programs.items()):
        yield f"## {program}"
        yield _table(
            [texts.MESSAGE, texts.KIND, texts.VERSIONS, texts.EXAMPLE],
            [_signature(book.signature(name), wording) for name in names],
            wording,
        )


def _signature(record: SignatureRecord, wording: Wording) -> list[str]:
    meaning = wording.say(texts.CONTEXT if record.kind == "context" else KINDS[record.kind])
    example = clean_line(record.examples[0].text, _EXAMPLE) if record.examples else ""
    shown = code(example).replace("|", "\\|") if example else ""
    return [code(record.id), escaped(meaning), escaped(versions(record.since, record.until, wording)), shown]


def _sources(book: Book, wording: Wording) -> Iterator[str]:
    for name in book.pack.names("sources"):
        yield from _source(book, book.source(name), wording)


def _source(book: Book, record: SourceRecord, wording: Wording) -> Iterator[str]:
    yield f"## {record.id}"
    yield escaped(record.title) + (f" <{record.url}>" if record.url else "")
    if record.claims:
        yield _table([texts.CLAIM, texts.VERDICT, texts.CORRECTION], [_claim(claim, wording) for claim in record.claims], wording)
    citing = [_link(part, name, name, wording) for part, name in book.citing(record.id)]
    if citing:
        yield f"{wording.say(texts.CITED)}{wording.colon}{wording.comma.join(citing)}{wording.sentence('')}"


def _claim(claim: Claim, wording: Wording) -> list[str]:
    correction = escaped(wording.say(claim.correction)) if claim.correction is not None else ""
    return [f"{claim.id} {escaped(wording.say(claim.says))}", wording.say(handbook.VERDICT[claim.verdict]), correction]


def _table(heads: Sequence[Text], rows: Iterable[Sequence[str]], wording: Wording) -> str:
    lines = [[wording.say(head) for head in heads], ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _link(part: str, name: str, title: str, wording: Wording) -> str:
    return f"[{escaped(bare(title))}]({part}.{wording.lang}.md#{name.replace('.', '')})"


def prose(text: str) -> str:
    """Escape a text of ours in which `backquotes` mark what is to be typed."""
    pieces = text.split("`")
    return "".join(code(piece) if at % 2 else escaped(piece) for at, piece in enumerate(pieces)) if len(pieces) % 2 else escaped(text)
