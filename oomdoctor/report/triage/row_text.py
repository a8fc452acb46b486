"""Lines that rows quote, without names and secrets."""

from __future__ import annotations

from oomdoctor.redaction.placeholders import Placeholders
from oomdoctor.report.safety.sanitize import clean_line

_LONGEST = 1000


def redact_line(text: str) -> str:
    """Return a line of a log without secrets, terminal escapes and markup, cut after a thousand characters."""
    line = clean_line(text, _LONGEST)
    hidden = Placeholders()
    hidden.learn([line])
    return hidden.redact(line)
