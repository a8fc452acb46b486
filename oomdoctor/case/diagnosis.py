"""The diagnosis: a case, and the findings that rules make of it, the root first."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.case import Case
from oomdoctor.case.event import Certainty, Place
from oomdoctor.case.request import FailingRequest
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text


class Cite(Struct, frozen=True, kw_only=True):
    """A source, what it says, and whether that holds."""

    source: str
    title: str
    url: str | None
    says: Text
    verdict: str | None = None
    correction: Text | None = None


class MeasuredSaving(Struct, frozen=True, kw_only=True):
    """What a fix frees of memory that was measured, in bytes per card; derived."""

    bytes: int
    of: int
    """What was measured of the parts that the fix lowers."""
    by: Literal["setting", "model", "half", "at-most"]
    """How it follows: from the old and the new value of the setting; from what the memory model says of both; for half of the
    setting, whose value is not known; or as the most that it can be."""


class TypedLine(Struct, frozen=True, kw_only=True):
    """What a person types for a fix, where no program is known that has a key for it."""

    line: str
    by: str = ""
    """Who understands it, where the line itself does not tell."""
    value: Text | None = None
    """What it is given, in words."""


class Fix(Struct, frozen=True, kw_only=True):
    """One thing to do."""

    id: str
    title: Text
    how: Text
    settings: tuple[ProposedSetting, ...] = ()
    typed: tuple[TypedLine, ...] = ()
    """How it is written where `settings` and `command` are empty."""
    command: str | None = None
    frees: Text | None = None
    terms: tuple[str, ...] = ()
    """The terms of the memory model that it lowers."""
    frees_bytes: int | None = None
    """Bytes per card, estimated from the number of parameters; None where that does not decide."""
    frees_measured: MeasuredSaving | None = None
    """None where what it lowers was not measured."""
    fits: str | None = None
    """Whether the run would fit then, by the model of memory: `yes`, `no` or `close`; None where nobody can say."""
    costs: Text | None = None
    harm: str = "none"
    """The worst of what it costs: none, slower, effort, quality or hardware."""
    needs: tuple[Text, ...] = ()
    """What must hold for it to help and is not known."""
    safety: str = "review"
    """`safe`: a tool may apply it; `review`: a person decides."""
    cites: tuple[str, ...] = ()


class NotThis(Struct, frozen=True, kw_only=True):
    """Advice that people meet and that is wrong here, and why."""

    advice: Text
    why: Text
    cites: tuple[str, ...] = ()


class Evidence(Struct, frozen=True, kw_only=True):
    """The line that a finding stands on."""

    place: Place
    text: str


class Sign(Struct, frozen=True, kw_only=True):
    """Something that was seen and speaks for an explanation or against it."""

    id: str
    says: Text
    weight: float
    """What it adds to the logarithm of the odds; below 0 it speaks against."""


class Finding(Struct, frozen=True, kw_only=True):
    """A rule's judgement, with its texts filled in; a saved report needs no rule pack."""

    id: str
    cause: str | None
    severity: str
    confidence: Certainty
    probability: float | None = None
    """Of an explanation among all others, 0 to 1; None for a statement, which competes with none."""
    signs: tuple[Sign, ...] = ()
    """What speaks for it and against it, beside its own conditions; the weightiest first."""
    title: Text
    why: Text
    evidence: tuple[Evidence, ...] = ()
    unknowns: tuple[Text, ...] = ()
    fixes: tuple[Fix, ...] = ()
    already: tuple[ProposedSetting, ...] = ()
    """What the run does already, so that it need not be proposed."""
    not_this: tuple[NotThis, ...] = ()
    cites: tuple[Cite, ...] = ()


class KnownBug(Struct, frozen=True, kw_only=True):
    """A memory bug or changed default of a release (rules/bugs), and the release at hand."""

    id: str
    program: str
    """The program, by its title."""
    version: str | None
    """The release that ran or is installed; None where nobody knows it, so that the bug is named on a condition."""
    affected: Text
    """The releases that have it."""
    state: Literal["open", "fixed", "intended"]
    fixed_in: str | None
    memory: Literal["card", "host"]
    symptom: Text
    workaround: Text | None
    source: str
    evidence: Literal["release", "commit", "maintainer", "reporter", "documented"]


class OpenCause(Struct, frozen=True, kw_only=True):
    """That the log cannot tell the cause, which readings remain, and the one piece of evidence that settles it."""

    findings: tuple[str, ...]
    """The readings, the most probable first."""
    settled_by: Text
    command: str | None
    """What gets the evidence."""


class FailurePhase(Struct, frozen=True, kw_only=True):
    """A time at which the run can have died, and what to do then."""

    id: str
    says: Text
    """When it was, as a condition: `If it died in a training step`."""
    fixes: tuple[Fix, ...]


class OpenPhase(Struct, frozen=True, kw_only=True):
    """That nothing tells when the run died, so that what to do depends on it; the most probable time stands first."""

    phases: tuple[FailurePhase, ...]
    settled_by: Text
    """The evidence that tells it."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What `oomdoctor diagnose` knows at the end."""

    case: Case
    findings: tuple[Finding, ...]
    evidence: tuple[str, ...] = ()
    """What was seen of rules/evidence.yaml, whether a finding that is told rests on it or not."""
    conclusions: tuple[Text, ...] = ()
    """What follows from the figures of the failure, whatever its cause is, with the figures."""
    open_cause: OpenCause | None = None
    open_phase: OpenPhase | None = None
    """When it can have died, where no more than a message tells of the run."""
    request: FailingRequest | None = None
    """What asked for the memory that was not there; None where no memory failed."""
    bugs: tuple[KnownBug, ...] = ()
    """The known bugs of releases that the case shows, the best match first."""
    written: tuple[str, ...] = ()
    """Of the first fixes those that `oomdoctor fix --only` writes whole into the configs that were given."""
