"""Convert what `oomdoctor check` says of a config to `oomdoctor/check/v1`: additions are allowed, renames are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from oomdoctor.api.results import RunEstimate
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.case.gap import Gap
from oomdoctor.case.plan import Fits
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import RunConfig, Severity
from oomdoctor.report.wire.bugs import BugV1, convert_bug
from oomdoctor.report.wire.estimate import convert_run
from oomdoctor.report.wire.estimate_v1 import EstimateV1
from oomdoctor.report.wire.serving import convert_served
from oomdoctor.report.wire.settings_v1 import ConfigIssueV1, Count, GapV1, config_issue, gap
from oomdoctor.report.wording.wording import Wording

Tag = Literal["oomdoctor/check/v1"]


class CheckV1(Struct, frozen=True, kw_only=True):
    """What is wrong in a config, and whether the run fits its cards."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    framework: str | None
    """The framework of the config; null where it is not known."""
    counts: dict[Severity, Count]
    """How many complaints there are of each severity."""
    fits: Fits | None
    """Whether the run fits, or the server starts; null where no card was named or the model is not known."""
    complaints: tuple[ConfigIssueV1, ...]
    estimate: EstimateV1 | None
    gaps: tuple[GapV1, ...]
    """What was not read or is not known."""
    bugs: tuple[BugV1, ...] = ()
    """The known memory bugs of the framework's release."""


def convert_check(
    training: RunConfig | None,
    memory: RunEstimate | None,
    gaps: Sequence[Gap],
    wording: Wording,
    version: str,
    *,
    bugs: Sequence[KnownBug] = (),
) -> CheckV1:
    """Convert the complaints; `memory` is None where no card was named or the model is not known; `bugs` are of the framework's release."""
    issues = () if training is None else training.issues
    return CheckV1(
        schema="oomdoctor/check/v1",
        oomdoctor=version,
        framework=None if training is None else training.framework,
        counts={severity: sum(issue.severity == severity for issue in issues) for severity in get_args(Severity)},
        fits=None if memory is None else memory.fits,
        complaints=tuple(config_issue(issue, wording) for issue in issues),
        estimate=None if memory is None else _estimate(memory, wording),
        gaps=tuple(gap(missing) for missing in gaps),
        bugs=tuple(convert_bug(bug, wording) for bug in bugs),
    )


def _estimate(memory: RunEstimate, wording: Wording) -> EstimateV1:
    estimate = memory.estimate
    return convert_served(estimate, wording) if isinstance(estimate, Served) else convert_run(memory, estimate, wording)
