"""The shape of a rule file, key by key. Loading is strict: an unknown key is an error with its place.

Only loading and lint import this module (msgspec); reading a compiled pack does not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Id = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$", max_length=80)]
KindName = Literal["device-oom", "masked-device-oom", "host-oom", "shm-oom", "kernel-resource", "look-alike", "consequence", "context"]
CertaintyName = Literal["certain", "likely", "possible"]
FamilyName = Literal[
    "torch-allocator", "translated", "nvml-assert", "kernel-oom", "nvidia-smi", "memory-summary", "elastic-box", "array-size"
]
UnitName = Literal["KiB", "MiB", "GiB", "TiB"]
PurposeName = Literal["training", "inference"]


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all records: immutable, and no key that nobody reads."""


class TextRecord(Record, frozen=True, kw_only=True):
    """One text in both languages."""

    en: Annotated[str, Meta(min_length=1)]
    zh: Annotated[str, Meta(min_length=1)]


class Example(Record, frozen=True, kw_only=True):
    """A text that a signature must recognise, and the fields that it must find."""

    text: str
    fields: dict[str, Any] = {}


class NearMiss(Record, frozen=True, kw_only=True):
    """A text that must leave the signature quiet, and why."""

    text: str
    why: str


class SignatureRecord(Record, frozen=True, kw_only=True):
    """One message that a program prints."""

    id: Id
    kind: KindName
    certainty: CertaintyName | None = None
    outcome: Literal["failure", "pressure"] = "failure"
    literals: Annotated[list[str], Meta(min_length=1)]
    pattern: str | None = None
    family: FamilyName | None = None
    set: dict[str, int | str] = {}
    unit: dict[str, UnitName] = {}
    purpose: PurposeName | None = None
    """As in the file, for this message alone."""
    since: str | None = None
    until: str | None = None
    source: str
    note: str | None = None
    examples: list[Example] = []
    near_misses: list[NearMiss] = []


class SignatureFile(Record, frozen=True, kw_only=True):
    """rules/signatures/<program>.yaml"""

    program: str
    purpose: PurposeName | None = None
    """What runs are for that print these messages, where they tell: advice for training is wrong where a program only answers."""
    signatures: list[SignatureRecord]


class CiteRecord(Record, frozen=True, kw_only=True):
    """A claim of a source, by number, or what the source says in a word."""

    source: str
    claim: str | None = None
    says: TextRecord | None = None


class CaseExample(Record, frozen=True, kw_only=True):
    """A log, or an environment, that a problem must explain, or leave alone."""

    name: str
    log: str = ""
    environment: dict[str, Any] | None = None
    """As in the JSON of `oomdoctor env`; the problem is then asked about it instead of about a log."""
    expect: Literal["match", "unknown", "none"] = "match"


class ProblemRecord(Record, frozen=True, kw_only=True):
    """rules/problems/<area>/<problem>.yaml: what it means."""

    id: Id
    cause: str | None = None
    severity: Literal["error", "warning", "note"] = "error"
    confidence: CertaintyName
    rank: int = 50
    """Among findings of equal confidence the lower rank comes first: specific problems low, general ones high."""
    title: TextRecord
    when: dict[str, Any]
    why: TextRecord
    fixes: list[str] = []
    silences: list[str] = []
    """Problems, or groups of them, that this one leaves nothing to say."""
    group: str | None = None
    """A name for problems that are silenced together: the readings of figures that any better explanation replaces."""
    cites: list[CiteRecord] = []
    examples: Annotated[list[CaseExample], Meta(min_length=1)]
    near_misses: Annotated[list[CaseExample], Meta(min_length=1)]


HarmName = Literal["none", "slower", "effort", "quality", "hardware"]
TermName = Literal[
    "weights", "gradients", "optimizer states", "activations", "logits", "kv cache", "allocator slack", "evaluation", "loading",
    "host memory", "other processes",
]  # fmt: skip
ChangeName = Literal["divide", "at-most", "at-least", "fitting", "option", "keep-batch"]


class SettingRecord(Record, frozen=True, kw_only=True):
    """One key of one framework, and the value that it gets."""

    framework: str
    key: str
    """As it is written: `a.b` is nested, `-x` is an option, `CAPITALS` are a variable, `call(name)` stands in code."""
    to: str
    """The value to write; with `change` the value where the old one is unknown, and the bound where it is known."""
    sets: str | None = None
    """The setting behind the key, by the name that all frameworks share (`training.<sets>`)."""
    means: str | None = None
    """The value of that setting, where it is not `to` itself (`disable_gradient_checkpointing: false` means true)."""
    values: dict[str, str] = {}
    """What to write where another value of that setting is wanted, by its meaning (`'2': ds_z2.json` beside a file for stage 3)."""
    also: list[str] = []
    """Values of the setting that serve as well: with one of them in force there is nothing to change."""
    change: ChangeName | None = None
    """How the new value follows from the old one; findings/settings.py says what each word does."""
    least: Annotated[int, Meta(ge=0)] | None = None
    """Where `divide` stops; `to` where it is not given."""
    by: Annotated[float, Meta(gt=0)] = 2
    """What `divide` divides by, and what `fitting` rounds down to."""
    along: bool = False
    """Whether it only goes along with another row, and is not the point of the fix."""
    facts: Annotated[list[str], Meta(max_length=2)] = []
    """What `fitting` reads: one fact, or two whose quotient counts."""
    was: str | None = None
    """A fact that states the value in force, where neither config nor log has it under this key."""
    example: bool = False
    """Whether `to` only shows what kind of value is meant: a person chooses it, and no tool writes it."""
    default: str | None = None
    """The value of the setting where the config at hand does not name it."""
    when: dict[str, Any] | None = None
    """The row is for runs of which this is true."""
    since: str | None = None
    until: str | None = None
    source: str


class FreesRecord(Record, frozen=True, kw_only=True):
    """What a fix frees, in terms of the memory model, in words, and in bytes where they follow from the number of parameters."""

    terms: list[TermName] = []
    says: TextRecord
    fact: str | None = None
    """The fact that says how many bytes at most."""
    per_parameter: float = 0
    """Bytes per parameter of the model."""
    per_trainable: float = 0
    """Bytes per parameter that is trained."""
    shared: bool = False
    """Whether the other cards take their part over: times (1 - 1 / cards), of what they do not hold already."""
    sharded_from: Annotated[int, Meta(ge=1, le=3)] | None = None
    """The ZeRO stage from which on each card holds its part of these bytes only: divided by the cards."""
    source: str | None = None
    """Where the bytes come from."""


class NeedRecord(Record, frozen=True, kw_only=True):
    """What must hold for a fix to help. Where it is false the fix is left out, where it is unknown the words are shown."""

    when: dict[str, Any]
    says: TextRecord


class NotThisRecord(Record, frozen=True, kw_only=True):
    """Advice that people meet and that is wrong for some problems."""

    advice: TextRecord
    why: TextRecord
    problems: Annotated[list[str], Meta(min_length=1)]
    when: dict[str, Any] | None = None
    """Shown only where this is true."""
    cites: Annotated[list[str], Meta(min_length=1)]


class FixRecord(Record, frozen=True, kw_only=True):
    """rules/fixes/<measure>.yaml: what to do."""

    id: Id
    title: TextRecord
    how: TextRecord
    settings: list[SettingRecord] = []
    """The frameworks that people use most come first: their lines are shown where the framework is unknown."""
    command: str | None = None
    frees: FreesRecord | None = None
    """None for a step that only looks or repairs."""
    harm: HarmName
    """The worst of what it costs."""
    costs: TextRecord | None = None
    needs: list[NeedRecord] = []
    safety: Literal["safe", "review"] = "review"
    not_this: list[NotThisRecord] = []
    """Wrong advice about this very measure."""
    cites: list[str] = []


class Claim(Record, frozen=True, kw_only=True):
    """One claim of a source, checked."""

    id: str
    says: TextRecord
    verdict: Literal["right", "partly", "wrong", "unverified"]
    correction: TextRecord | None = None


class SourceRecord(Record, frozen=True, kw_only=True):
    """A document that is cited."""

    id: Id
    title: str
    url: str | None = None
    claims: list[Claim] = []


class SourceFile(Record, frozen=True, kw_only=True):
    """rules/sources.yaml"""

    sources: list[SourceRecord]
