"""The diagnosis: a case, and the findings that rules make of it, the root first."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.case import Case
from oomdoctor.case.event import Certainty, Place
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


class Fix(Struct, frozen=True, kw_only=True):
    """One thing to do."""

    id: str
    title: Text
    how: Text
    settings: tuple[ProposedSetting, ...] = ()
    command: str | None = None
    frees: Text | None = None
    terms: tuple[str, ...] = ()
    """The terms of the memory model that it lowers."""
    frees_bytes: int | None = None
    """Bytes per card, estimated from the number of parameters; None where that does not decide."""
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


class Finding(Struct, frozen=True, kw_only=True):
    """A rule's judgement, with its texts filled in; a saved report needs no rule pack."""

    id: str
    cause: str | None
    severity: str
    confidence: Certainty
    title: Text
    why: Text
    evidence: tuple[Evidence, ...] = ()
    unknowns: tuple[Text, ...] = ()
    fixes: tuple[Fix, ...] = ()
    already: tuple[ProposedSetting, ...] = ()
    """What the run does already, so that it need not be proposed."""
    not_this: tuple[NotThis, ...] = ()
    cites: tuple[Cite, ...] = ()


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What `oomdoctor diagnose` knows at the end."""

    case: Case
    findings: tuple[Finding, ...]
