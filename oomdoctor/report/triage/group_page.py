"""One group of failures in full: who, where, when, the message to the user, its jobs, and the diagnosis of one of them."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.api.fleet.show import GroupShown
from oomdoctor.report.diagnosis.compose import compose as compose_diagnosis
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Quote, Row, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.group_words import failure_of, named, news, restart_of, when
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.row import JobRow

_HOUR = 3600
_LISTED = 40
_IN_MESSAGE = 5
_ID = 24
"""Of a job's id so much is shown: that of a container has 64 characters."""
_TIGHT = 1


def compose(shown: GroupShown, wording: Wording, version: str) -> Document:
    """Compose the page of a group."""
    example = shown.group.example
    title = wording.say(texts.GROUP, n=shown.number, what=failure_of(example, wording))
    blocks: list[Block] = [Paragraph((Span(f"{title}{wording.stop}", Style.BAD),)), facts(shown, wording)]
    blocks += [Heading(addressed(shown, wording)), Paragraph((Span(message(shown, wording)),))]
    if shown.diagnosis is None:
        blocks += [Paragraph((Span(wording.say(texts.GONE), Style.DIM),)), Quote(_place(example), example.text or example.kind)]
    blocks.append(jobs(shown, wording, _LISTED))
    if shown.diagnosis is not None:
        whole = compose_diagnosis(shown.diagnosis, wording, version, _TIGHT)
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


def message(shown: GroupShown, wording: Wording) -> str:
    """Return what to write to the user of a group, ready to be copied."""
    group, example = shown.group, shown.group.example
    listed = wording.item_comma.join(row.native[:_ID] for row in shown.jobs[:_IN_MESSAGE])
    if group.jobs > _IN_MESSAGE:
        listed = wording.say(texts.USERS_MORE, names=listed, n=group.jobs - _IN_MESSAGE)
    what = failure_of(example, wording)
    if len(group.users) > 1:
        place = wording.aside(named(group.nodes, wording)) if group.nodes else ""
        parts = [wording.say(texts.HELLO_ALL, n=group.jobs, users=len(group.users), place=place, what=what, jobs=listed)]
    else:
        name = wording.aside(named(group.names, wording)) if group.names else ""
        parts = [wording.count(texts.HELLO, group.jobs, jobs=listed, name=name, what=what)]
    if example.text:
        parts.append(wording.sentence(wording.say(texts.SAYS, text=clean_line(example.text, 300))))
    fix = next((fix.title for finding in shown.diagnosis.findings for fix in finding.fixes), None) if shown.diagnosis is not None else None
    help_ = wording.say(fix) if fix is not None else restart_of(group, wording)
    if help_:
        parts.append(wording.sentence(wording.say(texts.TRY, fix=bare(help_))))
    return wording.blank.join(parts)


def _facts(shown: GroupShown, wording: Wording) -> Iterator[Row]:
    group = shown.group
    yield Row(wording.count(texts.GROUP_JOBS, group.jobs), restart_of(group, wording))
    told = (
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
    return Row(row.native[:_ID], _place(row), note)


def _place(row: JobRow) -> str:
    if row.first_file is None:
        return row.evidence or ""
    return row.first_file if row.first_line is None else f"{row.first_file}:{row.first_line}"
