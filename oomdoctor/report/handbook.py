"""Rules as pages of a handbook: what it is, why, how sure, an example, what to do, what does not help, on what it stands.

The example of a page is run through the tool itself, so its figures and its explanation are those of a real report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oomdoctor import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.events import Event
from oomdoctor.findings.words import words
from oomdoctor.knowledge.book import PARTS, Book
from oomdoctor.knowledge.records import (
    CiteRecord,
    Claim,
    FixRecord,
    NotThisRecord,
    ProblemRecord,
    SettingRecord,
    SignatureRecord,
    SourceRecord,
    Words,
)
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Quote, Row, Span, Step, Steps, Style
from oomdoctor.report.figures import bars, rows
from oomdoctor.report.handbook_texts import AREAS, KINDS, word
from oomdoctor.report.phrases import bare, blank, comma, spans, stopped, written
from oomdoctor.report.safe import clean_line
from oomdoctor.report.texts import FRAMEWORKS, fill

SCHEMA = "oomdoctor/explain/v1"
_NEAR_MISSES = 3
_HELPED = 8
_ABREAST = 2
_EXAMPLE_LINES = 12
_NOT_RIGHT = ("wrong", "partly")
_SIGNS = {"is": "=", "not": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "in": "∈", "contains": "∋"}


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


def as_json(book: Book, name: str | None, version: str) -> dict[str, Any]:
    """The records behind a page, for programs: those of the id, and the fixes and sources that they name."""
    if name is None:
        listed: dict[str, Any] = {area: list(ids) for area, ids in book.areas.items()}
        return {"schema": SCHEMA, "oomdoctor": version, "id": None, "part": "areas", "records": [], "areas": listed}
    part = book.part_of(name)
    named = book.with_cause(name) if part == "causes" else [book.problems[one] for one in book.areas.get(name, ())]
    if part in PARTS and name not in PARTS:
        records = [book.whole(part, name)]
    elif name in PARTS:
        records = [book.whole(name, one) for one in book.pack.names(name)]
    else:
        records = [book.whole("problems", one.id) for one in named]
    fixes = dict.fromkeys(one for record in records for one in record.get("fixes", ()))
    return {
        "schema": SCHEMA,
        "oomdoctor": version,
        "id": name,
        "part": part,
        "records": records,
        "fixes": [book.whole("fixes", one) for one in fixes if one in book.pack.names("fixes")],
    }


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


def problem(book: Book, record: ProblemRecord, lang: str) -> Iterator[Block]:
    """What a problem is, with its first example diagnosed."""
    found = diagnosed(book, record.examples[0].log)
    yield from _titled(text_of(record.title, lang), [word("problem", lang), book.area(record.id), record.id, *_cause(record, lang)])
    yield Heading(word("why-example" if "{" in record.why.en else "why", lang))
    yield Paragraph(spans(explained(record, found, lang)))
    yield Heading(word("sure", lang))
    yield Paragraph((Span(word(f"sure-{record.confidence}", lang) + blank(lang) + word("sure-unknown", lang)),))
    yield Facts(tuple(Row("", line, style=Style.CODE) for line in conditions(record.when)))
    yield from _example(record.examples[0].log, found, lang, named=record.examples[0].name if lang != "zh" else word("example", lang))
    yield from what_to_do(book, record, lang)
    yield from what_does_not_help(book, book.not_for(record.id), record.cites, lang)
    yield from _cited(book, record.cites, lang)
    yield from _see_also(book, record, lang)


def fix(book: Book, record: FixRecord, lang: str) -> Iterator[Block]:
    """What to change, where, and what it frees and costs."""
    yield from _titled(text_of(record.title, lang), [word("fix", lang), record.id])
    yield Heading(word("how", lang))
    yield Paragraph(spans(text_of(record.how, lang)))
    yield Facts((*balance(record, lang), *([Row(word("run", lang), record.command, style=Style.CODE)] if record.command else [])))
    if record.settings:
        yield Heading(word("keys", lang))
        yield Facts(tuple(settings(record.settings, lang)))
        read = list(dict.fromkeys(one.source for one in record.settings))
        yield Paragraph((Span(word("keys-from", lang, list=("；" if lang == "zh" else "; ").join(read)), Style.DIM),))
    helped = sorted(book.with_fix(record.id), key=lambda one: one.fixes.index(record.id))
    if helped:
        yield Heading(word("for", lang))
        yield Facts(tuple(Row(one.id, text_of(one.title, lang)) for one in helped[:_HELPED]))
    if helped[_HELPED:]:
        yield Paragraph((Span(word("for-more", lang, list=", ".join(one.id for one in helped[_HELPED:])), Style.DIM),))
    yield from what_does_not_help(book, record.not_this, (), lang)
    yield from _cited(book, [CiteRecord(source=name) for name in record.cites], lang)


def signature(book: Book, record: SignatureRecord, lang: str) -> Iterator[Block]:
    """A message: what it means, an example read word by word, and what looks like it."""
    program = book.program(record.id)
    yield from _titled(record.id, [word("signature", lang, program=program)])
    yield Heading(word("meaning", lang))
    yield Paragraph((Span(fill(KINDS[record.kind], lang) + (blank(lang) + _certainty(record, lang) if record.kind != "context" else "")),))
    yield Facts(tuple(_provenance(record, program, lang)))
    if record.examples:
        found = diagnosed(book, record.examples[0].text)
        yield from _example(record.examples[0].text, found, lang, named=word("as-printed", lang, program=program), wanted=record.id)
        yield from _leads_to(found, lang)
    if record.near_misses:
        yield Heading(word("near", lang))
        for near in record.near_misses[:_NEAR_MISSES]:
            yield Quote(where=near.why, text=_shortened(near.text))


def source(book: Book, record: SourceRecord, lang: str) -> Iterator[Block]:
    """A document, claim by claim, and what cites it."""
    yield from _titled(record.title, [word("source", lang), record.id], record.url)
    if record.claims:
        yield Heading(word("claims", lang))
        yield from (Paragraph(claim(one, lang)) for one in record.claims)
    citing = [
        Row(name, text_of((book.problems[name] if part == "problems" else book.fix(name)).title, lang))
        for part, name in book.citing(record.id)
    ]
    if citing:
        yield Heading(word("cited-by", lang))
        yield Facts(tuple(citing))


def claim(one: Claim, lang: str) -> tuple[Span, ...]:
    """`3.7 wrong. What it says. In fact: ...`"""
    style = {"right": Style.GOOD, "wrong": Style.BAD}.get(one.verdict, Style.WARN)
    colon = "：" if lang == "zh" else ": "
    said = (
        Span(f"{one.id} ", Style.DIM),
        Span(word(f"verdict-{one.verdict}", lang), style),
        Span(colon),
        *spans(stopped(text_of(one.says, lang), lang)),
    )
    if one.correction is None:
        return said
    return (*said, *spans(blank(lang) + word("in-fact", lang, correction=text_of(one.correction, lang))))


def explained(record: ProblemRecord, found: Diagnosis, lang: str) -> str:
    """Why a problem happens, with the figures of its example."""
    return next((one.why.get(lang) for one in found.findings if one.id == record.id), text_of(record.why, lang))


def conditions(when: Mapping[str, Any]) -> Iterator[str]:
    """What a rule asks, one line for each thing that must hold; guards that only ask whether a fact is known are left out."""
    for one in when.get("all", [when]):
        if not _is_guard(one):
            yield _condition(one)


def what_to_do(book: Book, record: ProblemRecord, lang: str) -> Iterator[Block]:
    """The fixes of a problem, in its order, with their keys in every framework."""
    fixes = book.fixes_of(record)
    if fixes:
        yield Heading(word("do", lang))
        yield Steps(tuple(_step(one, lang) for one in fixes))


def what_does_not_help(book: Book, advice: Iterable[NotThisRecord], cites: Sequence[CiteRecord], lang: str) -> Iterator[Block]:
    """Advice that people meet and that is wrong here, then claims of cited articles that do not hold, with what is so instead."""
    said = [_corrected(None, text_of(one.advice, lang), why_not(book, one, lang), lang) for one in advice]
    wrong = [(found, one) for cite in cites for found, one in _claims(book, cite) if one.verdict in _NOT_RIGHT]
    for found, one in sorted(wrong, key=lambda pair: pair[1].verdict != "wrong"):
        if one.correction is not None:
            verdict = word(f"verdict-{one.verdict}", lang)
            said.append(_corrected(found.title, text_of(one.says, lang), text_of(one.correction, lang), lang, verdict))
    if said:
        yield Heading(word("not", lang))
        yield from said


def why_not(book: Book, advice: NotThisRecord, lang: str) -> str:
    """Why advice is wrong, with the figures of an example of the first problem for which it is."""
    if "{" not in advice.why.en or advice.problems[0] not in book.problems:
        return text_of(advice.why, lang)
    found = diagnosed(book, book.problems[advice.problems[0]].examples[0].log)
    return words({"en": advice.why.en, "zh": advice.why.zh}, _figures(found)).get(lang)


def _figures(found: Diagnosis) -> Mapping[str, Any]:
    """The figures of the first failure, under the names that rules use."""
    incident = found.case.incidents[0] if found.case.incidents else None
    if incident is None:
        return {}
    event = {f"event.{name}": value for name, value in incident.root.fields.items()}
    return event | {f"derived.{name}": value for name, value in incident.derived.items()}


def _corrected(title: str | None, says: str, correction: str, lang: str, verdict: str = "") -> Paragraph:
    """`wrong: "Article" says: advice. In fact: ...`, or where nobody is quoted `Advice. Why it is wrong.`"""
    if title is None:
        return Paragraph((Span(stopped(says, lang) + blank(lang), Style.STRONG), *spans(correction)))
    lead = (Span(verdict, Style.STRONG), Span("：" if lang == "zh" else ": "))
    quoted = word("says", lang, source=title, says=bare(says))
    return Paragraph((*lead, *spans(quoted + word("in-fact", lang, correction=correction))))


def settings(found: Sequence[SettingRecord], lang: str) -> Iterator[Row]:
    """The keys of a fix; up to two frameworks that share key and value share a line."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for one in found:
        value = one.key if one.change == "keep-batch" else written(one.key, one.to)
        grouped.setdefault((value, _aside(one, lang)), []).append(_framework(one, lang))
    for (value, aside), named in grouped.items():
        frameworks = list(dict.fromkeys(named))
        for at in range(0, len(frameworks), _ABREAST):
            label = ("、" if lang == "zh" else ", ").join(frameworks[at : at + _ABREAST])
            yield Row(label, value, aside, Style.CODE)


def _framework(one: SettingRecord, lang: str) -> str:
    return word("environment", lang) if one.framework == "environment" else FRAMEWORKS.get(one.framework, one.framework)


def _aside(one: SettingRecord, lang: str) -> str:
    """How the value follows from the one in force, and the versions in which the key counts."""
    change = word(f"change-{one.change}", lang, by=f"{one.by:g}") if one.change is not None and one.change != "option" else ""
    return comma(lang).join(part for part in (change, versions(one.since, one.until, lang)) if part)


def balance(record: FixRecord, lang: str) -> Iterator[Row]:
    """What a fix frees, what it needs and costs, and who decides."""
    if record.frees is not None:
        yield Row(word("frees", lang), text_of(record.frees.says, lang))
    for need in record.needs:
        yield Row(word("needs", lang), text_of(need.says, lang))
    if record.costs is not None:
        yield Row(word("costs", lang), text_of(record.costs, lang))
    yield Row(word("safety", lang), word(f"safety-{record.safety}", lang))


def versions(since: str | None, until: str | None, lang: str) -> str:
    """`2.1 to 2.13`, as far as known."""
    if since and until:
        return since if since == until else word("between", lang, since=since, until=until)
    return word("since", lang, version=since) if since else word("until", lang, version=until) if until else ""


def text_of(words: Words, lang: str) -> str:
    """A text of a rule in one language."""
    return words.zh if lang == "zh" else words.en


def _document(blocks: Iterable[Block], about: str, lang: str, version: str) -> Document:
    return Document(title=f"oomdoctor {version} · {about}", blocks=tuple(blocks), lang="zh" if lang == "zh" else "en")


def _titled(title: str, about: Sequence[str], url: str | None = None) -> Iterator[Block]:
    yield Paragraph((Span(title, Style.STRONG),))
    yield Paragraph((Span(" · ".join(about), Style.DIM), *((Span(" "), Span(url, Style.LINK)) if url else ())))


def _cause(record: ProblemRecord, lang: str) -> list[str]:
    return [word("cause", lang, name=record.cause)] if record.cause and record.cause != record.id else []


def _certainty(record: SignatureRecord, lang: str) -> str:
    said = word(f"message-{record.certainty or 'possible'}", lang)
    return said + blank(lang) + word("pressure", lang) if record.outcome == "pressure" else said


def _provenance(record: SignatureRecord, program: str, lang: str) -> Iterator[Row]:
    yield Row(word("printed", lang), program, versions(record.since, record.until, lang))
    yield Row(word("seen-in", lang), record.source)
    if record.note:
        yield Row(word("note", lang), record.note)


def _example(text: str, found: Diagnosis, lang: str, *, named: str, wanted: str | None = None) -> Iterator[Block]:
    """The example and every figure that was read in it."""
    yield Heading(word("example", lang))
    yield Quote(where=named, text=_shortened(text))
    incident = found.case.incidents[0] if found.case.incidents else None
    event = incident.root if incident is not None else None
    if wanted is not None:
        event = next((one for one in found.case.events if one.signature == wanted), None)
    if event is None:
        return
    ledger = incident.ledger if incident is not None and incident.root is event else ()
    read = [*rows(event, ledger, lang), *_other_fields(event)]
    if read:
        yield Heading(word("figures", lang))
        yield Facts(tuple(read))
    yield from bars(ledger, lang)


def _other_fields(event: Event) -> Iterator[Row]:
    for name, value in event.fields.items():
        if not name.endswith("_bytes") and not isinstance(value, tuple):
            yield Row(name.replace("_", " "), clean_line(str(value), 120))


def _leads_to(found: Diagnosis, lang: str) -> Iterator[Block]:
    if not found.findings:
        return
    yield Heading(word("leads", lang))
    yield Facts(tuple(Row(one.id, bare(one.title.get(lang))) for one in found.findings))
    first = found.findings[0].fixes
    if first:
        yield Heading(word("do", lang))
        yield Facts(tuple(Row(one.id, bare(one.title.get(lang))) for one in first))


def _step(record: FixRecord, lang: str) -> Step:
    costs = word("costs", lang) + ("：" if lang == "zh" else ": ") + text_of(record.costs, lang) if record.costs is not None else ""
    return Step(
        title=stopped(text_of(record.title, lang), lang),
        text=spans(text_of(record.how, lang)),
        settings=tuple(settings(record.settings, lang)),
        command=record.command or "",
        note=spans(costs) if costs else (),
    )


def _claims(book: Book, cite: CiteRecord) -> Iterator[tuple[SourceRecord, Claim]]:
    """The claim that a citation names; none where it cites a document as a whole."""
    found = book.source(cite.source)
    yield from ((found, one) for one in found.claims if one.id == cite.claim)


def _cited(book: Book, cites: Sequence[CiteRecord], lang: str) -> Iterator[Block]:
    """The documents a page stands on, each once, with what they are cited for."""
    if not cites:
        return
    yield Heading(word("sources", lang))
    for name in dict.fromkeys(cite.source for cite in cites):
        found = book.source(name)
        said = [text_of(cite.says, lang) for cite in cites if cite.source == name and cite.says is not None]
        said += [
            text_of(one.says, lang)
            for cite in cites
            if cite.source == name
            for _, one in _claims(book, cite)
            if one.verdict not in _NOT_RIGHT
        ]
        link = (Span(" "), Span(found.url, Style.LINK)) if found.url else ()
        says = " ".join(stopped(one, lang) for one in said)
        yield Paragraph((Span(found.title, Style.STRONG), *link, *spans((" " if says else "") + says)))


def _see_also(book: Book, record: ProblemRecord, lang: str) -> Iterator[Block]:
    stronger = [one.id for one in book.problems.values() if record.id in one.silences]
    same = [one.id for one in book.with_cause(record.cause) if one.id != record.id] if record.cause else []
    listed = [("weaker", record.silences), ("stronger", stronger), ("same-cause", same)]
    found = tuple(Row(word(key, lang), ", ".join(names)) for key, names in listed if names)
    if found:
        yield Heading(word("see", lang))
        yield Facts(found)


def diagnosed(book: Book, text: str) -> Diagnosis:
    """What the tool makes of an example."""
    return pipeline.diagnose(["example.log"], book.pack, text=text.encode())


def _condition(when: Mapping[str, Any]) -> str:
    for joined, sign in (("all", " and "), ("any", " or ")):
        if joined in when:
            inner = [_condition(one) for one in when[joined] if not _is_guard(one)]
            return inner[0] if len(inner) == 1 else "(" + sign.join(inner) + ")"
    if "not" in when and "fact" not in when:
        return f"not {_condition(when['not'])}"
    if "text" in when:
        return f"text ~ {when['text']}"
    if "fact" in when:
        operator = next(key for key in when if key != "fact")
        if operator == "known":
            return f"{when['fact']} {'is known' if when['known'] else 'is not known'}"
        return f"{when['fact']} {_SIGNS[operator]} {_value(when[operator])}"
    asked = [
        f"{key} {_SIGNS['in' if isinstance(when[key], list) else 'is']} {_value(when[key])}"
        for key in ("event", "program", "kind")
        if key in when
    ]
    asked += [
        f"{name} {_SIGNS.get(operator, operator)} {_value(value)}"
        for name, tests in when.get("where", {}).items()
        for operator, value in tests.items()
    ]
    return " and ".join(asked)


def _is_guard(when: Mapping[str, Any]) -> bool:
    return when.get("known") is True and "fact" in when


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _shortened(text: str) -> str:
    """The last lines of a long example: there the failure stands."""
    lines = text.strip("\n").split("\n")
    return "\n".join(lines if len(lines) <= _EXAMPLE_LINES else ["…", *lines[-_EXAMPLE_LINES:]])


def _text(found: Any, otherwise: str, lang: str) -> str:
    return fill(found, lang) if found is not None else otherwise
