"""Known bugs of releases as a list and as a page: what shows, which releases have it, what helps, where it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from oomdoctor.advice.known_bugs import bug_heading
from oomdoctor.api.bugs import KnownBugs
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.findings.bugs import describe
from oomdoctor.knowledge.records.bug import ProgramBug
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.head import page_head
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import bugs as texts
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Wording


def compose_bugs(listing: KnownBugs, wording: Wording, version: str) -> Document:
    """Compose the list of bugs that were asked for; without a name, that of the programs."""
    blocks = tuple(_listed(listing, wording) if listing.named else _programs(listing, wording))
    return Document(f"oomdoctor {version} · bugs{' ' if listing.named else ''}{' '.join(listing.named)}", blocks, lang=wording.lang)


def bug_blocks(record: ProgramBug, wording: Wording) -> Iterator[Block]:
    """Yield the page of one bug."""
    bug = describe(record, None)
    yield from page_head(bare(wording.say(bug.symptom)), [wording.say(texts.BUG, program=bug.program), bug.id], bug.source)
    yield Facts(
        (
            Row(wording.say(texts.RELEASES), wording.say(bug.affected)),
            Row(wording.say(texts.STATE), bug_state(bug, wording)),
            Row(wording.say(texts.MEMORY), wording.say(texts.MEMORIES[bug.memory])),
            Row(wording.say(texts.HELPS), what_helps(bug, wording)),
            Row(wording.say(texts.EVIDENCE), wording.say(texts.PROOFS[bug.evidence])),
        )
    )
    yield Paragraph((Span(wording.say(texts.SHOWN_BY if record.bug.shown else texts.NOT_SHOWN), Style.DIM),))


def installed_bugs(bugs: Sequence[KnownBug], wording: Wording) -> Iterator[Block]:
    """Yield the bugs of what is installed, folded: whether they matter depends on what runs."""
    if bugs:
        rows = [Row(f"{bug.program} {bug.version}", wording.say(bug.symptom), what_helps(bug, wording)) for bug in bugs]
        gist = clean_line(wording.comma.join(dict.fromkeys(f"{bug.program} {bug.version}" for bug in bugs)), 120)
        yield Folded(wording.count(texts.INSTALLED, len(bugs)), (Facts(tuple(rows)),), gist)


def _programs(listing: KnownBugs, wording: Wording) -> Iterator[Block]:
    yield Heading(wording.say(texts.PROGRAMS))
    yield Facts(tuple(Row(title, str(count)) for title, count in sorted(listing.programs.items(), key=lambda item: item[0].lower())))
    yield Paragraph(spans(wording.say(texts.HINT)))


def _listed(listing: KnownBugs, wording: Wording) -> Iterator[Block]:
    if not listing.bugs:
        yield Paragraph((Span(wording.say(texts.NONE), Style.GOOD),))
        return
    yield Paragraph((Span(wording.count(texts.FOUND, len(listing.bugs))),))
    for title, group in groupby(listing.bugs, key=lambda bug: wording.say(bug_heading(bug)) if bug.version else bug.program):
        yield Heading(title)
        yield from (_told(bug, wording) for bug in group)


def _told(bug: KnownBug, wording: Wording) -> Paragraph:
    """Return a bug in a few lines: what shows, which releases have it, what helps."""
    return Paragraph(
        (
            Span(bug.id, Style.STRONG),
            Span(wording.aside(wording.say(bug.affected)) + wording.colon, Style.DIM),
            *spans(wording.sentence(wording.say(bug.symptom)) + wording.blank + what_helps(bug, wording) + wording.blank),
            Span(bug.source, Style.LINK),
        )
    )


def bug_state(bug: KnownBug, wording: Wording) -> str:
    """Return whether a bug is fixed, and since when."""
    if bug.state == "fixed" and bug.fixed_in is not None:
        return wording.say(texts.FIXED_IN, version=bug.fixed_in)
    return wording.say(texts.STATES[bug.state])


def what_helps(bug: KnownBug, wording: Wording) -> str:
    """Return what helps: the release without the bug, and what helps until then."""
    parts = [wording.say(texts.UPGRADE, version=bug.fixed_in)] if bug.state == "fixed" and bug.fixed_in is not None else []
    parts += [wording.say(bug.workaround)] if bug.workaround is not None else []
    return wording.blank.join(map(wording.sentence, parts))
