"""The page of a problem: why it happens, what the rule asks, an example read, what to do and what does not help."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.records.condition import (
    AllOf,
    AnyOf,
    Compared,
    Condition,
    FactCondition,
    NotThat,
    TextCondition,
    asked_of_events,
)
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Step, Steps, Style
from oomdoctor.report.handbook.fix import settings
from oomdoctor.report.handbook.head import page_head
from oomdoctor.report.handbook.parts import citation_blocks, diagnose_example, example_blocks, example_text, what_does_not_help
from oomdoctor.report.wording import handbook
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording

_SIGNS = {"is": "=", "not": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "in": "∈", "contains": "∋"}


def problem_blocks(book: Book, record: ProblemRecord, wording: Wording) -> Iterator[Block]:
    """Yield what a problem is, with its first example diagnosed."""
    diagnosis = diagnose_example(book, record.examples[0])
    yield from page_head(
        wording.say(record.title), [wording.say(handbook.PROBLEM), book.area(record.id), record.id, *_cause(record, wording)]
    )
    yield Heading(wording.say(handbook.WHY_EXAMPLE if "{" in record.why.en else handbook.WHY))
    yield Paragraph(spans(explained(record, diagnosis, wording)))
    yield Heading(wording.say(handbook.HOW_SURE))
    competes = wording.blank + wording.say(handbook.COMPETES) if record.weight is not None else ""
    yield Paragraph((Span(wording.say(handbook.SURE[record.alone.value]) + competes + wording.blank + wording.say(handbook.SURE_UNKNOWN)),))
    yield Facts(tuple(Row("", line, style=Style.CODE) for line in conditions(record.when)))
    yield from example_blocks(
        example_text(record.examples[0], diagnosis, wording),
        diagnosis,
        wording,
        named=wording.say(handbook.EXAMPLE) if wording.is_chinese else record.examples[0].name,
    )
    yield from what_to_do(book, record, wording)
    yield from what_does_not_help(book, book.not_for(record.id), record.cites, wording)
    yield from citation_blocks(book, record.cites, wording)
    yield from _see_also(book, record, wording)


def explained(record: ProblemRecord, diagnosis: Diagnosis, wording: Wording) -> str:
    """Why a problem happens, with the figures of its example."""
    return next((wording.say(finding.why) for finding in diagnosis.findings if finding.id == record.id), wording.say(record.why))


def conditions(when: Condition) -> Iterator[str]:
    """Return what a rule asks, one line for each thing that must hold; guards that only ask whether a fact is known are left out."""
    for part in when.parts if isinstance(when, AllOf) else (when,):
        if not _is_guard(part):
            yield _condition(part)


def what_to_do(book: Book, record: ProblemRecord, wording: Wording) -> Iterator[Block]:
    """Yield the fixes of a problem, in its order, with their keys in every framework."""
    fixes = book.fixes_of(record)
    if fixes:
        yield Heading(wording.say(handbook.DO))
        yield Steps(tuple(_step(fix, wording) for fix in fixes))


def _step(record: FixRecord, wording: Wording) -> Step:
    costs = wording.say(handbook.COSTS) + wording.colon + wording.say(record.costs) if record.costs is not None else ""
    return Step(
        title=wording.sentence(wording.say(record.title)),
        text=spans(wording.say(record.how)),
        settings=tuple(settings(record.settings, wording)),
        command=record.command or "",
        note=spans(costs) if costs else (),
    )


def _see_also(book: Book, record: ProblemRecord, wording: Wording) -> Iterator[Block]:
    stronger = [problem.id for problem in book.problems.values() if record.id in problem.silences]
    same = [problem.id for problem in book.with_cause(record.cause) if problem.id != record.id] if record.cause else []
    listed = [(handbook.WEAKER, record.silences), (handbook.STRONGER, stronger), (handbook.SAME_CAUSE, same)]
    related = tuple(Row(wording.say(label), ", ".join(names)) for label, names in listed if names)
    if related:
        yield Heading(wording.say(handbook.SEE))
        yield Facts(related)


def _cause(record: ProblemRecord, wording: Wording) -> list[str]:
    return [wording.say(handbook.CAUSE, name=record.cause)] if record.cause and record.cause != record.id else []


def _condition(when: Condition) -> str:
    if isinstance(when, (AllOf, AnyOf)):
        inner = [_condition(part) for part in when.parts if not _is_guard(part)]
        return inner[0] if len(inner) == 1 else "(" + (" and " if isinstance(when, AllOf) else " or ").join(inner) + ")"
    if isinstance(when, NotThat):
        return f"not {_condition(when.part)}"
    if isinstance(when, TextCondition):
        return f"text ~ {when.pattern}"
    if isinstance(when, FactCondition):
        if when.operator == "known":
            return f"{when.fact} {'is known' if when.value else 'is not known'}"
        return f"{when.fact} {_SIGNS[when.operator]} {_value(when.value)}"
    tests = [f"{word} {'∈' if isinstance(name, tuple) else '='} {_value(name)}" for word, name in asked_of_events(when).items()]
    tests += [f"{test.field} {_SIGNS.get(test.operator, test.operator)} {_value(test.value)}" for test in when.where]
    return " and ".join(tests)


def _is_guard(when: Condition) -> bool:
    return isinstance(when, FactCondition) and when.operator == "known" and when.value is True


def _value(value: Compared) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
