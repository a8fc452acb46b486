"""A page per message that people search for (docs/messages.yaml): its meaning, an example, its causes, and the fixes with their keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml
from msgspec import Struct, convert

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.advice.ladder import ladder
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.text import Text
from oomdoctor.findings.template import FIGURE, general_template
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.problem import CaseExample, ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.diagnosis.do_this import do_this
from oomdoctor.report.diagnosis.typed_lines import typed_spans
from oomdoctor.report.document import BriefSteps, Style
from oomdoctor.report.handbook.catalogue import fix_link, not_this_lines, problem_link, prose, settings_table
from oomdoctor.report.handbook.parts import diagnose_example, last_lines, versions
from oomdoctor.report.render import markdown
from oomdoctor.report.render.markdown import code, escaped
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.handbook import KINDS
from oomdoctor.report.wording.phrases import bare, lower_first
from oomdoctor.report.wording.wording import Wording

_LIST = Path(__file__).parents[2] / "docs" / "messages.yaml"
_CAUSES = 4
_FIXES = 8
_FIRST = 3
"""The number of fixes listed at the top of the page, one line each."""
_KEYS = 12
"""The maximum rows of keys per fix on a message page; the page of the fix has all of them."""
_PAGE = "[{text}](site:#log)"
"""The link to the browser page; the builder resolves its location."""

MESSAGES = Text("Messages", "报错")
LEAD = Text(
    "The messages people search for, each with its own page: what it means, an example, what to change and where.",
    "人们最常搜索的报错，每条一页：含义、示例、改什么、在哪里改。",
)
TITLE = Text("{message}: causes and fixes", "{message}：原因与解决办法")
DESCRIPTION = Text(
    "{meaning} Why “{message}” appears, the settings that fix it in each framework, and an example log.",
    "{meaning}出现“{message}”的原因、各框架中对应的参数，以及示例日志。",
)
PERHAPS = Text("Possibly: {meaning}", "可能是：{meaning}")
PRINTED = Text("Printed by {program} {versions}", "由 {program}（{versions}）输出")
FIRST = Text("Try this first", "先试这些")
EXAMPLE = Text("Example", "示例")
BEHIND = Text("Possible causes", "可能的原因")
BEHIND_LEAD = Text(
    "Most likely first. A log settles which of them applies; " + FIGURE + " stands for a figure from the log.",
    "可能性大的在前。究竟是哪一种，要看日志；" + FIGURE + " 是日志中的数字。",
)
CHANGE = Text("What to change", "改什么")
COSTS = Text("Costs", "代价")
MORE_KEYS = Text("Keys for other frameworks: {fix}.", "其他框架的参数见：{fix}。")
YOURS = Text("Paste your log", "贴上你的日志")
YOURS_LEAD = Text(
    "The message alone rarely identifies the cause. {page} with the surrounding lines, or the whole log: it is read in your browser and "
    "sent nowhere. The same on the command line:",
    "只凭一条报错往往判断不了原因。{page}（连同前后几行，或整份日志）：只在浏览器里分析，不会上传。命令行里同样可用：",
)
PASTE = Text("Paste it here", "贴到这里")
ALSO = Text("Also searched as: {list}.", "其他搜索词：{list}。")


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the messages that people search for."""

    id: str
    title: str
    message: str
    """The rule that recognizes it."""
    search: tuple[str, ...]
    """What else people type for it."""
    example: int = 0
    """Which of the rule's examples is shown."""


@cache
def searched_messages() -> tuple[Message, ...]:
    """Return the messages of the list, in its order."""
    return convert(yaml.safe_load(_LIST.read_text(encoding="utf-8")), tuple[Message, ...])


def message_pages(lang: str) -> Iterator[tuple[str, str]]:
    """Yield a page for each message, and before them the list of all."""
    book, wording = Book(load_pack()), Wording(lang)
    yield "messages/index.md", "\n\n".join(_contents(book, wording)) + "\n"
    for message in searched_messages():
        yield f"messages/{message.id}.md", "\n\n".join(_page(book, message, wording)) + "\n"


def described(message: Message, lang: str) -> str:
    """Return what a search engine shows below the title of a message's page."""
    wording, record = Wording(lang), Book(load_pack()).signature(message.message)
    return wording.say(DESCRIPTION, meaning=wording.say(KINDS[record.kind]), message=message.title)


def _contents(book: Book, wording: Wording) -> Iterator[str]:
    yield f"# {wording.say(MESSAGES)}"
    yield wording.say(LEAD)
    for kind, says in KINDS.items():
        listed = [each for each in searched_messages() if book.signature(each.message).kind == kind]
        if listed:
            yield f"## {wording.say(says).rstrip('.。')}"
            yield "\n".join(f"- [{escaped(each.title)}]({each.id}.md)" for each in listed)


def _page(book: Book, message: Message, wording: Wording) -> Iterator[str]:
    record = book.signature(message.message)
    text = record.examples[message.example].text
    diagnosis = diagnose_example(book, CaseExample(name="", log=text))
    causes = [book.problems[finding.id] for finding in diagnosis.findings if finding.id in book.problems][:_CAUSES]
    yield f"# {escaped(wording.say(TITLE, message=message.title))}"
    yield from _meaning(book, record, wording)
    # The search ranks a page by its first section, so the phrases belong there.
    yield wording.say(ALSO, list=wording.listed(f"`{phrase}`" for phrase in message.search))
    yield from _first(diagnosis, wording)
    yield f"## {wording.say(EXAMPLE)}"
    yield f"```text\n{last_lines(text)}\n```"
    yield from _causes(causes, wording)
    yield from _changes(_fixes(book, diagnosis), wording)
    yield from not_this_lines([advice for cause in causes for advice in book.not_for(cause.id)], wording)
    yield f"## {wording.say(YOURS)}"
    yield wording.say(YOURS_LEAD, page=_PAGE.format(text=wording.say(PASTE)))
    yield "```sh\npip install oomdoctor\noomdoctor diagnose train.log\n```"


def _meaning(book: Book, record: SignatureRecord, wording: Wording) -> Iterator[str]:
    meaning = wording.say(KINDS[record.kind])
    if record.certainty == "possible":
        meaning = wording.say(PERHAPS, meaning=lower_first(meaning))
    certainty = wording.blank + wording.say(handbook.MESSAGE[record.certainty]) if record.certainty and record.kind != "consequence" else ""
    yield escaped(meaning + certainty)
    span = versions(record.since, record.until, wording)
    if span:
        program = framework_title(book.program(record.id))
        yield escaped(wording.sentence(wording.say(PRINTED, program=program, versions=span)))


def _first(diagnosis: Diagnosis, wording: Wording) -> Iterator[str]:
    """Yield the first things to do: what to type where no program is known, without a figure of the example."""
    if diagnosis.open_phase is not None:
        lines = list(markdown.blocks([block for block in do_this(diagnosis, wording) if isinstance(block, BriefSteps)]))
    else:
        fixes = ladder(unique_fixes(diagnosis.findings))[:_FIRST]
        lines = ["\n".join(f"{number}. {_in_a_line(fix, wording)}" for number, fix in enumerate(fixes, 1))]
    if any(lines):
        yield f"## {wording.say(FIRST)}"
        yield from map(str.rstrip, lines)


def _in_a_line(fix: Fix, wording: Wording) -> str:
    """Return what to type for a fix, else how it is done."""
    if fix.typed:
        how = "".join(code(span.text) if span.style is Style.CODE else escaped(span.text) for span in typed_spans(fix.typed, wording))
    elif fix.command and "\n" not in fix.command:
        how = code(fix.command)
    else:
        how = prose(wording.first_sentences(wording.say(fix.how), 1))
    return f"**{escaped(bare(wording.say(fix.title)))}**{wording.colon}{how}"


def _causes(causes: list[ProblemRecord], wording: Wording) -> Iterator[str]:
    if causes:
        yield f"## {wording.say(BEHIND)}"
        yield wording.say(BEHIND_LEAD)
        yield "\n".join(
            f"- **{problem_link(cause, wording)}**{wording.colon}{prose(wording.say(general_template(cause.why)))}" for cause in causes
        )


def _fixes(book: Book, diagnosis: Diagnosis) -> list[FixRecord]:
    """Return the fixes of the causes, those of the likeliest first, each once."""
    names = dict.fromkeys(fix.id for finding in diagnosis.findings for fix in finding.fixes)
    return [book.fix(name) for name in names][:_FIXES]


def _changes(fixes: list[FixRecord], wording: Wording) -> Iterator[str]:
    if not fixes:
        return
    yield f"## {wording.say(CHANGE)}"
    for fix in fixes:
        yield f"### {fix_link(fix, wording)}"
        costs = wording.blank + wording.say(COSTS) + wording.colon + wording.say(fix.costs) if fix.costs is not None else ""
        yield prose(wording.sentence(wording.say(fix.how)) + costs)
        if fix.command:
            yield f"```sh\n{fix.command}\n```"
        if fix.settings:
            yield settings_table(fix, wording, most=_KEYS)
        if len(fix.settings) > _KEYS:
            yield wording.say(MORE_KEYS, fix=fix_link(fix, wording))
