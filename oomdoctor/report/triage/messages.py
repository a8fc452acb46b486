"""New groups as messages: alerts for Alertmanager, a message for Slack.

Alertmanager takes a list of alerts at /api/v2/alerts; it sets the time itself where none is given
(https://prometheus.io/docs/alerting/latest/alerts_api/). A Slack message holds at most 50 blocks of at most 3,000 characters
(https://docs.slack.dev/reference/block-kit/blocks/section-block/); its blocks are plain text here, so that no name of a job is markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.group_words import failure_of, restart_of, when, whose
from oomdoctor.report.wording import triage as texts
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Group

_TOLD = 10
"""Groups that are told one by one."""
_LONGEST = 600


class Alert(Struct, frozen=True, kw_only=True):
    """An alert of Alertmanager."""

    labels: dict[str, str]
    annotations: dict[str, str]


class SlackText(Struct, frozen=True, kw_only=True):
    """A text of a block."""

    type: str = "plain_text"
    text: str


class SlackBlock(Struct, frozen=True, kw_only=True):
    """A block of a message."""

    type: str = "section"
    text: SlackText


class SlackMessage(Struct, frozen=True, kw_only=True):
    """What an incoming webhook of Slack takes."""

    text: str
    blocks: list[SlackBlock]


def alerts(groups: Sequence[Group], wording: Wording) -> list[Alert]:
    """Return an alert for each of the largest new groups."""
    return [
        Alert(
            labels={
                "alertname": "OomdoctorNewGroup",
                "severity": "warning",
                "group": group.id,
                "kind": group.kind,
                "signature": group.example.signature or "",
            },
            annotations={"summary": _what(group, wording), "description": _whom(group, wording)},
        )
        for group in groups[:_TOLD]
    ]


def slack_message(groups: Sequence[Group], wording: Wording) -> SlackMessage:
    """Return one message for all new groups."""
    head = wording.count(texts.NEWS, len(groups))
    lines = [head, *(f"{_what(group, wording)}\n{_whom(group, wording)}" for group in groups[:_TOLD])]
    left = groups[_TOLD:]
    if left:
        lines.append(wording.count(texts.MORE_GROUPS, len(left), jobs=sum(group.jobs for group in left)))
    return SlackMessage(text=head, blocks=[SlackBlock(text=SlackText(text=text)) for text in lines])


def _what(group: Group, wording: Wording) -> str:
    parts = (wording.count(texts.GROUP_JOBS, group.jobs), failure_of(group.example, wording))
    return clean_line(wording.colon.join(parts), _LONGEST)


def _whom(group: Group, wording: Wording) -> str:
    parts = (whose(group, wording), when(list(group.days), wording), restart_of(group, wording))
    return clean_line(" · ".join(part for part in parts if part), _LONGEST)
