"""Whether a run that failed may be tried again, with what changed: only where that is known well enough."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from oomdoctor.api.fix import apply_fix, fix
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty
from oomdoctor.errors import OomdoctorError
from oomdoctor.record.evidence import ATTEMPTS

RETRY = "retry.json"
_SURE = (Certainty.CERTAIN, Certainty.LIKELY)


class Retry(Struct, frozen=True, kw_only=True):
    """What comes after an attempt: another command, or why there is none."""

    failure: str
    """What failed, to know it again."""
    command: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """The fixes that were applied."""
    why_not: str | None = None


def plan_retry(diagnosis: Diagnosis, command: Sequence[str], folder: str, attempt: int, allowed: Sequence[str]) -> Retry:
    """Return the next attempt: its configs are copies with the fixes that are safe, or that somebody allowed, in `folder`."""
    failure = _failure(diagnosis)
    if not failure:
        return Retry(failure="", why_not="the diagnosis is not sure")
    if any(before == failure for before in _failures(folder, attempt)):
        return Retry(failure=failure, why_not="the same failure came twice")
    configs = [name for word in command if (name := _config(word)) is not None]
    if not configs:
        return Retry(failure=failure, why_not="the command names no config file that could be changed")
    try:
        return _changed(failure, list(command), configs, folder, attempt, allowed)
    except OomdoctorError as error:
        return Retry(failure=failure, why_not=" ".join(error.lines))


def read_retry(folder: str) -> Retry | None:
    """Return what was planned in a folder."""
    try:
        with open(os.path.join(folder, RETRY), "rb") as file:
            return decode(file.read(1 << 20), type=Retry)
    except (OSError, DecodeError):
        return None


def encode_retry(retry: Retry) -> bytes:
    """Return a plan as JSON."""
    return encode(retry)


def _failure(diagnosis: Diagnosis) -> str:
    """Return what failed, with its figures; nothing where the diagnosis is not sure."""
    first = diagnosis.findings[0] if diagnosis.findings else None
    if first is None or diagnosis.case.verdict.memory_failure != "yes" or first.confidence not in _SURE:
        return ""
    return " ".join((first.id, *(line.text for line in first.evidence[:1])))


def _failures(folder: str, attempt: int) -> list[str]:
    """Return what failed in the attempts before."""
    plans = (read_retry(os.path.join(folder, ATTEMPTS, str(number))) for number in range(1, attempt))
    return [plan.failure for plan in plans if plan is not None]


def _changed(failure: str, command: list[str], configs: list[str], folder: str, attempt: int, allowed: Sequence[str]) -> Retry:
    """Return the command with its configs changed; raise OomdoctorError where they cannot be read or written."""
    changes = fix(configs, log=[folder])
    waiting = [proposal.id for proposal in (*changes.choice.undecided, *changes.choice.others)]
    named = [proposal.id for proposal in changes.choice.taken if proposal.safe] + [name for name in waiting if name in allowed]
    if any(name in allowed for name in waiting):
        changes = fix(configs, log=[folder], only=named, review=True)
    files = {os.path.realpath(path) for path in changes.applied.files}
    others = sorted(files - {os.path.realpath(path) for path in configs})
    if not files:
        first = f" (--allow {waiting[0]})" if waiting else ""
        return Retry(failure=failure, why_not=f"nothing is left that may be changed without a person{first}")
    if others:
        return Retry(failure=failure, why_not=f"{others[0]} would have to be changed, too, and the command does not name it")
    place = os.path.join(folder, f"changed-{attempt + 1}")
    apply_fix(changes, place)
    for at, word in enumerate(command):
        name = _config(word)
        if name is not None and os.path.realpath(name) in files:
            command[at] = word[: len(word) - len(name)] + os.path.join(place, os.path.basename(name))
    return Retry(failure=failure, command=tuple(command), changed=tuple(proposal.id for proposal in changes.choice.taken))


def _config(word: str) -> str | None:
    """Return the config file that a word names, alone or behind an equals sign."""
    names = (word, word.partition("=")[2])
    return next((name for name in names if name.lower().endswith((".yaml", ".yml", ".json", ".toml")) and os.path.isfile(name)), None)
