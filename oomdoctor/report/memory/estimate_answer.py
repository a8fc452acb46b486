"""What `estimate` found as a document, whatever it is about: a run or a server."""

from __future__ import annotations

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.serving import Served
from oomdoctor.report.document import Document
from oomdoctor.report.memory import estimate, serving
from oomdoctor.report.wording.wording import Wording


def estimate_document(run: RunEstimate, wording: Wording, version: str) -> Document:
    """Return an estimate for people."""
    memory = run.estimate
    if isinstance(memory, Served):
        return serving.compose(memory, wording, version, run.refusals)
    return estimate.compose(run, memory, wording, version)
