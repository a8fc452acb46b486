"""A file of bugs -> the signatures of its messages, and the one that finds the program's version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.knowledge.records.bug import (
    BugFile,
    BugMessage,
    BugRecord,
    ProgramBug,
    bug_signature,
    name_signature,
    other_version_field,
    version_field,
)
from oomdoctor.knowledge.records.signature import Example, NearMiss, SignatureRecord

_LETTERS = re.compile(r"[A-Za-z0-9]")
_RARE_NAME = 6
"""Letters and digits of a name that is rare enough to be looked for in every line."""
_BEFORE = r"(?<![\w.])"
_AFTER = r"(?=[\s,;:)\]|\"'`_/]|[^\x00-\x7f]|\.\s|\.$|$)"
_FIRST_NUMBERS = re.compile(r"[\d.]{1,8}$")
_FILLER = r"(?:[ :=]{0,2}(?:to |from )?(?:[vV]ersion|release|update)\b(?:\n{1,2}(?=v?\d))?)?[ :=]{0,2}"
"""What may stand between the name of a program and its version; in the form of an issue the version stands below its heading."""
_LISTED = r"(?:v?\d{1,3}\.\d{1,3}[\w.]{0,12}(?:,|,? &|,? and) {0,3}){0,3}"
"""Releases before the last of a list: `4.37.2, 4.38.2 & 4.39.3`."""
_WORKS = r"(?![^\n]{0,3}\b(?:works?|is fine|was fine|is OK|was OK|does not|doesn't|did not|didn't)\b)"
"""A release of which somebody says that it does not have the bug is not the one that ran."""


def bug_signatures(file: BugFile) -> Iterator[SignatureRecord]:
    """Yield the signatures of a file of bugs; their events are context, and decide nothing by themselves."""
    versions = _of_versions(file)
    if versions is not None:
        yield versions
    name = _of_name(file)
    if name is not None:
        yield name
    for bug in file.bugs:
        yield from _of_messages(bug)


def program_bugs(file: BugFile) -> Iterator[ProgramBug]:
    """Yield the bugs of a file, each with what the file says of the program."""
    for bug in file.bugs:
        yield ProgramBug(
            program=file.program,
            title=file.title,
            packages=file.packages,
            build=file.build,
            facts=[*file.facts, version_field(file.program), other_version_field(file.program)],
            runs=file.runs,
            folders=file.folders,
            bug=bug,
        )


def _of_name(file: BugFile) -> SignatureRecord | None:
    """Return the signature of the program's name in prose; None where the name is too short to be looked for."""
    if len(_LETTERS.findall(file.title)) < _RARE_NAME:
        return None
    names = list(dict.fromkeys((file.title, file.title.lower(), file.title.replace(" ", "-"))))
    return SignatureRecord(
        id=name_signature(file.program),
        kind="context",
        literals=names,
        pattern=f"(?<![\\w./-])(?:{'|'.join(re.escape(name).replace(chr(92) + ' ', ' ') for name in names)})(?![\\w/=-]|\\.\\w)",
        source=file.source,
        examples=[Example(text=f"It runs out of memory in {file.title}.")],
        near_misses=[NearMiss(text=f"{file.packages[0] if file.packages else file.program}==1.2.0", why="a row of a list")],
    )


def _of_messages(bug: BugRecord) -> Iterator[SignatureRecord]:
    """Yield the signatures of a bug's messages; the examples of the bug are those of the rule and run as whole logs."""
    for number, sign in enumerate(bug.shown):
        if sign.message is not None:
            lines = [line for example in bug.examples for line in example.log.splitlines() if _holds(sign.message, line)]
            yield SignatureRecord(
                id=bug_signature(bug.id, number),
                kind="context",
                literals=sign.message.literals,
                pattern=sign.message.pattern,
                source=bug.source,
                examples=[Example(text=line) for line in lines[:1]],
                near_misses=[NearMiss(text="the release notes list what was mended", why="prose of another kind")],
            )


def _holds(message: BugMessage, line: str) -> bool:
    return any(literal in line for literal in message.literals)


def _of_versions(file: BugFile) -> SignatureRecord | None:
    if not file.marks:
        return None
    field = version_field(file.program)
    names, number = f"(?:{'|'.join(map(_mark, file.marks))}){_FILLER}{_LISTED}v?", _number(file)
    # One line has one event: a second release on it, as in `from NAME 1.2 to NAME 1.3`, is a field of its own.
    other = f"(?:[^\\n]{{1,100}}?{names}(?P<{other_version_field(file.program)}>{number}){_AFTER})?"
    return SignatureRecord(
        id=f"release-of-{file.program}",
        kind="context",
        literals=file.marks,
        pattern=f"{names}(?P<{field}>{number}){_AFTER}{_WORKS}{other}",
        source=file.source,
        examples=[Example(text=text, fields={field: version}) for text, version in _examples(file)],
        near_misses=[NearMiss(text=f"{_name(mark)}: see the notes of the next release", why="no version") for mark in file.marks[:1]],
    )


def _number(file: BugFile) -> str:
    return r"\d{3,6}" if file.build else r"\d{1,4}\.\d{1,4}[A-Za-z0-9_.+-]{0,40}?"


def _name(mark: str) -> str:
    """Return a mark without the numbers that it ends with."""
    return _FIRST_NUMBERS.sub("", mark)


def _mark(mark: str) -> str:
    """Return the pattern of a mark; its first numbers are those of the version behind it."""
    name = _name(mark)
    numbers = mark[len(name) :]
    start = _BEFORE if name[:1].isalnum() else ""
    follows = f"(?={_FILLER}v?{re.escape(numbers)})" if numbers else ""
    return start + re.escape(name).replace(r"\ ", " ") + follows


def _examples(file: BugFile) -> Iterator[tuple[str, str]]:
    for mark in file.marks:
        name = _name(mark)
        version = _example_version(mark[len(name) :], is_build=bool(file.build))
        yield f"{name}{version}", version


def _example_version(numbers: str, *, is_build: bool) -> str:
    """Return a version that begins with these numbers."""
    if is_build:
        return (numbers + "9305")[:4]
    if not numbers:
        return "0.4.1"
    missing = 2 - numbers.rstrip(".").count(".")
    return ".".join([numbers.rstrip("."), *("4", "1")[:missing]])
