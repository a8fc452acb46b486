"""One group of failures in full: who, where, when, the message to the user, its jobs, and the diagnosis of one of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from oomdoctor.advice.known_bugs import bug_heading
from oomdoctor.api.fleet.show import GroupShown
from oomdoctor.report.diagnosis.compose import compose as compose_diagnosis
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.triage.group_words import LONGEST_ID, failure_of, named, news, restart_of, when
from oomdoctor.report.triage.user_message import message
from oomdoctor.report.wording import bugs as bug_texts
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.row import RECORD_ONLY, JobRow

_HOUR = 3600
_LISTED = 40


def compose(shown: GroupShown, wording: Wording, version: str) -> Document:
    """Compose the page of a group."""
    example = shown.group.example
    title = wording.say(texts.GROUP, n=shown.number, what=failure_of(example, wording))
    blocks: list[Block] = [Paragraph((Span(f"{title}{wording.stop}", Style.BAD),)), facts(shown, wording)]
    if shown.ended is not None:
        told = wording.say(texts.OF_TRIAGE, time=time.strftime("%Y-%m-%d %H:%M", time.gmtime(shown.ended)), store=shown.store)
        blocks.append(Paragraph((Span(told, Style.DIM),)))
    blocks += [Heading(addressed(shown, wording)), Paragraph((Span(message(shown, wording)),))]
    if shown.diagnosis is None and example.layout != RECORD_ONLY:
        blocks += [Paragraph((Span(wording.say(texts.GONE), Style.DIM),)), Quote(_place(example), example.text or example.kind)]
    blocks.append(jobs(shown, wording, _LISTED))
    if shown.diagnosis is not None:
        whole = compose_diagnosis(shown.diagnosis, wording, version)
        first = shown.diagnosis.findings[0].title if shown.diagnosis.findings else None
        gist = "" if first is None else bare(wording.say(first))
        blocks.append(Folded(wording.say(texts.IN_FULL), whole.blocks, gist=gist))
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def facts(shown: GroupShown, wording: Wording) -> Facts:
    """Return who met a group, where, when, and what it cost."""
    return Facts(tuple(_facts(shown, wording)))


def jobs(shown: GroupShown, wording: Wording, most: int) -> Folded:
    """Return the newest jobs of a group, and how many there are beside them."""
    group = shown.group
    listed = tuple(_job(row, len(group.users) > 1, wording) for row in shown.jobs[:most])
    left = group.jobs - len(listed)
    more = (Paragraph((Span(wording.count(texts.MORE_JOBS, left), Style.DIM),)),) if left else ()
    return Folded(wording.say(texts.THE_JOBS), (Facts(listed), *more), gist=wording.count(texts.GROUP_JOBS, group.jobs))


def addressed(shown: GroupShown, wording: Wording) -> str:
    """Return whom the message is for."""
    return wording.say(texts.MESSAGE if len(shown.group.users) < 2 else texts.MESSAGE_ALL)


def _facts(shown: GroupShown, wording: Wording) -> Iterator[Row]:
    group = shown.group
    yield Row(wording.count(texts.GROUP_JOBS, group.jobs), restart_of(group, wording))
    bugs = () if shown.diagnosis is None else shown.diagnosis.bugs
    told = (
        (bug_texts.GROUP, wording.semicolon.join(f"{wording.say(bug_heading(bug))} ({bug.id})" for bug in bugs)),
        (texts.WHO, named(group.users, wording)),
        (texts.NAMES, named(group.names, wording)),
        (texts.WHERE, named(group.nodes, wording)),
        (texts.WHEN, wording.comma.join(part for part in (when(list(group.days), wording), news(group, shown.known, wording)) if part)),
    )
    yield from (Row(wording.say(label), value) for label, value in told if value)
    if group.gpu_seconds_lost >= _HOUR:
        yield Row(wording.say(texts.COST), wording.say(texts.HOURS, hours=group.gpu_seconds_lost // _HOUR))
    if group.recovered:
        yield Row("", wording.count(texts.RECOVERED, group.recovered))


def _job(row: JobRow, tells_user: bool, wording: Wording) -> Row:
    place = "" if row.first_rank is None else wording.say(texts.RANK, n=row.first_rank)
    note = wording.comma.join(part for part in (row.node, place, row.user if tells_user else "") if part)
    return Row(row.native[:LONGEST_ID], _place(row), note)


def _place(row: JobRow) -> str:
    if row.first_file is None:
        return row.evidence or ""
    return row.first_file if row.first_line is None else f"{row.first_file}:{row.first_line}"
