"""What the rules make of an environment alone: the same engine that reads runs, asked about a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
    """The findings about an environment, the worst first. What is unknown is no finding."""
    known = KnownFacts(environment_facts(environment), ())
    found = list(with_advice([one for one in findings(pack, known) if not one.unknowns], pack, known))
    found += _allocator(environment, pack)
    return tuple(sorted(found, key=lambda one: _WORST.get(one.severity, 0)))


def judged(plain: Mapping[str, Any], pack: Pack) -> tuple[Finding, ...]:
    """The same for an environment as it stands in JSON."""
    return environment_findings(convert(plain, Environment), pack)


def _allocator(environment: Environment, pack: Pack) -> Iterator[Finding]:
    """The allocator's variable, by the check that reads configs."""
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
        for one in check_alloc_conf(given, options, version, windows=environment.host.system == "windows"):
            yield _finding(one)


def _finding(complaint: ConfigIssue) -> Finding:
    instead = f": `{complaint.replacement}`" if complaint.replacement else ""
    zh = f"，应写作 `{complaint.replacement}`" if complaint.replacement else ""
    return Finding(
        id=complaint.id,
        cause=None,
        severity=complaint.severity,
        confidence=Certainty.CERTAIN,
        title=Text(f"{complaint.key}: {complaint.what.en}".replace("`", ""), f"{complaint.key}：{complaint.what.zh}".replace("`", "")),
        why=Text(complaint.why.en + (f" Write{instead}." if instead else ""), complaint.why.zh + (f"{zh.lstrip('，')}。" if zh else "")),
    )
