"""The shape of rules/signatures: messages that programs print."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record

KindName = Literal["device-oom", "masked-device-oom", "host-oom", "shm-oom", "kernel-resource", "look-alike", "consequence", "context"]
CertaintyName = Literal["certain", "likely", "possible"]
FamilyName = Literal[
    "torch-allocator", "translated", "nvml-assert", "kernel-oom", "nvidia-smi", "memory-summary", "elastic-box", "array-size", "refusal"
]
UnitName = Literal["KiB", "MiB", "GiB", "TiB"]
PurposeName = Literal["training", "inference"]


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
    general: bool = False
    """A sentence that many programs print: it gives way to every other message on its lines."""
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
    """A file rules/signatures/<program>.yaml."""

    program: str
    purpose: PurposeName | None = None
    """What runs are for that print these messages, where they tell: advice for training is wrong where a program only answers."""
    signatures: list[SignatureRecord]


class Alternative(Struct, frozen=True, array_like=True):
    """One branch of a pattern."""

    pattern: str
    """The regular expression, with the names for numbers and sizes spelt out."""
    needs: list[str] | None = None
    """Pieces of which one stands in every text that it matches; None where nobody knows any."""
    reach: int = 0
    """A match begins so many characters before such a piece at most."""


class SignatureCore(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What matching needs of a signature."""

    id: str
    program: str
    kind: KindName
    literals: list[str]
    certainty: CertaintyName | None = None
    purpose: PurposeName | None = None
    outcome: Literal["failure", "pressure"] = "failure"
    general: bool = False
    alternatives: list[Alternative] = []
    """The branches of its pattern, in their order."""
    family: FamilyName | None = None
    set: dict[str, int | str] = {}
    unit: dict[str, UnitName] = {}

    @property
    def is_aside(self) -> bool:
        """Whether the message is only context or a warning."""
        return self.kind == "context" or self.outcome == "pressure"
