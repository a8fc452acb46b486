"""The fixes of one finding for one run: those that change something, with their values, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.frameworks import Row, framework, meant
from oomdoctor.advice.savings import freed, missing
from oomdoctor.advice.settings import SettingChange, config_of, setting_changes
from oomdoctor.case.diagnosis import Finding, Fix, NotThis
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.findings.template import fill_template

if TYPE_CHECKING:
    from oomdoctor.case.settings import RunConfig

_HARM = {"none": 0.0, "slower": 1.0, "effort": 1.0, "quality": 2.0, "hardware": 4.0}
"""How many places a fix moves back in the order of its finding for what it costs: small against the order itself,
which is what is known of the cause, and large enough that of two neighbours the gentler one comes first."""
_NOT_ENOUGH = 6.0
"""The same for a fix that would free less than is missing."""
_UNKNOWN_NEED = 1.0
_NO_KEY = 2.0
"""The same where the framework found has no setting for it, and code must be written."""


class FixTexts(Protocol):
    """The part of a rule pack that is read here."""

    def text(self, part: str, name: str) -> Mapping[str, Any] | None:
        """The texts of one rule."""
        ...


class Advice(Struct, frozen=True):
    """What to do about a finding, what is done already, and what would not help."""

    fixes: tuple[Fix, ...]
    already: tuple[ProposedSetting, ...]
    not_this: tuple[NotThis, ...]


class _RankedFix(Struct, frozen=True):
    fix: Fix
    behind: float


def with_advice(findings: Sequence[Finding], pack: FixTexts, known: KnownFacts, training: RunConfig | None = None) -> tuple[Finding, ...]:
    """Add to each finding its fixes, what is done already, and what would not help."""
    return tuple(_advised(finding, advice(pack, pack.text("problems", finding.id) or {}, known, training)) for finding in findings)


def unique_fixes(findings: Sequence[Finding]) -> list[Fix]:
    """Return the fixes of all findings, each once, where it first comes up."""
    fixes: dict[str, Fix] = {}
    for finding in findings:
        for fix in finding.fixes:
            fixes.setdefault(fix.id, fix)
    return list(fixes.values())


def _advised(finding: Finding, given: Advice) -> Finding:
    return replace(finding, fixes=given.fixes, already=given.already, not_this=given.not_this)


def advice(pack: FixTexts, problem: Mapping[str, Any], known: KnownFacts, training: RunConfig | None) -> Advice:
    """The advice for one problem that holds."""
    config = config_of(training)
    plans, already = [], []
    for place, name in enumerate(problem.get("fixes", ())):
        text = pack.text("fixes", name)
        if text is None or (needs := _open_needs(text, known)) is None:
            continue
        found = setting_changes(rows_of(text, known, training), known.facts, config)
        counting = [one for one in found if one.counts]
        if counting and all(one.in_force for one in counting):
            already += [one.setting for one in counting]
        else:
            plans.append(_plan(text, found, needs, known, place))
    plans.sort(key=lambda one: one.behind)
    against = (pack.text("not_this", problem.get("id", "")) or {}).get("advice", ())
    return Advice(tuple(one.fix for one in plans), tuple(dict.fromkeys(already)), tuple(_against(against, known)))


def rows_of(text: Mapping[str, Any], known: KnownFacts, training: RunConfig | None) -> list[Row]:
    """The rows of a fix that this run can use, in the version that it has."""
    places = training.places if training is not None else {}
    written = {name: given.framework for name, given in places.items()}
    rows: list[Row] = []
    for row in text["settings"]:
        version = _numbers(_version(row["framework"], known.facts, training))
        if not version:
            rows.append(row)
        elif _has_version(row, version):
            rows.append({**row, "since": None, "until": None})
    return meant(rows, known, written)


def _open_needs(text: Mapping[str, Any], known: KnownFacts) -> tuple[Text, ...] | None:
    """The needs that are unknown; None where one is not met."""
    answers = [(evaluate(one["when"], known).truth, one["says"]) for one in text["needs"]]
    if any(truth is False for truth, _ in answers):
        return None
    return tuple(Text(says["en"], says["zh"]) for truth, says in answers if truth is None)


def _plan(text: Mapping[str, Any], found: Sequence[SettingChange], needs: tuple[Text, ...], known: KnownFacts, place: int) -> _RankedFix:
    facts = known.facts
    settings = tuple(one.setting for one in found if not one.in_force)
    frees = text.get("frees")
    size = None if frees is None else freed(frees, facts)
    lacking = missing(facts)
    fix = Fix(
        id=text["id"],
        title=fill_template(text["title"], facts),
        how=fill_template(text["how"], facts),
        settings=settings,
        command=text.get("command"),
        frees=None if frees is None else fill_template(frees["says"], facts),
        terms=() if frees is None else tuple(frees["terms"]),
        frees_bytes=size,
        costs=fill_template(text["costs"], facts) if text.get("costs") else None,
        harm=text["harm"],
        needs=needs,
        safety=text.get("safety", "review"),
        cites=tuple(text.get("cites", ())),
    )
    behind = place + _HARM[fix.harm] + _UNKNOWN_NEED * bool(needs)
    if size is not None and lacking is not None and size < lacking:
        behind += _NOT_ENOUGH
    if text["settings"] and not settings and framework(known) is not None:
        behind += _NO_KEY
    return _RankedFix(fix, behind)


def _version(name: str, facts: Mapping[str, Fact], training: RunConfig | None) -> str | None:
    if training is not None and training.version and training.framework == name:
        return training.version
    value = facts.get("log.torch_version" if name in ("environment", "pytorch") else f"log.{name.replace('-', '_')}_version")
    return None if value is None else str(value)


def _has_version(row: Row, version: tuple[int, ...]) -> bool:
    """Whether a version knows the row; `until: 4.57` holds for 4.57.3 too."""
    since, until = _numbers(row.get("since")), _numbers(row.get("until"))
    return version >= since and (not until or version[: len(until)] <= until)


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(one) for one in (version or "").split("+")[0].split(".")[:4] if one.isdigit() and len(one) < 9)


def _against(entries: Sequence[Mapping[str, Any]], known: KnownFacts) -> Iterator[NotThis]:
    for one in entries:
        if one.get("when") is None or evaluate(one["when"], known).truth:
            yield NotThis(
                advice=fill_template(one["advice"], known.facts), why=fill_template(one["why"], known.facts), cites=tuple(one["cites"])
            )
