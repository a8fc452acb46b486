"""Spans of releases as rules/bugs writes them: `>=0.14.0,<0.17.0`, `==0.3.50`, `<9305` of builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from oomdoctor.case.text import Text
from oomdoctor.versions import satisfies

_CLAUSE = re.compile(r"(==|>=|<=|<|>)(\d[\w.+]*(?:\.\*)?)")


def is_affected(version: str, spans: Sequence[str], build: str = "") -> bool:
    """Return whether a release lies in one of the spans; `build` is what stands before a release that is only a number."""
    plain = version.removeprefix(build)
    return any(satisfies(plain, span) for span in spans)


def span_faults(spans: Sequence[str], fixed_in: str | None) -> Iterator[str]:
    """Yield what is wrong with the spans of a bug: their form, their ends, and the release that mends it."""
    for span in spans:
        clauses = [_CLAUSE.fullmatch(clause.strip()) for clause in span.split(",")]
        if any(clause is None or _no_version(clause[2]) for clause in clauses):
            yield f"'{span}' is not a version span: use clauses such as >=1.2.0, <1.3.0 or ==1.2.*, joined by commas"
            continue
        for clause in clauses:
            if clause is not None and not _holds_at_its_end(clause[1], clause[2], span):
                yield f"'{span}' contains no version at its end {clause[2]}"
    if fixed_in is not None and _no_version(fixed_in):
        yield f"'{fixed_in}' is not a version"
    elif fixed_in is not None and is_affected(fixed_in, spans):
        yield f"'{fixed_in}' is listed as fixed but is within the span {', '.join(spans)}"


def _holds_at_its_end(operator: str, end: str, span: str) -> bool:
    """Return whether an end is in its span where its operator says so, and out of it where not."""
    at_end = satisfies(end.removesuffix(".*") + (".0" if end.endswith(".*") else ""), span)
    return at_end is (operator in ("==", ">=", "<="))


def _no_version(text: str) -> bool:
    try:
        Version(text.removesuffix(".*"))
    except InvalidVersion:
        return True
    return False


def outside(spans: Sequence[str], fixed_in: str | None) -> str | None:
    """Return a release just outside of the spans, None where all releases lie in them."""
    if fixed_in is not None:
        return fixed_in
    for span in spans:
        for clause in span.split(","):
            match = _CLAUSE.fullmatch(clause.strip())
            if match is not None and match[1] in ("<", ">") and not is_affected(match[2], spans):
                return match[2]
    return None


def spans_text(spans: Sequence[str], build: str = "") -> Text:
    """Return spans as a person says them."""
    told = [_told(span, build) for span in spans]
    return Text(", ".join(text.en for text in told), "、".join(text.zh for text in told))


def _told(span: str, build: str) -> Text:
    ends = {match[1]: build + match[2] for clause in span.split(",") if (match := _CLAUSE.fullmatch(clause.strip())) is not None}
    if "==" in ends:
        return Text(ends["=="].replace(".*", ".x"), ends["=="].replace(".*", ".x"))
    first, last, before = ends.get(">="), ends.get("<="), ends.get("<")
    if ">" in ends:
        return Text(f"after {ends['>']}", f"{ends['>']} 之后")
    if first is None:
        return Text(f"up to {last}", f"{last} 及以前") if last is not None else Text(f"before {before}", f"{before} 之前")
    if last is not None:
        return Text(f"{first} to {last}", f"{first} 至 {last}")
    return (
        Text(f"{first} and later", f"{first} 及以后")
        if before is None
        else Text(f"from {first}, before {before}", f"{first} 起、{before} 之前")
    )
