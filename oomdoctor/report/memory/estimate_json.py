"""What `estimate` estimate as the structure of its JSON, whatever it is about: a run or a server."""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.serving import Served
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.estimate import convert_run
from oomdoctor.report.wire.estimate_v1 import EstimateV1, RefusalV1
from oomdoctor.report.wire.serving import convert_served
from oomdoctor.report.wording.wording import Wording

_LONGEST = 400


def convert_run_estimate(run: RunEstimate, wording: Wording) -> EstimateV1:
    """Return an estimate for programs."""
    memory = run.estimate
    estimate = convert_served(memory, wording) if isinstance(memory, Served) else convert_run(run, memory, wording)
    return replace(estimate, refused=tuple(_refusal(each, wording) for each in run.refusals)) if run.refusals else estimate


def _refusal(refusal: StartupRefusal, wording: Wording) -> RefusalV1:
    return RefusalV1(
        id=refusal.id,
        message=clean_line(refusal.message, _LONGEST),
        why=wording.say(refusal.why),
        setting=refusal.setting,
        instead=refusal.instead,
        source=refusal.source,
    )
