"""The steps of a screen that say what is to become of the run, and not how."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.do_this import do_this
from oomdoctor.report.document import BriefStep, BriefSteps, Style
from oomdoctor.report.wording.wording import Wording


def bare_steps(diagnosis: Diagnosis, lang: str = "en") -> Iterator[str]:
    """Yield the steps with nothing to type and no word on how; what is done about a known bug says it itself."""
    bugs = {bug.id for bug in diagnosis.bugs}
    orders = {getattr(fix.title, lang) for finding in diagnosis.findings for fix in finding.fixes if fix.id in bugs}
    for block in do_this(diagnosis, Wording(lang)):
        for step in block.steps if isinstance(block, BriefSteps) else ():
            text = "".join(span.text for span in step.do)
            if not _says_how(step) and text not in orders:
                yield text


def _says_how(step: BriefStep) -> bool:
    return bool(step.aside) or any(span.style in (Style.CODE, Style.STRONG) for span in step.do)
