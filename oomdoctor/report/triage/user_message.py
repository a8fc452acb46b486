"""What to write to a user: of one group of failures, and one mail of all that failed of theirs. It says what was found, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.api.fleet.show import GroupShown
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.group_words import LONGEST_ID, comes_again, is_held_by_others, named, when
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.texts import PHASES
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.row import JobRow
from oomdoctor.units import format_size

_NAMED_JOBS = 5
_QUOTED = 200


class UserMail(Struct, frozen=True, kw_only=True):
    """A mail to one user."""

    user: str
    jobs: int
    """So many it tells of."""
    subject: str
    text: str


def message(shown: GroupShown, wording: Wording) -> str:
    """Return what to write to the user of a group, or to all of them, ready to be copied."""
    return wording.blank.join(_sentences(shown, wording))


def mails_of(groups: tuple[GroupShown, ...], wording: Wording) -> list[UserMail]:
    """Return a mail for each user of some groups, who has most failures first; of jobs whose user nobody knows there is none."""
    parts: dict[str, list[GroupShown]] = {}
    for shown in groups:
        for user in shown.group.users:
            if (part := _of_user(shown, user)) is not None:
                parts.setdefault(user, []).append(part)
    made = [_mail(user, of_user, wording) for user, of_user in parts.items()]
    return sorted(made, key=lambda mail: (-mail.jobs, mail.user))


def _mail(user: str, parts: list[GroupShown], wording: Wording) -> UserMail:
    days = sorted(set(chain.from_iterable(part.group.days for part in parts)))
    jobs = sum(part.group.jobs for part in parts)
    subject = wording.count(texts.SUBJECT, jobs, when=when(days, wording))
    return UserMail(user=user, jobs=jobs, subject=subject, text="\n\n".join(message(part, wording) for part in parts))


def _of_user(shown: GroupShown, user: str) -> GroupShown | None:
    """Return what a group is to one of its users: of others' jobs nothing is told. None where none of theirs is at hand."""
    if shown.group.users.keys() == {user} and shown.group.example.user == user:
        return shown
    rows = tuple(row for row in shown.jobs if row.user == user)
    if not rows:
        return None
    count = shown.group.users[user]
    days = {day: sum(row.day == day for row in rows) for row in rows if (day := row.day) is not None}
    names = {name: sum(row.name == name for row in rows) for row in rows if (name := row.name) is not None}
    certain = sum(row.certainty == Certainty.CERTAIN.value for row in rows)
    is_example = shown.group.example.user == user
    group = replace(
        shown.group, example=shown.group.example if is_example else rows[0], jobs=count, certain=certain, users={user: count}, days=days,
        names=names,
    )  # fmt: skip
    return replace(shown, group=group, jobs=rows, diagnosis=shown.diagnosis if is_example else None)


def _sentences(shown: GroupShown, wording: Wording) -> Iterator[str]:
    group, example = shown.group, shown.group.example
    listed = wording.item_comma.join(row.native[:LONGEST_ID] for row in shown.jobs[:_NAMED_JOBS])
    if group.jobs > _NAMED_JOBS:
        listed = wording.say(texts.USERS_MORE, names=listed, n=group.jobs - _NAMED_JOBS)
    what = {"what": _what(example, wording, is_certain=group.certain > 0), "jobs": listed}
    if len(group.users) > 1:
        place = wording.aside(named(group.nodes, wording)) if group.nodes else ""
        yield wording.say(texts.HELLO_ALL, n=group.jobs, users=len(group.users), place=place, **what)
    else:
        name = wording.aside(named(group.names, wording)) if group.names else ""
        yield wording.count(texts.HELLO, group.jobs, name=name, **what)
    yield from _figures(example, is_one=group.jobs == 1, wording=wording)
    if example.text:
        yield wording.say(texts.SAYS, text=_quoted(example.text))
    yield from _advice(shown, wording)


def _what(row: JobRow, wording: Wording, *, is_certain: bool) -> str:
    """Return which memory ran out, and when in the run."""
    memory = wording.say(texts.RAN_OUT_OF.get(row.kind, texts.RAN_OUT_OF[""]))
    phase = "" if row.phase is None else wording.blank + wording.say(PHASES.get(row.phase, PHASES["generic"]), phase=row.phase)
    return wording.say(texts.RAN_OUT if is_certain else texts.RAN_OUT_LIKELY, memory=memory, phase=phase)


def _figures(row: JobRow, *, is_one: bool, wording: Wording) -> Iterator[str]:
    if is_held_by_others(row):
        yield wording.say(texts.HELD_BY_OTHERS)
    elif row.requested_bytes is not None and row.free_bytes is not None and row.total_bytes is not None:
        requested, free, total = map(format_size, (row.requested_bytes, row.free_bytes, row.total_bytes))
        if requested != free:
            text = texts.ASKED_ONE if is_one else texts.ASKED_FIRST
            yield wording.say(text, job=row.native[:LONGEST_ID], asked=requested, free=free, total=total)


def _quoted(text: str) -> str:
    """Return the first whole sentences of a message, or its beginning where they are long."""
    line = clean_line(text, 300)
    if len(line) <= _QUOTED:
        return line
    sentences, stop, _ = line[:_QUOTED].rpartition(". ")
    return f"{sentences}{stop.strip()}" if sentences else f"{line[:_QUOTED].rstrip()}…"


def _advice(shown: GroupShown, wording: Wording) -> Iterator[str]:
    """Yield what the diagnosis of one job proposes, as sure as it is; else what a restart needs."""
    findings = shown.diagnosis.findings if shown.diagnosis is not None else ()
    finding = next((finding for finding in findings if finding.fixes), None)
    if finding is not None:
        helps = texts.TRY if finding.confidence is Certainty.CERTAIN and finding is findings[0] else texts.TRY_PERHAPS
        yield wording.sentence(wording.say(helps, fix=bare(wording.say(finding.fixes[0].title))))
        return
    example = shown.group.example
    is_shm = example.kind == Kind.SHM_OOM.value and example.retry == "more-memory"
    advice = texts.ADVICE_AGAIN if comes_again(shown.group) else texts.ADVICE_SHM if is_shm else texts.ADVICE.get(example.retry)
    if advice is not None:
        yield wording.say(advice)
