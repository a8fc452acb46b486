"""A whole triage as one document: the figures, what stands out, days and nodes as drawings, and a part for each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.api.fleet.show import FleetShown, GroupShown
from oomdoctor.report.document import Block, CountBars, CountGrid, Counts, Document, Facts, Filter, Folded, Heading, Quote, Row
from oomdoctor.report.triage.group_page import addressed, facts, jobs
from oomdoctor.report.triage.group_words import failure_of, news, when, whose
from oomdoctor.report.triage.screen import headline, left_open, nodes, regressions, table
from oomdoctor.report.triage.user_message import message
from oomdoctor.report.triage.user_table import user_lines, user_table
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet

_TABLE = 8
_JOBS = 1000
_NODES = 24
_USERS = 40
_CHOICES = 6
"""Kinds that the stylesheet can show alone."""
_TIMES = 45
"""More days than these are drawn as stretches of several days."""


def compose(shown: FleetShown, wording: Wording, version: str) -> Document:
    """Compose the page of a triage."""
    fleet = shown.fleet
    blocks: list[Block] = [headline(fleet, wording), *regressions(fleet, wording), *left_open(fleet, wording)]
    if fleet.failed:
        times = _stretches(sorted(fleet.jobs_by_day))
        blocks += [_by_day(fleet, times, wording), *nodes(fleet, wording), _by_node(fleet, times, wording)]
        blocks.append(user_table(user_lines(fleet)[:_USERS], wording))
        blocks += [Heading(wording.say(texts.GROUPS)), table(fleet, shown.known, wording, _TABLE)]
        blocks.append(Heading(wording.count(texts.ALL_GROUPS, len(fleet.groups))))
        kinds = _kinds(fleet)
        blocks += [_filter(fleet, kinds, wording)] if len(kinds) > 1 else []
        blocks += (_group(group, kinds, wording) for group in shown.groups)
    return Document(wording.say(texts.TITLE, version=version), tuple(blocks), lang=wording.lang)


def _stretches(days: Sequence[str]) -> list[Sequence[str]]:
    """Return the days in stretches, each a place of the drawings."""
    each = max(1, -(-len(days) // _TIMES))
    return [days[at : at + each] for at in range(0, len(days), each)]


def _by_day(fleet: Fleet, times: Sequence[Sequence[str]], wording: Wording) -> CountBars:
    kinds = _kinds(fleet)
    bars = [
        Counts(_name(days), tuple(sum(fleet.kinds_by_day.get(day, {}).get(kind, 0) for day in days) for kind in kinds)) for days in times
    ]
    return CountBars(wording.say(texts.BY_DAY), tuple(_kind(kind, wording) for kind in kinds), tuple(bars))


def _kinds(fleet: Fleet) -> list[str]:
    """Return what ran out, the most frequent first."""
    return sorted(fleet.kinds, key=lambda kind: (-fleet.kinds[kind], kind))


def _kind(kind: str, wording: Wording) -> str:
    return wording.say(texts.MEMORY[kind]) if kind in texts.MEMORY else kind


def _filter(fleet: Fleet, kinds: Sequence[str], wording: Wording) -> Filter:
    named = (wording.say(texts.KIND_JOBS, kind=_kind(kind, wording), n=fleet.kinds[kind]) for kind in kinds[:_CHOICES])
    return Filter(wording.say(texts.SHOWN_KINDS), (wording.say(texts.ALL_KINDS), *named))


def _by_node(fleet: Fleet, times: Sequence[Sequence[str]], wording: Wording) -> CountGrid:
    worst = sorted(fleet.failed_by_node_day, key=lambda node: (-fleet.failed_by_node[node], node))[:_NODES]
    rows = [Counts(node, tuple(sum(fleet.failed_by_node_day[node].get(day, 0) for day in days) for days in times)) for node in worst]
    return CountGrid(wording.say(texts.BY_NODE), tuple(map(_name, times)), tuple(rows))


def _name(days: Sequence[str]) -> str:
    return days[0] if len(days) == 1 else f"{days[0]} … {days[-1]}"


def _group(shown: GroupShown, kinds: Sequence[str], wording: Wording) -> Folded:
    group = shown.group
    title = f"{shown.number} · {wording.count(texts.GROUP_JOBS, group.jobs)} · {failure_of(group.example, wording)}"
    told = (whose(group, wording), when(list(group.days), wording), news(group, shown.known, wording))
    blocks: tuple[Block, ...] = (
        facts(shown, wording),
        *_cause(shown, wording),
        Quote(addressed(shown, wording), message(shown, wording)),
        jobs(shown, wording, _JOBS),
    )
    kind = kinds.index(group.example.kind) + 1 if group.example.kind in kinds else None
    return Folded(title, blocks, gist=" · ".join(part for part in told if part), kind=kind)


def _cause(shown: GroupShown, wording: Wording) -> Iterator[Facts]:
    titles = [finding.title for finding in shown.diagnosis.findings[:1]] if shown.diagnosis is not None else []
    if titles:
        yield Facts(tuple(Row(wording.say(texts.CAUSE), bare(wording.say(title))) for title in titles))
