"""How much measured memory fixes free: by their settings, by the memory model, or as the maximum they can free."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.advice.settings import number
from oomdoctor.case.diagnosis import Finding, Fix, MeasuredSaving
from oomdoctor.case.recorded.parts import MeasuredParts
from oomdoctor.case.settings import ProposedSetting, Scalar
from oomdoctor.knowledge.pack import Pack
from oomdoctor.planning.observed.expected_vs_observed import fix_settings
from oomdoctor.planning.observed.measured_parts import expected_part
from oomdoctor.planning.observed.run_expected_vs_observed import RunExpectedVsObserved


def with_measured_savings(
    findings: Sequence[Finding], parts: MeasuredParts, run: RunExpectedVsObserved | None, pack: Pack
) -> tuple[Finding, ...]:
    """Return the findings with how much measured memory each fix frees; `run` if the memory model knows the run."""

    def weighed(fix: Fix) -> Fix:
        return replace(fix, frees_measured=_saving(fix, parts, run, pack))

    return tuple(replace(finding, fixes=tuple(map(weighed, finding.fixes))) for finding in findings)


def _saving(fix: Fix, parts: MeasuredParts, run: RunExpectedVsObserved | None, pack: Pack) -> MeasuredSaving | None:
    of, record = parts.of_terms(fix.terms), pack.fix(fix.id)
    # An unknown requirement of a fix determines how much it frees, too.
    if not of or record is None or record.frees is None or fix.needs:
        return fix.frees_measured
    share = _by_model(parts.model_terms(fix.terms), fix_settings(fix, pack), run) if run is not None and run.expected.is_told else None
    if share is not None:
        return MeasuredSaving(bytes=round(share * of), of=of, by="model") if share > 0 else None
    if record.frees.measured == "at-most":
        return MeasuredSaving(bytes=of, of=of, by="at-most")
    if record.frees.measured == "in-proportion":
        lowered = _by_setting(fix.settings)
        return MeasuredSaving(bytes=round((lowered or 0.5) * of), of=of, by="setting" if lowered else "half")
    return fix.frees_measured


def _by_model(terms: Collection[str], changes: Mapping[str, Scalar], run: RunExpectedVsObserved) -> float | None:
    """Return the share by which these terms shrink according to the memory model; None if it does not know the change."""
    before = expected_part(run.expected.estimate, terms).bytes
    if not changes or not before:
        return None
    after = run.changed(changes)
    known = after.expected != run.expected.estimate.expected
    return max(0.0, 1 - expected_part(after, terms).bytes / before) if known else None


def _by_setting(settings: Sequence[ProposedSetting]) -> float | None:
    """Return the share by which the first setting with a known old value goes down."""
    for setting in settings:
        old, new = number(setting.before or ""), number(setting.to)
        if old is not None and new is not None and 0 < new < old:
            return 1 - new / old
    return None
