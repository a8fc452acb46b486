"""Compare what the memory model expects with what the log shows: the code shared by runs and servers.

Only for failures whose log or config identifies the model; nothing here is loaded for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from oomdoctor.advice.settings import number
from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.settings import Scalar
from oomdoctor.knowledge.pack import Pack


def weigh_fixes(findings: Iterable[Finding], pack: Pack, weigh: Callable[[Fix, Mapping[str, Scalar]], Fix]) -> tuple[Finding, ...]:
    """Return the findings with what their fixes would free; a fix that frees nothing here is left out.

    `weigh` does so for a fix and the settings that it changes, by the names that all frameworks share.
    """
    weighed: dict[str, Fix] = {}

    def weigh_once(fix: Fix) -> Fix:
        if fix.id not in weighed:
            changes = fix_settings(fix, pack)
            weighed[fix.id] = weigh(fix, changes) if changes else fix
        return weighed[fix.id]

    return tuple(replace(finding, fixes=_useful(tuple(map(weigh_once, finding.fixes)))) for finding in findings)


def _useful(fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    """Return the fixes without those that free nothing according to the memory model, unless nothing else is left."""
    return tuple(fix for fix in fixes if fix.frees_bytes != 0) or fixes


def fix_settings(fix: Fix, pack: Pack) -> dict[str, Scalar]:
    """Return what a fix sets, by the names that all frameworks share; empty if none of its rows has such a name."""
    record = pack.fix(fix.id)
    rows = {(row.framework, row.key): row for row in record.settings} if record is not None else {}
    settings: dict[str, Scalar] = {}
    for setting in fix.settings:
        row = rows.get((setting.framework, setting.key))
        if row is not None and row.sets:
            settings.setdefault(row.sets, _value(row.means if row.means is not None and setting.to == row.to else setting.to))
    return {name: value for name, value in settings.items() if value is not None}


def _value(text: str) -> Scalar:
    """Return the value that a rule writes; None for a factor (`× 4`)."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    value = number(text)
    if value is not None:
        return int(value) if value == int(value) else value
    return None if text.startswith("×") else text
