"""The diagnosis of a test that failed of memory, in a few lines."""

from __future__ import annotations

import traceback

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.api.diagnose import diagnose
from oomdoctor.pytest_plugin.messages import wording
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.safety.sanitize import clean_line

_MOST_TEXT = 1 << 16
_STEPS = 3


def short_diagnosis(error: BaseException) -> str | None:
    """Return what failed and what to change; None where the exception is no failure of memory."""
    text = "".join(traceback.format_exception(error))[-_MOST_TEXT:]
    diagnosis = diagnose(text.encode("utf-8", "backslashreplace"))
    if diagnosis.case.verdict.memory_failure == "no":
        return None
    language = wording()
    steps = [clean_line(language.say(fix.title), 200) for fix in unique_fixes(diagnosis.findings)[:_STEPS]]
    return "\n".join([summary(diagnosis, language), *(f"{number}. {step}" for number, step in enumerate(steps, 1))])
