"""Judge an environment alone, with the engine that judges runs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import convert

from oomdoctor.advice.fixes import with_advice
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.environment import Environment
from oomdoctor.case.event import Certainty
from oomdoctor.case.settings import ConfigIssue, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import KnownFacts
from oomdoctor.findings.engine import findings
from oomdoctor.knowledge.pack import Pack
from oomdoctor.machine.facts import environment_facts

_WORST = {"error": 0, "warning": 1, "note": 2}


def environment_findings(environment: Environment, pack: Pack) -> tuple[Finding, ...]:
    """Judge an environment alone and return the findings, the worst first. What is unknown is no finding."""
    known = KnownFacts(environment_facts(environment), ())
    judged = list(with_advice([finding for finding in findings(pack, known) if not finding.unknowns], pack, known))
    judged += _allocator_findings(environment, pack)
    return tuple(sorted(judged, key=lambda finding: _WORST.get(finding.severity, 0)))


def environment_findings_of_json(plain: object, pack: Pack) -> tuple[Finding, ...]:
    """Return the findings about an environment as it stands in JSON."""
    return environment_findings(convert(plain, Environment), pack)


def _allocator_findings(environment: Environment, pack: Pack) -> Iterator[Finding]:
    """Yield findings about the allocator's variable, by the check that reads configs."""
    named = {name: value for name, value in environment.variables.items() if name.endswith("ALLOC_CONF")}
    if not named:
        return
    from oomdoctor.configs.checks.alloc_conf import allocator_options, check_alloc_conf  # noqa: PLC0415 - only where the variable is set

    options = allocator_options(pack)
    if options is None:
        return
    version = environment.torch.version if environment.torch else None
    for name, value in named.items():
        given = WrittenSetting(key=name, value=value, file="", line=0)
        for issue in check_alloc_conf(given, options, version, windows=environment.host.system == "windows"):
            yield _as_finding(issue)


def _as_finding(issue: ConfigIssue) -> Finding:
    advice = f": `{issue.replacement}`" if issue.replacement else ""
    zh = f"，应写作 `{issue.replacement}`" if issue.replacement else ""
    return Finding(
        id=issue.id,
        cause=None,
        severity=issue.severity,
        confidence=Certainty.CERTAIN,
        title=Text(f"{issue.key}: {issue.what.en}".replace("`", ""), f"{issue.key}：{issue.what.zh}".replace("`", "")),
        why=Text(issue.why.en + (f" Write{advice}." if advice else ""), issue.why.zh + (f"{zh.lstrip('，')}。" if zh else "")),
    )
