"""The rules as Markdown pages for docs/catalogue/: problems, fixes, messages and sources, each in English and Chinese.

The pages are made from the pack alone, so they say what the tool says; a test compares them with what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.text import Text
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.fix import FixRecord, NotThisRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.records.source import Claim, SourceRecord
from oomdoctor.report.document import Row
from oomdoctor.report.handbook.fix import balance, settings
from oomdoctor.report.handbook.parts import diagnosed_example, text_of, versions, why_not
from oomdoctor.report.handbook.problem import explained
from oomdoctor.report.render.markdown import code, escaped
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.handbook import AREAS, KINDS, word
from oomdoctor.report.wording.phrases import bare, blank, comma, stopped
from oomdoctor.report.wording.texts import fill

LANGUAGES = ("en", "zh")
_COMMAND = "python -m oomdoctor rules catalogue docs/catalogue"
_EXAMPLE = 110

TITLES = {
    "problems": Text("Problems: what a failure means", "问题：失败说明什么"),
    "fixes": Text("Fixes: what to change", "措施：改什么"),
    "signatures": Text("Messages that are recognised", "能识别的报错"),
    "sources": Text("Sources: what the rules stand on", "出处：规则的依据"),
}
WORDS = {
    "made": Text(
        "Made from `rules/` by `{command}`; change the rules, not this page.", "由 `{command}` 从 `rules/` 生成；要改请改规则，不要改本页。"
    ),
    "do": Text("What to do", "怎么办"),
    "not": Text("What does not help", "没有用的做法"),
    "sources": Text("Sources", "出处"),
    "for": Text("Helps with", "适用于"),
    "framework": Text("framework", "框架"),
    "key": Text("key and value", "参数和取值"),
    "versions": Text("versions", "版本"),
    "message": Text("message", "报错"),
    "kind": Text("what it means", "说明什么"),
    "example": Text("example", "例子"),
    "claim": Text("claim", "说法"),
    "verdict": Text("verdict", "结论"),
    "correction": Text("what is so", "实际情况"),
    "cited": Text("Cited by", "被引用于"),
    "shell": Text("In the shell", "在终端执行"),
    "context": Text("Tells about the run, no failure.", "只说明运行情况，不是失败。"),
}


def catalogue(book: Book) -> dict[str, str]:
    """The pages by file name."""
    makers = {"problems": _problems, "fixes": _fixes, "signatures": _signatures, "sources": _sources}
    return {f"{part}.{lang}.md": _page(part, make(book, lang), lang) for part, make in makers.items() for lang in LANGUAGES}


def _page(part: str, lines: Iterable[str], lang: str) -> str:
    head = [f"# {fill(TITLES[part], lang)}", fill(WORDS["made"], lang, command=_COMMAND)]
    return "\n\n".join([*head, *lines]) + "\n"


def _problems(book: Book, lang: str) -> Iterator[str]:
    for area, names in book.areas.items():
        yield f"## {area}" + (_colon(lang) + fill(AREAS[area], lang) if area in AREAS else "")
        for name in names:
            yield from _problem(book, book.problems[name], lang)


def _problem(book: Book, record: ProblemRecord, lang: str) -> Iterator[str]:
    about = [word("cause", lang, name=record.cause)] if record.cause else []
    yield f"### {record.id}"
    yield f"**{escaped(bare(text_of(record.title, lang)))}**  \n" + escaped(
        " · ".join([word(f"confidence-{record.confidence}", lang), *about])
    )
    yield _prose(explained(record, diagnosed_example(book, record.examples[0]), lang))
    fixes = [_link("fixes", one.id, text_of(one.title, lang), lang) for one in book.fixes_of(record)]
    if fixes:
        yield f"{fill(WORDS['do'], lang)}{_colon(lang)}{comma(lang).join(fixes)}{stopped('', lang)}"
    yield from _not_this(book, book.not_for(record.id), lang)
    cited = dict.fromkeys(cite.source for cite in record.cites)
    if cited:
        yield (
            f"{fill(WORDS['sources'], lang)}{_colon(lang)}"
            + comma(lang).join(_link("sources", one, one, lang) for one in cited)
            + stopped("", lang)
        )


def _fixes(book: Book, lang: str) -> Iterator[str]:
    for name in book.pack.names("fixes"):
        yield from _fix(book, book.fix(name), lang)


def _fix(book: Book, record: FixRecord, lang: str) -> Iterator[str]:
    yield f"## {record.id}"
    yield f"**{escaped(bare(text_of(record.title, lang)))}**"
    yield _prose(text_of(record.how, lang))
    yield "\n".join(f"- {escaped(row.label)}{_colon(lang)}{_prose(row.value)}" for row in balance(record, lang))
    if record.command:
        yield f"{fill(WORDS['shell'], lang)}{_colon(lang)}{code(record.command)}"
    if record.settings:
        yield _table(["framework", "key", "versions"], [_setting(row) for row in settings(record.settings, lang)], lang)
    yield from _not_this(book, record.not_this, lang)
    helped = [_link("problems", one.id, text_of(one.title, lang), lang) for one in book.with_fix(record.id)]
    if helped:
        yield f"{fill(WORDS['for'], lang)}{_colon(lang)}{comma(lang).join(helped)}{stopped('', lang)}"


def _setting(row: Row) -> list[str]:
    return [escaped(row.label), code(row.value).replace("|", "\\|"), escaped(row.note)]


def _not_this(book: Book, advice: Sequence[NotThisRecord], lang: str) -> Iterator[str]:
    if advice:
        lines = [
            f"- **{escaped(stopped(text_of(one.advice, lang), lang))}**{blank(lang)}{_prose(why_not(book, one, lang))}" for one in advice
        ]
        yield f"{fill(WORDS['not'], lang)}{_colon(lang).rstrip()}\n\n" + "\n".join(lines)


def _signatures(book: Book, lang: str) -> Iterator[str]:
    for program, names in sorted(book.programs.items()):
        yield f"## {program}"
        yield _table(["message", "kind", "versions", "example"], [_signature(book.signature(name), lang) for name in names], lang)


def _signature(record: SignatureRecord, lang: str) -> list[str]:
    meaning = fill(WORDS["context"] if record.kind == "context" else KINDS[record.kind], lang)
    example = clean_line(record.examples[0].text, _EXAMPLE) if record.examples else ""
    shown = code(example).replace("|", "\\|") if example else ""
    return [code(record.id), escaped(meaning), escaped(versions(record.since, record.until, lang)), shown]


def _sources(book: Book, lang: str) -> Iterator[str]:
    for name in book.pack.names("sources"):
        yield from _source(book, book.source(name), lang)


def _source(book: Book, record: SourceRecord, lang: str) -> Iterator[str]:
    yield f"## {record.id}"
    yield escaped(record.title) + (f" <{record.url}>" if record.url else "")
    if record.claims:
        yield _table(["claim", "verdict", "correction"], [_claim(one, lang) for one in record.claims], lang)
    citing = [_link(part, name, name, lang) for part, name in book.citing(record.id)]
    if citing:
        yield f"{fill(WORDS['cited'], lang)}{_colon(lang)}{comma(lang).join(citing)}{stopped('', lang)}"


def _claim(one: Claim, lang: str) -> list[str]:
    correction = escaped(text_of(one.correction, lang)) if one.correction is not None else ""
    return [f"{one.id} {escaped(text_of(one.says, lang))}", word(f"verdict-{one.verdict}", lang), correction]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], lang: str) -> str:
    lines = [[fill(WORDS[head], lang) for head in heads], ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _link(part: str, name: str, title: str, lang: str) -> str:
    return f"[{escaped(bare(title))}]({part}.{lang}.md#{name.replace('.', '')})"


def _prose(text: str) -> str:
    """A text of ours in which `backquotes` mark what is to be typed."""
    pieces = text.split("`")
    return "".join(code(piece) if at % 2 else escaped(piece) for at, piece in enumerate(pieces)) if len(pieces) % 2 else escaped(text)


def _colon(lang: str) -> str:
    return "：" if lang == "zh" else ": "
