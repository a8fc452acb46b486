"""Whether a failed run may be retried, with what changes: only if that is known well enough."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from oomdoctor.api.fix import apply_fix, fix
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty
from oomdoctor.errors import OomdoctorError
from oomdoctor.record.evidence import ATTEMPTS
from oomdoctor.record.evidence_place import put

RETRY = "retry.json"
_SURE = (Certainty.CERTAIN, Certainty.LIKELY)
_FINDINGS = 3
_NOTHING_TO_CHANGE = "the command has no option that could be changed and names no config file"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,60}")


class Retry(Struct, frozen=True, kw_only=True):
    """What follows an attempt: another command, or why there is none."""

    failure: str
    """What failed, to recognize it again."""
    command: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """The fixes that were applied."""
    why_not: str | None = None


def plan_retry(diagnosis: Diagnosis, command: Sequence[str], folder: str, attempt: int, allowed: Sequence[str]) -> Retry:
    """Return the next attempt: variables, and copies of configs or options, with the fixes that are safe or explicitly allowed.

    A safe config change is made if the diagnosis is certain of the cause. A safe variable, and what is allowed by name, is tried
    whenever memory certainly ran out.
    """
    failure = _failure(diagnosis)
    if not failure:
        return Retry(failure="", why_not="the diagnosis is not certain")
    if any(before == failure for before in _failures(folder, attempt)):
        return Retry(failure=failure, why_not="the same failure occurred twice")
    is_sure = diagnosis.findings[0].confidence in _SURE
    variables = dict(_variables(diagnosis, allowed))
    configs = [name for word in command if (name := _config(word)) is not None]
    try:
        planned = _changed(failure, list(command), configs, folder, attempt, allowed, is_sure=is_sure)
    except OomdoctorError as error:
        planned = Retry(failure=failure, why_not=" ".join(error.lines) if configs else _NOTHING_TO_CHANGE)
    if not variables:
        return planned
    words = planned.command or tuple(command)
    changed = dict.fromkeys((*(fix for fix, _ in variables.values()), *planned.changed))
    return Retry(
        failure=failure, command=("env", *(f"{name}={value}" for name, (_, value) in variables.items()), *words), changed=tuple(changed)
    )


def _variables(diagnosis: Diagnosis, allowed: Sequence[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the variables that fixes set, each with the fix and its value; existing options are kept alongside it.

    A safe one from the first finding does not affect training, and trying it settles whether the finding is right.
    """
    for offered in (offered for finding in diagnosis.findings[:_FINDINGS] for offered in finding.fixes):
        if offered.id in allowed or (offered.safety == "safe" and offered in diagnosis.findings[0].fixes):
            for setting in offered.settings:
                before = os.environ.get(setting.key, "")
                if setting.framework == "environment" and _VARIABLE.fullmatch(setting.key) and setting.to not in before:
                    yield setting.key, (offered.id, ",".join(filter(None, (before, setting.to))))


def read_retry(folder: str) -> Retry | None:
    """Return the plan stored in a folder."""
    try:
        with open(os.path.join(folder, RETRY), "rb") as file:
            return decode(file.read(1 << 20), type=Retry)
    except (OSError, DecodeError):
        return None


def encode_retry(retry: Retry) -> bytes:
    """Return a plan as JSON."""
    return encode(retry)


def _failure(diagnosis: Diagnosis) -> str:
    """Return what failed, with its figures; empty if memory did not certainly run out."""
    verdict = diagnosis.case.verdict
    first = diagnosis.findings[0] if diagnosis.findings else None
    if first is None or verdict.memory_failure != "yes" or verdict.certainty not in _SURE:
        return ""
    return " ".join((first.id, *(line.text for line in first.evidence[:1])))


def _failures(folder: str, attempt: int) -> list[str]:
    """Return what failed in the previous attempts."""
    plans = (read_retry(os.path.join(folder, ATTEMPTS, str(number))) for number in range(1, attempt))
    return [plan.failure for plan in plans if plan is not None]


def _changed(
    failure: str, command: list[str], configs: list[str], folder: str, attempt: int, allowed: Sequence[str], *, is_sure: bool
) -> Retry:
    """Return the command with its configs, or its own options, changed; raise OomdoctorError if they cannot be read or written."""
    place = os.path.join(folder, f"changed-{attempt + 1}")
    script = None if configs else _as_script(command, f"{place}-from")
    changes = fix(configs or [script or ""], log=[folder])
    waiting = [proposal.id for proposal in (*changes.choice.undecided, *changes.choice.others)]
    safe = [proposal.id for proposal in changes.choice.taken if proposal.safe and (is_sure or proposal.id in allowed)]
    named = [*safe, *(name for name in waiting if name in allowed)]
    if named != [proposal.id for proposal in changes.choice.taken]:
        changes = fix(configs or [script or ""], log=[folder], only=named or ["none"], review=True)
    files = {os.path.realpath(path) for path in changes.applied.files}
    others = sorted(files - {os.path.realpath(path) for path in configs or [script or ""]})
    if not files:
        first = f" (--allow {waiting[0]})" if waiting else ""
        return Retry(failure=failure, why_not=f"nothing is left that may be changed without a person{first}")
    if others:
        return Retry(failure=failure, why_not=f"{others[0]} would also have to be changed, but the command does not name it")
    apply_fix(changes, place)
    changed = tuple(proposal.id for proposal in changes.choice.taken)
    if script is not None:
        return Retry(failure=failure, command=tuple(_of_script(os.path.join(place, os.path.basename(script)))), changed=changed)
    for at, word in enumerate(command):
        name = _config(word)
        if name is not None and os.path.realpath(name) in files:
            command[at] = word[: len(word) - len(name)] + os.path.join(place, os.path.basename(name))
    return Retry(failure=failure, command=tuple(command), changed=changed)


def _as_script(command: Sequence[str], place: str) -> str:
    """Write a command as a launch script, whose options are changed like those of any other."""
    path = os.path.join(place, "command.sh")
    os.makedirs(place, mode=0o700, exist_ok=True)
    put(path, f"{shlex.join(command)}\n".encode("utf-8", "surrogateescape"))
    return path


def _of_script(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return shlex.split(file.read())


def _config(word: str) -> str | None:
    """Return the config file that a word names, alone or after an equals sign."""
    names = (word, word.partition("=")[2])
    return next((name for name in names if name.lower().endswith((".yaml", ".yml", ".json", ".toml")) and os.path.isfile(name)), None)
