"""The diagnosis: a case, and the findings that rules make of it, the root first."""

from __future__ import annotations

from dataclasses import dataclass

from oomdoctor.case.case import Case
from oomdoctor.case.events import Certainty, Place


@dataclass(frozen=True, slots=True)
class Text:
    """One text in both languages."""

    en: str
    zh: str

    def get(self, lang: str) -> str:
        """The text in `lang`; English where it is missing."""
        return (self.zh if lang == "zh" else self.en) or self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of one framework's config, with the value before and after."""

    framework: str
    key: str
    to: str
    file: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cite:
    """A source, what it says, and whether that holds."""

    source: str
    title: str
    url: str | None
    says: Text
    verdict: str | None = None
    correction: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One thing to do."""

    id: str
    title: Text
    how: Text
    settings: tuple[Setting, ...] = ()
    command: str | None = None
    costs: Text | None = None
    safety: str = "review"
    """`safe`: a tool may apply it; `review`: a person decides."""
    cites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The line that a finding stands on."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
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
    cites: tuple[Cite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `oomdoctor diagnose` knows at the end."""

    case: Case
    findings: tuple[Finding, ...]
