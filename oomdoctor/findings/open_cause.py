"""If a log cannot show the cause: which readings remain, and the one piece of evidence that settles it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.case.diagnosis import Finding, OpenCause
from oomdoctor.case.event import Certainty
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.problem import CAUSES

_READINGS = 3
_CONFIG = "--config"
_NAMING = ("training.framework", "log.framework", "incident.inference")
_WATCHED = r"oomdoctor run (?:--level (?P<level>\d) )?"


def open_cause(findings: Sequence[Finding], pack: Pack, known: KnownFacts) -> OpenCause | None:
    """Return the readings and what settles them; None if one is at least likely, or nothing known would show it.

    Nobody is asked for what the log contains: evidence that is already known is skipped.
    """
    readings = [finding for finding in findings if finding.probability is not None][:_READINGS]
    if not readings or readings[0].confidence is not Certainty.POSSIBLE:
        return None
    causes = [pack.record(CAUSES, finding.cause) for finding in readings if finding.cause is not None]
    settling = [settled for cause in causes if cause is not None for settled in cause.settled_by]
    has_config = _has_config(pack, known)
    missing = (
        settled
        for settled in settling
        if (settled.when is None or evaluate(settled.when, known).truth)
        and all(known.facts.get(fact) is None for fact in settled.unless)
        and (has_config or _CONFIG not in (settled.command or ""))
    )
    settled_by = next((settled for settled in missing if not _was_just_run(settled.command, known)), None)
    if settled_by is None:
        return None
    return OpenCause(
        findings=tuple(finding.id for finding in readings), settled_by=settled_by.says, command=_with_run_command(settled_by.command, known)
    )


def _has_config(pack: Pack, known: KnownFacts) -> bool:
    """Return whether the program may have a config that is supported here; an unknown program may."""
    name = next((str(value) for fact in _NAMING if (value := known.facts.get(fact))), None)
    record = None if name is None else pack.record(FRAMEWORKS, name)
    return record is None or bool(record.settings)


def _was_just_run(command: str | None, known: KnownFacts) -> bool:
    """Return whether the run was already observed the way a command requires: running it again would show the same."""
    match, level = re.match(_WATCHED, command or ""), known.facts.get("log.watched_level")
    return match is not None and isinstance(level, int) and level >= int(match["level"] or 0)


def _with_run_command(command: str | None, known: KnownFacts) -> str | None:
    """Return how to get the evidence, with the command of the run if its log shows it."""
    own = known.facts.get("log.launch_command")
    return command if command is None or not isinstance(own, str) else command.replace("COMMAND", own)
