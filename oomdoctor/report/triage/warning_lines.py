"""What a scheduler tells who submits what died of memory before: a line for each user and name of a job."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.triage.group_words import restart
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import Fleet, Group

_LEAST = 3
"""So many jobs died alike before anybody is warned: once is chance, twice a second look."""
_MOST = 2000
_LONGEST = 100


def warning_lines(fleet: Fleet, wording: Wording) -> str:
    """Return lines of user, name without what numbers it, jobs and advice, with tabs between, the most frequent first."""
    lines = (
        line
        for group in fleet.largest
        if group.example.retry in ("stop", "smaller")
        for line in _lines(group, restart(group.example, wording))
    )
    return "".join(f"{line}\n" for line, _ in zip(lines, range(_MOST)))


def _lines(group: Group, advice: str) -> Iterator[str]:
    for user, of_user in group.users.items():
        for name, of_name in group.names.items():
            count = min(of_user, of_name)
            if count >= _LEAST:
                yield "\t".join((_cell(user), _cell(name), str(count), advice))


def _cell(text: str) -> str:
    return clean_line(text, _LONGEST).replace("\t", " ")
