"""What somebody who knows the program says first of a log, and what the tool says."""

from __future__ import annotations

from typing import NamedTuple

import oomdoctor
from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.report.wording.phrases import setting_line


class Situation(NamedTuple):
    """A log of our own making, and what is to be said of it first."""

    says: str
    log: str
    problem: str
    fix: str
    line: str | None = None
    """The first line to type; None where it is not judged."""


def said_first(log: str) -> tuple[str, str, str | None]:
    """Return the first finding, the first fix, and the first line that the fix is typed as."""
    found = oomdoctor.diagnose(log.encode()).findings
    fix = unique_fixes(found)[0]
    return found[0].id, fix.id, next((setting_line(setting.key, setting.to) for setting in fix.settings), None)
