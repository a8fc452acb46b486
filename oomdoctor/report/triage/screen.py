"""What a triage came to, on one screen: how many jobs died of memory, which of them are the same, what is open, what comes next."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.render.bars import spark_line
from oomdoctor.report.triage.group_words import news, restart_of, told_apart, when
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.phrases import spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet, Group
from oomdoctor.triage.nodes import BadNode, bad_nodes
from oomdoctor.triage.regressions import began_on
from oomdoctor.triage.store.known_groups import KnownGroups
from oomdoctor.triage.window import TimeWindow, time_text
from oomdoctor.units import format_share

_GROUPS = 8
_NODES = 4
_TREND = 7
_HOUR = 3600


def compose(fleet: Fleet, known: KnownGroups, wording: Wording, version: str) -> Document:
    """Compose the screen."""
    blocks: list[Block] = [headline(fleet, wording)]
    if fleet.groups:
        blocks += [Heading(wording.say(texts.GROUPS)), table(fleet, known, wording, _GROUPS)]
        left = fleet.largest[_GROUPS:]
        if left:
            more = wording.count(texts.MORE_GROUPS, len(left), jobs=sum(group.jobs for group in left))
            blocks.append(Paragraph((Span(more, Style.DIM),)))
    blocks += [*regressions(fleet, wording), *nodes(fleet, wording)]
    blocks += left_open(fleet, wording)
    if fleet.groups:
        blocks.append(Paragraph(spans(wording.say(texts.NEXT, n=1))))
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def headline(fleet: Fleet, wording: Wording) -> Paragraph:
    """Return how many jobs there are, and how many died of memory."""
    return Paragraph(tuple(_headline(fleet, wording)))


def table(fleet: Fleet, known: KnownGroups, wording: Wording, most: int) -> Facts:
    """Return the largest groups, a row each."""
    return Facts(tuple(_rows(fleet, known, wording, most)))


def _headline(fleet: Fleet, wording: Wording) -> Iterator[Span]:
    gap = wording.comma if wording.is_chinese else " "
    jobs = f"{wording.count(texts.JOBS, fleet.jobs)}{gap}{wording.count(texts.IN_FILES, fleet.files)}"
    days = len(fleet.jobs_by_day)
    if not fleet.window.is_all:
        yield Span(_window(fleet.window, wording) + wording.colon)
    yield Span(jobs + (wording.comma + wording.count(texts.DAYS, days) if days > 1 else "") + wording.stop + wording.blank)
    if fleet.is_unread:
        yield Span(wording.say(texts.NONE_READ) + wording.stop, Style.WARN)
        return
    if not fleet.jobs:
        yield Span(wording.say(texts.NONE_ENDED) + wording.stop)
        return
    if not fleet.failed:
        yield Span(wording.say(texts.NONE_DIED) + wording.stop, Style.GOOD)
        return
    died = wording.count(texts.DIED, fleet.failed, share=format_share(fleet.failed / max(1, fleet.jobs)))
    parts = [died, wording.count(texts.IN_GROUPS, len(fleet.groups))]
    if fleet.gpu_seconds_lost >= _HOUR:
        parts.append(wording.say(texts.HOURS, hours=fleet.gpu_seconds_lost // _HOUR))
    yield Span(wording.comma.join(parts) + wording.stop, Style.BAD)


def _window(window: TimeWindow, wording: Wording) -> str:
    """Return of which time the jobs are counted."""
    if window.since is None:
        return wording.say(texts.ENDED_BEFORE, until=time_text(window.until or 0))
    if window.until is None:
        return wording.say(texts.ENDED_SINCE, since=time_text(window.since))
    return wording.say(texts.ENDED_BETWEEN, since=time_text(window.since), until=time_text(window.until))


def _rows(fleet: Fleet, known: KnownGroups, wording: Wording, most: int) -> Iterator[Row]:
    groups = fleet.largest[:most]
    for number, (group, value) in enumerate(zip(groups, told_apart(groups, wording)), 1):
        trend = _trend(fleet, group)
        label = f"{number}  {trend} {wording.count(texts.GROUP_JOBS, group.jobs)}".replace("  ", " ")
        began = began_on(fleet, group)
        time = when(list(group.days), wording) if began is None else wording.say(texts.SINCE, day=began)
        fresh = news(group, known, wording)
        note = wording.comma.join(part for part in (fresh, time, restart_of(group, wording)) if part)
        yield Row(label=label, value=value, note=note, style=Style.WARN if fresh or began else Style.PLAIN)


def _trend(fleet: Fleet, group: Group) -> str:
    """Return the failures of a group over the days of the fleet as characters of different height."""
    days = sorted(fleet.jobs_by_day)
    return spark_line([group.days.get(day, 0) for day in days], _TREND) if len(days) > 1 else ""


def regressions(fleet: Fleet, wording: Wording) -> Iterator[Block]:
    """Yield the large groups that began late."""
    for number, group in enumerate(fleet.largest[:_GROUPS], 1):
        day = began_on(fleet, group)
        if day is not None:
            told = wording.say(texts.BEGAN, n=number, day=day, jobs=group.jobs, all=fleet.failed)
            yield Paragraph((Span(told, Style.WARN),))


def nodes(fleet: Fleet, wording: Wording) -> Iterator[Block]:
    """Yield the nodes with more failures than their share."""
    named = list(bad_nodes(fleet))[:_NODES]
    if named:
        yield Heading(wording.say(texts.NODES))
        yield Facts(tuple(Row(node.name, _node(node, wording)) for node in named))


def _node(node: BadNode, wording: Wording) -> str:
    told = wording.say(texts.NODE, failed=node.failed, jobs=node.jobs, expected=f"{node.expected:.1f}")
    counts = ((texts.USERS, node.users), (texts.NAMES_WITHOUT_USER, node.names))
    return wording.semicolon.join((told, *(wording.count(text, count) for text, count in counts if count)))


def left_open(fleet: Fleet, wording: Wording) -> Iterator[Block]:
    """Yield what is not known, and what ran short and went on."""
    counts = (
        (texts.POSSIBLE, fleet.possible),
        (texts.BY_RECORDS, fleet.from_records),
        (texts.WITHOUT_LOG, fleet.without_log),
        (texts.CONTRADICTED, fleet.contradicted),
        (texts.SURVIVED, fleet.survived),
        (texts.UNREAD, fleet.unread),
        (texts.UNREAD_FILES, fleet.unreadable_files),
        (texts.BY_FILE_DATE, fleet.dated_by.get("file", 0)),
        (texts.NO_ZONE, fleet.without_zone),
    )
    told = [wording.count(text, count) for text, count in counts if count]
    if told:
        hint = wording.blank + wording.sentence(wording.say(texts.POSSIBLE_NEXT)) if fleet.possible and not fleet.from_records else ""
        yield Paragraph(spans(f"{wording.say(texts.ALSO)}{wording.colon}{wording.semicolon.join(told)}{wording.stop}{hint}"))
