"""The memory model's estimate for a run that is described well enough."""

from __future__ import annotations

from oomdoctor.case.comparison import Side
from oomdoctor.case.estimate import Estimate
from oomdoctor.memory.estimate import needed
from oomdoctor.setups.from_log import run_from_log, setup_from_log


def estimated(side: Side) -> Estimate | None:
    """Estimate the memory one side needs so that no request fails; None if model, method, batch size or sequence length is unknown."""
    if side.training is None:
        return None
    known = run_from_log(side.training, side.diagnosis.case.facts if side.diagnosis is not None else {})
    if known.shape is None or not known.is_told:
        return None
    return needed(setup_from_log(known, known.shape)[0])
