"""What `estimate` found as the structure of its JSON, whatever it is about: a run or a server."""

from __future__ import annotations

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.serving import Served
from oomdoctor.report.wire.estimate import convert_run
from oomdoctor.report.wire.estimate_v1 import EstimateV1
from oomdoctor.report.wire.serving import convert_served
from oomdoctor.report.wording.wording import Wording


def convert_run_estimate(run: RunEstimate, wording: Wording) -> EstimateV1:
    """Return an estimate for programs."""
    memory = run.estimate
    return convert_served(memory, wording) if isinstance(memory, Served) else convert_run(run, memory, wording)
