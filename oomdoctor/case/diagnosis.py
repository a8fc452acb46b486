"""The diagnosis: a case, and the findings that rules derive from it, the root first."""

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
    """How much measured memory a fix frees, in bytes per GPU; derived."""

    bytes: int
    of: int
    """What was measured for the parts that the fix lowers."""
    by: Literal["setting", "model", "half", "at-most"]
    """How it follows: from the old and the new value of the setting; from what the memory model says about both; for half of the setting,
    whose value is unknown; or as the maximum possible."""


class TypedLine(Struct, frozen=True, kw_only=True):
    """What a person types to apply a fix, if no known program has a key for it."""

    line: str
    by: str = ""
    """The program that accepts it, if the line itself does not show that."""
    value: Text | None = None
    """Its value, in words."""


class Fix(Struct, frozen=True, kw_only=True):
    """One thing to do."""

    id: str
    title: Text
    how: Text
    settings: tuple[ProposedSetting, ...] = ()
    typed: tuple[TypedLine, ...] = ()
    """How it is written if `settings` and `command` are empty."""
    command: str | None = None
    frees: Text | None = None
    terms: tuple[str, ...] = ()
    """The memory model terms that it lowers."""
    frees_bytes: int | None = None
    """Bytes per GPU, estimated from the number of parameters; None if that does not determine them."""
    frees_measured: MeasuredSaving | None = None
    """None if what it lowers was not measured."""
    fits: str | None = None
    """Whether the run would then fit, according to the memory model: `yes`, `no` or `close`; None if unknown."""
    costs: Text | None = None
    harm: str = "none"
    """The worst of its costs: none, slower, effort, quality or hardware."""
    needs: tuple[Text, ...] = ()
    """What must hold for it to help and is not known."""
    safety: str = "review"
    """`safe`: a tool may apply it; `review`: a person decides."""
    cites: tuple[str, ...] = ()


class NotThis(Struct, frozen=True, kw_only=True):
    """Advice that people encounter and that is wrong here, and why."""

    advice: Text
    why: Text
    cites: tuple[str, ...] = ()


class Evidence(Struct, frozen=True, kw_only=True):
    """The line that a finding is based on."""

    place: Place
    text: str


class Sign(Struct, frozen=True, kw_only=True):
    """An observation that is evidence for or against an explanation."""

    id: str
    says: Text
    weight: float
    """What it adds to the logarithm of the odds; below 0, it is evidence against."""


class Finding(Struct, frozen=True, kw_only=True):
    """A rule's judgment, with its texts filled in; a saved report needs no rule pack."""

    id: str
    cause: str | None
    severity: str
    confidence: Certainty
    probability: float | None = None
    """Of an explanation among all others, 0 to 1; None for a statement, which does not compete with any."""
    signs: tuple[Sign, ...] = ()
    """Evidence for and against it, besides its own conditions; the weightiest first."""
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
    """A memory bug or changed default of a release (rules/bugs), and the release in use."""

    id: str
    program: str
    """The program, by its title."""
    version: str | None
    """The release that ran or is installed; None if unknown, so that the bug is named conditionally."""
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
    """States that the log cannot show the cause, which readings remain, and the one piece of evidence that settles it."""

    findings: tuple[str, ...]
    """The readings, the most probable first."""
    settled_by: Text
    command: str | None
    """The command that gets the evidence."""


class FailurePhase(Struct, frozen=True, kw_only=True):
    """A time at which the run may have died, and what to do in that case."""

    id: str
    says: Text
    """When it was, as a condition: `If it died in a training step`."""
    fixes: tuple[Fix, ...]


class OpenPhase(Struct, frozen=True, kw_only=True):
    """States that nothing shows when the run died, so that what to do depends on it; the most probable time comes first."""

    phases: tuple[FailurePhase, ...]
    settled_by: Text
    """The evidence that shows it."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What `oomdoctor diagnose` knows at the end."""

    case: Case
    findings: tuple[Finding, ...]
    evidence: tuple[str, ...] = ()
    """What was observed from rules/evidence.yaml, whether or not a reported finding relies on it."""
    conclusions: tuple[Text, ...] = ()
    """What follows from the figures of the failure, whatever its cause, with the figures."""
    open_cause: OpenCause | None = None
    open_phase: OpenPhase | None = None
    """When it may have died, if only a message is left of the run."""
    request: FailingRequest | None = None
    """What requested the memory that was not available; None if no memory failed."""
    bugs: tuple[KnownBug, ...] = ()
    """The known bugs of releases that the case shows, the best match first."""
    written: tuple[str, ...] = ()
    """Of the first fixes, those that `oomdoctor fix --only` writes completely into the given configs."""
